"""Frames that no client sends, to the state machine with every mechanism: none is a fault of the broker's."""

from random import Random

import pytest

from odradek.broker.config.sasl_config import SaslConfig
from odradek.broker.sasl.authenticator import Authenticated, Authenticator, Break, Refuse, TellVersions
from odradek.broker.sasl.listeners import SaslListener, SaslServices
from odradek.broker.sasl.states import SaslState
from odradek.protocol.api_keys import ApiKey
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.raw_client import encode_request

from .jwts import message, unsecured
from .test_scram import SHA_256, credential

PACKAGE = "org.apache.kafka.common.security"
LINES = {
    "plain": f'{PACKAGE}.plain.PlainLoginModule required user_alice="alice-secret";',
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


@pytest.fixture(scope="module")
def mechanisms():
    texts = {f"listener.name.l.{name}.sasl.jaas.config": line for name, line in LINES.items()}
    texts |= {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "connections.max.reauth.ms": "1000"}
    known = credential(SHA_256, "alice-secret")
    services = SaslServices(
        lambda user, _: known if user == "alice" else None, lambda: "broker", VirtualClock(), InlineBackground()
    )
    return SaslListener(SaslConfig("L", texts), services).mechanisms


def frames(random):
    """Those of an exchange, in any order, some of them altered."""
    while True:
        match random.randrange(4):
            case 0:
                frame = encode_request(ApiKey.SASL_HANDSHAKE, random.randrange(2), mechanism=random.choice(MECHANISMS))[4:]
            case 1:
                frame = encode_request(ApiKey.SASL_AUTHENTICATE, random.randrange(3), auth_bytes=random.choice(TOKENS))[4:]
            case 2:
                frame = random.choice(TOKENS)
            case _:
                frame = encode_request(ApiKey.API_VERSIONS, random.randrange(3))[4:]
        if random.random() < 0.3:
            at = random.randrange(len(frame) + 1)
            frame = frame[:at] + random.randbytes(random.randrange(4)) + frame[at + random.randrange(3) :]
        yield frame


def talk(mechanisms, random, frame_count):
    """Send so many frames over as many connections as that takes; the kinds of outcomes."""
    seen = set()
    odd = frames(random)
    authenticator = Authenticator(mechanisms)
    for number in range(frame_count):
        if authenticator.state is SaslState.COMPLETE:
            authenticator.begin_again(number * 1_000.0)
        outcome = authenticator.receive(next(odd), 0, number * 1_000.0)
        seen.add(type(outcome))
        assert "alice-secret" not in repr(outcome)
        if isinstance(outcome, TellVersions):
            authenticator.versions_told(accepted=random.random() < 0.5)
        assert not isinstance(outcome, Authenticated)
        if isinstance(outcome, Refuse | Break):
            assert authenticator.state is SaslState.FAILED
            authenticator = Authenticator(mechanisms)
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_odd_frames_are_answered_refused_or_end_it_and_let_nobody_in(mechanisms, seed):
    assert {Refuse, Break, TellVersions} < talk(mechanisms, Random(seed), 1_500)
