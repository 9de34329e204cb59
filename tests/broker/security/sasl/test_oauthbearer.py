import json

import pytest

from odradek.broker.security.sasl.bearer_configs import SignedTokens, SigningKeys, UnsecuredTokens, bearer_tokens, load_keys
from odradek.broker.security.sasl.mechanism import AuthenticationFailed
from odradek.broker.security.sasl.oauthbearer import OAuthBearerServer, Rules
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import SaslConfig
from odradek.common.logging import lines_to
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.broker.security.sasl.jwts import EC_KEY, OTHER_KEY, RSA_KEY, jwks, message, signed, unsecured
from tests.cases import each_case

PREFIX = "listener.name.clients.oauthbearer."
UNSECURED = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
HANDLER = "sasl.server.callback.handler.class"
URL = "sasl.oauthbearer.jwks.endpoint.url"


class Documents:
    """What a URL has: the next of these each time, an exception is raised. The last one stays."""

    def __init__(self, *documents):
        self.documents = list(documents)
        self.fetches = 0

    def __call__(self, _url):
        self.fetches += 1
        found = self.documents.pop(0) if len(self.documents) > 1 else self.documents[0]
        if isinstance(found, Exception):
            raise found
        return found.encode()


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def claims(clock):
    now_s = clock.now_ms() // 1_000
    return {"sub": "alice", "iat": now_s, "exp": now_s + 300}


def keys(clock, documents, **more):
    made = SigningKeys(
        "https://issuer/keys",
        refresh_ms=60_000,
        backoff_ms=100,
        backoff_max_ms=350,
        clock=clock,
        background=InlineBackground(),
        fetch=documents,
        **more,
    )
    made.load()
    return made


def validator(clock, documents=None, rules=None):
    return SignedTokens(keys(clock, documents or Documents(jwks())), rules or Rules(), clock)


def told(failure):
    return json.loads(failure.told)


@pytest.mark.parametrize(
    ("key", "algorithm", "key_id"),
    [
        (RSA_KEY, "RS256", "rsa"),
        (EC_KEY, "ES256", "ec"),
        (RSA_KEY, "RS512", "rsa"),
        (RSA_KEY, "PS256", "rsa"),
        (EC_KEY, "ES256", None),
    ],
)
def test_a_token_signed_with_a_key_of_the_document_lets_its_subject_in(clock, claims, key, algorithm, key_id):
    server = OAuthBearerServer(validator(clock))
    assert server.evaluate(message(signed(claims, key, algorithm, key_id))) == b""
    assert (server.is_complete, server.user, server.expires_ms) == (True, "alice", claims["exp"] * 1_000)


def refusal(server, token):
    """The failure that follows the error, which the client has acknowledged."""
    answer = server.evaluate(message(token))
    assert json.loads(answer)["status"] == "invalid_token"
    assert not server.is_complete
    with pytest.raises(AuthenticationFailed) as caught:
        server.evaluate(b"\x01")
    assert token not in caught.value.cause + (caught.value.told or "")
    return caught.value


