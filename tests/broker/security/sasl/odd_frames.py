"""Frames that no client of SASL sends, drawn from a seed, and their way through the state machine with every mechanism."""

from collections import Counter

from odradek.broker.security.sasl.authenticator import (
    AnswerApiVersions,
    Authenticated,
    Authenticator,
    Disconnect,
    Refuse,
    SaslState,
)
from odradek.broker.security.sasl.listeners import SaslListener, SaslServices
from odradek.common.config.listener_config import SaslConfig
from odradek.protocol.api_keys import ApiKey
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.broker.security.sasl.jwts import message, unsecured
from tests.broker.security.sasl.test_scram import SHA_256, credential
from tests.campaigns.fuzz.frames import mutated
from tests.raw_client import encode_request

PACKAGE = "org.apache.kafka.common.security"
PASSWORD = "alice-secret"
LINES = {
    "plain": f'{PACKAGE}.plain.PlainLoginModule required user_alice="{PASSWORD}";',
    "scram-sha-256": f"{PACKAGE}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{PACKAGE}.scram.ScramLoginModule required;",
    "oauthbearer": f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="a";',
}
MECHANISMS = [name.upper() for name in LINES]
TOKENS = [
    b"\0alice\0x",
    b"n,,n=alice,r=abc",
    b"c=biws,r=abcbroker,p=AAAA",
    b"\x01",
    message(unsecured({"sub": "alice", "exp": 1})),
    message(unsecured({"sub": "alice", "exp": 1e300})),
    message(unsecured({"sub": ["alice"], "exp": {}})),
]


def enabled():
    """The mechanisms of a listener that has all, under a clock that stands."""
    texts = {f"listener.name.l.{name}.sasl.jaas.config": line for name, line in LINES.items()}
    texts |= {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "connections.max.reauth.ms": "1000"}
    known = credential(SHA_256, PASSWORD)
    services = SaslServices(
        lambda user, _: known if user == "alice" else None, lambda: "broker", VirtualClock(), InlineBackground()
    )
    return SaslListener(SaslConfig("L", texts), services).mechanisms


def frames(random):
    """Those of an exchange, in order or not, some of them altered."""
    while True:
        mechanism = random.choice(MECHANISMS)
        for _ in range(random.randrange(1, 4)):
            match random.randrange(5):
                case 0 | 1:
                    frame = encode_request(ApiKey.SASL_HANDSHAKE, random.randrange(2), mechanism=mechanism)[4:]
                case 2:
                    frame = encode_request(ApiKey.SASL_AUTHENTICATE, random.randrange(3), auth_bytes=random.choice(TOKENS))[4:]
                case 3:
                    frame = random.choice(TOKENS)
                case _:
                    frame = encode_request(ApiKey.API_VERSIONS, random.randrange(3))[4:]
            yield mutated(frame, TOKENS, random) if random.random() < 0.3 else frame


def talk(mechanisms, random, frame_count):
    """Send so many frames over as many connections as that takes; how often each kind of outcome came."""
    seen = Counter()
    odd = frames(random)
    authenticator = Authenticator(mechanisms)
    for number in range(frame_count):
        frame = next(odd)
        outcome = authenticator.receive(frame, 0, number * 1_000.0)
        seen[type(outcome)] += 1
        assert PASSWORD not in repr(outcome)
        assert not isinstance(outcome, Authenticated), f"frame {number} let somebody in: {frame!r}"
        if isinstance(outcome, AnswerApiVersions):
            authenticator.api_versions_answered(accepted=random.random() < 0.5)
        if isinstance(outcome, Refuse | Disconnect):
            assert authenticator.state is SaslState.FAILED
            authenticator = Authenticator(mechanisms)
    return seen
