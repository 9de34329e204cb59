import pytest

from odradek.broker.security.sasl.oauthbearer import (
    InvalidToken,
    ParsedToken,
    Rules,
    Token,
    check_signed,
    check_unsecured,
    parse_token,
)
from odradek.broker.security.sasl.scram import TokenCredentials
from odradek.protocol.metadata_records.security import DelegationTokenRecord
from odradek.protocol.scram import (
    ScramMechanism,
    salted_password,
    server_key,
    stored_key,
)
from odradek.protocol.texts import encode_base64
from tests.broker.security.sasl.jwts import unsecured
from tests.cases import each_case

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1_000
CLAIMS = {"sub": "alice", "iat": NOW_S - 60, "exp": NOW_S + 60}
RULES = Rules(skew_ms=30_000)


def test_a_signed_token_lets_its_subject_in_until_it_expires():
    assert check_signed(CLAIMS, RULES, NOW_MS) == Token("alice", NOW_MS + 60_000)


@each_case(
    ("claims", "rules"),
    [
        ({"exp": NOW_S - 29}, RULES),
        ({"nbf": NOW_S + 30}, RULES),
        # Its issuer's clock is its own.
        ({"iat": NOW_S + 500}, RULES),
        ({"aud": "kafka"}, RULES._replace(audiences=("kafka", "other"))),
        ({"aud": "kafka"}, RULES),
        ({"aud": ["x", "kafka"]}, RULES._replace(audiences=("kafka",))),
        ({"iss": "https://issuer"}, RULES._replace(issuer="https://issuer")),
        ({"scope": "read write"}, RULES),
        ({"scope": ["read", "write"]}, RULES),
        ({"exp": NOW_S + 0.5}, RULES),
    ],
)
def test_a_signed_token_may_be(claims, rules):
    assert check_signed(CLAIMS | claims, rules, NOW_MS).user == "alice"


@each_case(
    ("claims", "rules", "cause"),
    [
        ({"exp": NOW_S - 30}, RULES, "expired"),
        ({"exp": None}, RULES, "no exp"),
        ({"exp": "soon"}, RULES, "exp is not a time"),
        ({"exp": True}, RULES, "exp is not a time"),
        ({"exp": 1e300}, RULES, "exp is not a time"),
        ({"iat": None}, RULES, "no iat"),
        ({"nbf": NOW_S + 31}, RULES, "not valid yet"),
        ({"sub": None}, RULES, "no sub"),
        ({"sub": "  "}, RULES, "no sub"),
        ({"sub": 7}, RULES, "no sub"),
        ({}, RULES._replace(subject_claim="preferred_username"), "no preferred_username"),
        ({}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"aud": "x"}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"aud": [{}, 7]}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"aud": 7}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"exp": float("nan")}, RULES, "exp is not a time"),
        ({}, RULES._replace(issuer="https://issuer"), "another issuer"),
        ({"iss": "https://issuer/"}, RULES._replace(issuer="https://issuer"), "another issuer"),
        ({"scope": ["read", "read"]}, RULES, "scopes"),
        ({"scope": ["read", 1]}, RULES, "scopes"),
    ],
)
def test_a_signed_token_may_not_be(claims, rules, cause):
    with pytest.raises(InvalidToken, match=cause) as caught:
        check_signed(CLAIMS | claims, rules, NOW_MS)
    assert (caught.value.status, caught.value.scope) == ("invalid_token", None)


def parts(claims=CLAIMS, header=None, *, is_signed=False):
    return ParsedToken({"alg": "none"} if header is None else header, claims, is_signed)


def test_an_unsecured_token_lets_its_subject_in():
    assert check_unsecured(parts(), Rules(), NOW_MS) == Token("alice", NOW_MS + 60_000)
    assert check_unsecured(parts({"sub": "alice", "exp": NOW_S + 1}), Rules(), NOW_MS).user == "alice"