@each_case(
    ("make", "cause"),
    [
        (lambda claims: signed(claims, OTHER_KEY), "its signature is wrong"),
        (lambda claims: signed(claims)[:-8] + "AAAAAAAA", "its signature is wrong"),
        (lambda claims: signed(claims, OTHER_KEY, key_id="other"), "a key that is not in the JWKS document"),
        (lambda claims: signed(claims, "a secret of thirty-two bytes or more", "HS256"), "a key that is not in"),
        (unsecured, "it is not signed"),
        *(
            (lambda claims, header=header: unsecured(claims, header, "c2ln"), "a key that is not in the JWKS document")
            for header in ({"alg": "RS999"}, {"alg": "ES256", "kid": "rsa"}, {"alg": "EdDSA"}, {"alg": "R"})
        ),
        *(
            (lambda claims, header=header: unsecured(claims, header, "c2ln"), "its signature is wrong")
            for header in (
                {"alg": "ES256", "kid": "ec"},
                {"alg": "ES512", "kid": "ec"},
                {"alg": "RS256", "crit": ["x"]},
                {"alg": "RS256", "b64": False},
            )
        ),
        (lambda claims: unsecured(claims, {"alg": "none"}, "x"), "it is not signed"),
        (lambda claims: unsecured(claims, {"alg": 7}, "x"), "it is not signed"),
        (lambda claims: unsecured(claims, {"alg": "RS256", "kid": 7}, "x"), "key id"),
        (lambda claims: unsecured(claims, {"alg": "RS256", "kid": "rsa"}, "x"), "its signature is wrong"),
        (lambda claims: signed(claims | {"exp": claims["iat"]}), "expired"),
    ],
)
def test_another_token_is_refused(clock, claims, make, cause):
    failure = refusal(OAuthBearerServer(validator(clock)), make(claims))
    assert cause in failure.cause
    assert (failure.user, told(failure)) == ("alice", {"status": "invalid_token"})


def test_the_client_is_told_in_kafkas_form(clock):
    assert OAuthBearerServer(validator(clock)).evaluate(message("a.b.c")) == b'{"status":"invalid_token"}'


def test_a_scope_that_is_missing_is_told(clock, claims):
    server = OAuthBearerServer(UnsecuredTokens(Rules(required_scope=("read",)), clock))
    assert server.evaluate(message(unsecured(claims))) == b'{"status":"insufficient_scope", "scope":"[read]"}'


@pytest.mark.parametrize(("authorization_id", "is_fine"), [("alice", True), ("bob", False)])
def test_an_authorization_id_is_the_subject(clock, claims, authorization_id, is_fine):
    server = OAuthBearerServer(validator(clock))
    if is_fine:
        server.evaluate(message(signed(claims), authorization_id))
        assert server.user == "alice"
    else:
        with pytest.raises(AuthenticationFailed, match="authorization id"):
            server.evaluate(message(signed(claims), authorization_id))


def test_extensions_are_taken(clock, claims):
    server = OAuthBearerServer(validator(clock))
    server.evaluate(message(signed(claims), extensions="trace=1\x01"))
    assert server.is_complete


@each_case(
    "data",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01other=Bearer abc\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"\xff\xff",
    ],
)
def test_what_is_no_first_message_fails(clock, data):
    with pytest.raises(AuthenticationFailed):
        OAuthBearerServer(validator(clock)).evaluate(data)


# The keys.


def test_a_key_that_is_new_is_found_at_the_next_attempt(clock, claims):
    documents = Documents(jwks(), jwks(other=OTHER_KEY))
    validate = validator(clock, documents)
    clock.advance(100)
    token = signed(claims, OTHER_KEY, key_id="other")
    refusal(OAuthBearerServer(validate), token)
    assert documents.fetches == 2
    assert validate(token).user == "alice"


def test_tokens_of_unknown_keys_do_not_have_the_document_fetched_each_time(clock, claims):
    documents = Documents(jwks())
    validate = validator(clock, documents)
    clock.advance(100)
    for _ in range(10):
        refusal(OAuthBearerServer(validate), signed(claims, OTHER_KEY, key_id="other"))
    assert documents.fetches == 2


def test_the_document_is_fetched_again_when_it_is_old(clock, claims):
    documents = Documents(jwks())
    validate = validator(clock, documents)
    for wait_ms, fetches in ((59_999, 1), (1, 2), (59_999, 2), (1, 3)):
        clock.advance(wait_ms)
        validate(signed(claims))
        assert documents.fetches == fetches


