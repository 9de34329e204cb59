import pytest

from odradek.broker.sasl.tokens import InvalidToken, Parts, Rules, Token, check_signed, check_unsecured, take_apart
from tests.cases import each_case

from .jwts import unsecured

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
        ({"exp": "soon"}, RULES, "exp is no time"),
        ({"exp": True}, RULES, "exp is no time"),
        ({"exp": 1e300}, RULES, "exp is no time"),
        ({"iat": None}, RULES, "no iat"),
        ({"nbf": NOW_S + 31}, RULES, "not valid yet"),
        ({"sub": None}, RULES, "no sub"),
        ({"sub": "  "}, RULES, "no sub"),
        ({"sub": 7}, RULES, "no sub"),
        ({}, RULES._replace(subject_claim="preferred_username"), "no preferred_username"),
        ({}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"aud": "kafka"}, RULES, "another audience"),
        ({"aud": "x"}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"aud": [{}, 7]}, RULES, "another audience"),
        ({"aud": 7}, RULES._replace(audiences=("kafka",)), "another audience"),
        ({"exp": float("nan")}, RULES, "exp is no time"),
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
    return Parts({"alg": "none"} if header is None else header, claims, is_signed)


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
    assert take_apart(unsecured(CLAIMS)) == parts()
    assert take_apart(unsecured(CLAIMS, signature="x")).is_signed


@each_case("token", ["", "a.b", "a.b.c.d", "....", "e30.W10.", "e30.!.", "e30." + "W" * 3 + ".", "AAAA.AAAA.", "é.é."])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(InvalidToken, match="no JWT"):
        take_apart(token)
