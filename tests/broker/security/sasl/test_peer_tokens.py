"""The token that a node shows at others: from a file, or made by itself, as Kafka's two login handlers have it."""

import pytest

from odradek.broker.security.sasl.bearer_configs import UnsecuredTokens
from odradek.broker.security.sasl.oauthbearer import Rules, parse_token
from odradek.broker.security.sasl.peer_login import peer_token
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import SaslConfig
from odradek.timing.clock import VirtualClock
from tests.broker.security.sasl.jwts import signed
from tests.cases import each_case

PREFIX = "listener.name.brokers.oauthbearer."
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
FROM_URL, UNSECURED = (
    f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
)
HANDLER, URL = "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"
SUBJECT = {"unsecuredLoginStringClaim_sub": "brokers"}
NOW_MS = 1_700_000_000_500


def shown(options=(), **configs):
    """The token of a listener; ``configs`` are by the names of this module's constants."""
    texts = {PREFIX + globals().get(name, name): value for name, value in configs.items()}
    return peer_token(SaslConfig("BROKERS", texts), dict(options), NOW_MS)


@pytest.fixture
def file(tmp_path):
    """Puts a token into a file, whose URL it returns."""

    def put(text):
        (tmp_path / "a token").write_text(text)
        return (tmp_path / "a token").as_uri()

    return put


@pytest.mark.parametrize("configs", [{}, {"HANDLER": UNSECURED}], ids=["no handler", "the handler's name"])
def test_a_token_that_nobody_has_signed_is_one_to_a_listener_that_takes_such(configs):
    token = shown(SUBJECT, **configs)
    found = UnsecuredTokens(Rules(), VirtualClock(NOW_MS))(token.token)
    assert (token.user, found.user, found.expires_ms) == ("brokers", "brokers", NOW_MS + 3_600_000)


def test_its_claims_are_those_of_the_line():
    options = {
        "unsecuredLoginPrincipalClaimName": "node",
        "unsecuredLoginStringClaim_node": "b1",
        "unsecuredLoginNumberClaim_rack": "2.5",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginListClaim_empty": "|",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredValidatorAllowableClockSkewMs": "1",
    }
    token = shown(options)
    claims = {"node": "b1", "rack": 2.5, "scope": ["read", "write"], "empty": [], "iat": NOW_MS / 1_000}
    assert parse_token(token.token).claims == claims | {"exp": NOW_MS / 1_000 + 60}
    assert token.user == "b1"


def test_a_file_is_read_each_time(file):
    first, second = (signed({"sub": name, "exp": 1, "iat": 0}) for name in ("brokers", "others"))
    assert shown(HANDLER=FROM_URL, URL=file(f"{first}\n")) == ("brokers", first)
    assert shown(HANDLER=FROM_URL.replace("OAuthBearerLogin", "secured.OAuthBearerLogin"), URL=file(second)) == ("others", second)


def test_the_claim_of_the_name_may_be_another_one(file):
    token = signed({"azp": "brokers", "exp": 1})
    assert shown(HANDLER=FROM_URL, URL=file(token), **{"sasl.oauthbearer.sub.claim.name": "azp"}).user == "brokers"


@each_case(
    ("options", "configs", "mentions"),
    [
        ({}, {}, [f"{PREFIX}sasl.jaas.config", "unsecuredLoginStringClaim_sub", "there is no sub"]),
        (SUBJECT | {"unsecuredLoginStringClaim_exp": "1"}, {}, ["exp cannot be set"]),
        (SUBJECT | {"unsecuredLoginLifetimeSeconds": "long"}, {}, [f"{PREFIX}sasl.jaas.config"]),
        (SUBJECT | {"unsecuredLoginNumberClaim_rack": "two"}, {}, [f"{PREFIX}sasl.jaas.config"]),
        (SUBJECT, {"HANDLER": "com.example.Mine"}, [HANDLER, "com.example.Mine", FROM_URL]),
        ({}, {"HANDLER": FROM_URL}, [URL, "(not set)", "a file: URL"]),
        ({}, {"HANDLER": FROM_URL, "URL": "https://issuer.example.com/token"}, ["does not fetch tokens"]),
        ({}, {"HANDLER": FROM_URL, "URL": "file:/nowhere"}, [URL, "file:/nowhere", "No such file"]),
    ],
)
def test_a_node_without_a_token_is_refused_with_what_to_mend(options, configs, mentions):
    with pytest.raises(InvalidConfig) as refusal:
        shown(options, **configs)
    assert [each for each in mentions if each not in str(refusal.value)] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no token",
        signed({"exp": 1}),
        signed({"sub": "brokers"}),
        signed({"sub": " ", "exp": 1}),
        signed({"sub": "brokers", "exp": 1}) + "\x01host=a",
        "\N{SNOWMAN}",
    ],
    ids=["nothing", "no JWT", "no sub", "no exp", "a blank sub", "another line", "no ASCII"],
)
def test_a_file_without_a_token_is_refused_and_not_told(file, text):
    with pytest.raises(InvalidConfig, match=URL) as refusal:
        shown(HANDLER=FROM_URL, URL=file(text))
    assert "eyJ" not in str(refusal.value)


def test_a_token_is_not_told(file):
    token = shown(HANDLER=FROM_URL, URL=file(signed({"sub": "brokers", "exp": 1})))
    assert "eyJ" not in repr(token)