def test_a_document_that_cannot_be_fetched_leaves_the_keys_and_is_tried_again(clock, claims):
    documents = Documents(jwks(), OSError("no route"), "{}", OSError("no route"), jwks())
    validate = validator(clock, documents)
    clock.advance(60_000)
    lines = []
    with lines_to(lambda *line: lines.append(line)):
        for wait_ms in (0, 99, 1, 199, 1, 349, 1, 350):
            clock.advance(wait_ms)
            assert validate(signed(claims)).user == "alice"
    assert documents.fetches == 5
    assert [line[2]["reason"] for line in lines] == ["no route", "the document has no public key for signatures", "no route"]


@each_case("document", ["", "[]", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AAAA"}]}', '{"keys": [{}]}'])
def test_what_is_no_document_of_public_keys_is_refused(clock, document):
    with pytest.raises(ValueError, match=r"."):
        keys(clock, Documents(document))


# The configs.


EXPECTED = ("sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer")
UNVERIFIED = {f"sasl.oauthbearer.allow.unverified.{claim}": "true" for claim in ("audience", "issuer")}


def configured(clock, texts, **options):
    config = SaslConfig("CLIENTS", {**UNVERIFIED, **texts})
    return bearer_tokens(config, options, clock, InlineBackground())


def test_tokens_are_signed_unless_it_is_said_that_they_are_not(clock):
    for texts in ({URL: "https://issuer/keys"}, {PREFIX + URL: "file:///keys"}):
        assert isinstance(configured(clock, texts)[0], SignedTokens)
    assert isinstance(configured(clock, {PREFIX + HANDLER: UNSECURED})[0], UnsecuredTokens)
    assert isinstance(configured(clock, {}, unsecuredLoginStringClaim_sub="admin")[0], UnsecuredTokens)
    assert isinstance(configured(clock, {URL: "file:///keys"}, unsecuredLoginStringClaim_sub="admin")[0], SignedTokens)


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ({}, f"not set.*{URL}: must be a http, https, file URL"),
        ({URL: "ftp://issuer/keys"}, "ftp://issuer/keys"),
        ({URL: "file:///keys", PREFIX + HANDLER: "com.example.Mine"}, f"com.example.Mine for configuration {PREFIX}{HANDLER}"),
    ],
)
def test_what_cannot_check_tokens_ends_the_start(clock, texts, complaint):
    with pytest.raises(InvalidConfig, match=complaint):
        configured(clock, texts)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_audience_and_an_issuer_are_expected_unless_any_will_do(clock, name):
    texts = {URL: "file:///keys", **dict.fromkeys(EXPECTED, "x"), **dict.fromkeys(UNVERIFIED, "false")}
    configured(clock, texts)
    del texts[name]
    with pytest.raises(InvalidConfig, match=name):
        configured(clock, texts)


def test_a_document_in_a_file_is_read_and_one_that_is_not_there_ends_the_start(clock, tmp_path, claims):
    file = tmp_path / "keys.json"
    texts = {URL: file.as_uri(), "sasl.oauthbearer.sub.claim.name": "name", "sasl.oauthbearer.expected.audience": "a,b"}
    validate, signing_keys = configured(clock, texts)
    with pytest.raises(InvalidConfig, match="the URL of a JWKS document"):
        load_keys(SaslConfig("CLIENTS", texts), signing_keys)
    file.write_text(jwks())
    load_keys(SaslConfig("CLIENTS", texts), signing_keys)
    assert validate(signed(claims | {"name": "bob", "aud": "b"})).user == "bob"


def test_the_rules_for_unsecured_tokens_are_in_the_jaas_line(clock, claims):
    validate, _ = configured(
        clock, {}, unsecuredValidatorPrincipalClaimName="name", unsecuredValidatorAllowableClockSkewMs="5000"
    )
    assert validate(unsecured(claims | {"name": "bob", "exp": claims["iat"] - 4, "iat": claims["iat"] - 9})).user == "bob"
    with pytest.raises(InvalidConfig, match="AllowableClockSkewMs"):
        configured(clock, {}, unsecuredValidatorAllowableClockSkewMs="five")