@each_case(
    ("found", "cause"),
    [
        (parts(is_signed=True), "signed"),
        (parts(header={"alg": "RS256"}), "signed"),
        (parts(CLAIMS | {"exp": NOW_S}), "expired"),
        (parts(CLAIMS | {"iat": NOW_S + 1}), "future"),
        (parts(CLAIMS | {"iat": NOW_S + 1, "exp": NOW_S + 1}), "future"),
        (parts({"sub": "alice"}), "no exp"),
    ],
)
def test_an_unsecured_token_may_not_be(found, cause):
    with pytest.raises(InvalidToken, match=cause):
        check_unsecured(found, Rules(), NOW_MS)


@pytest.mark.parametrize("scope", ["read", "read write", ["write", "read"]])
def test_an_unsecured_token_may_have_to_have_scopes(scope):
    rules = Rules(required_scope=("read", "write"))
    found = parts(CLAIMS | {"scope": scope})
    if "write" in scope:
        assert check_unsecured(found, rules, NOW_MS).user == "alice"
    else:
        with pytest.raises(InvalidToken) as caught:
            check_unsecured(found, rules, NOW_MS)
        assert (caught.value.status, caught.value.scope) == ("insufficient_scope", "[read, write]")


def test_a_token_is_taken_apart():
    assert parse_token(unsecured(CLAIMS)) == parts()
    assert parse_token(unsecured(CLAIMS, signature="x")).is_signed


@each_case("token", ["", "a.b", "a.b.c.d", "....", "e30.W10.", "e30.!.", "e30." + "W" * 3 + ".", "AAAA.AAAA.", "é.é."])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(InvalidToken, match="not a JWT"):
        parse_token(token)


# Credentials of tokens are made of their HMACs. They are kept as long as the tokens. Nothing shows them.
def token(token_id, owner="User:alice", expires_ms=7):
    times = {"issue_timestamp": 1, "max_timestamp": 9, "expiration_timestamp": expires_ms}
    return DelegationTokenRecord(owner=owner, requester="User:bob", renewers=(), token_id=token_id, **times)


class Bed:
    def __init__(self):
        self.tokens = {"one": token("one"), "two": token("two", "User:a:b")}
        self.asked = []
        self.credentials = TokenCredentials(lambda: self.tokens, self.hmac)

    def hmac(self, token_id):
        self.asked.append(token_id)
        return b"hmac of " + token_id.encode()


@pytest.fixture
def bed():
    return Bed()


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_password_is_the_hmac_in_base64(bed, mechanism):
    owner, expires_ms, credential = bed.credentials.find("one", mechanism)
    salted = salted_password(mechanism, encode_base64(b"hmac of one"), credential.salt, credential.iterations)
    assert (owner, expires_ms, credential.iterations) == ("alice", 7, 4096)
    assert (credential.stored_key, credential.server_key) == (stored_key(mechanism, salted), server_key(mechanism, salted))


def test_the_owner_is_a_name_without_its_type(bed):
    assert bed.credentials.find("two", ScramMechanism.SCRAM_SHA_256).owner == "a:b"


def test_a_credential_is_made_once_and_lives_as_long_as_its_token(bed):
    first = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256).credential
    bed.tokens["one"] = token("one", expires_ms=8)
    again = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256)
    assert (again.credential, again.expires_ms, bed.asked) == (first, 8, ["one"])
    removed = bed.tokens.pop("one")
    assert bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256) is None
    assert bed.credentials.find("two", ScramMechanism.SCRAM_SHA_256) is not None
    bed.tokens["one"] = removed
    assert bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256).credential.salt != first.salt


def test_a_credential_is_not_shown(bed):
    found = bed.credentials.find("one", ScramMechanism.SCRAM_SHA_256)
    for secret in (found.credential.salt, found.credential.stored_key, found.credential.server_key):
        assert repr(secret) not in repr(found)
