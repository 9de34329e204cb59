"""The state machine, frame by frame: what comes out is compared, and no connection is made."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from types import SimpleNamespace

import pytest

from odradek.broker.security.sasl.authenticator import (
    EXPECTED,
    TRANSITIONS,
    AnswerApiVersions,
    Authenticated,
    Authenticator,
    Disconnect,
    IllegalTransition,
    Refuse,
    Respond,
    SaslState,
    step,
)
from odradek.broker.security.sasl.mechanism import AuthenticationFailed, Mechanism, PlainServer
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.security.sasl.odd_frames import enabled, talk
from tests.cases import each_case
from tests.raw_client import decode_response, encode_request

USERS = {"alice": b"alice-secret", "bob": b"bob-secret"}
ALICE = b"\0alice\0alice-secret"
WALL_MS = 1_700_000_000_000


class Expiring(PlainServer):
    """PLAIN, with credentials that are over ten seconds after WALL_MS."""

    expires_ms = WALL_MS + 10_000


def authenticator(*, max_reauth_ms=0, server=PlainServer):
    mechanism = Mechanism(lambda: server(USERS), max_reauth_ms)
    return Authenticator({"PLAIN": mechanism, "OTHER": mechanism})


class Client:
    """Sends requests to an authenticator at some time, and has what comes out with its response decoded."""

    def __init__(self, mine):
        self.mine = mine
        self.now_ms = 0.0

    def send(self, api_key, version=None, **fields):
        version = {ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 2}.get(api_key, 0) if version is None else version
        return self.send_frame(encode_request(api_key, version, **fields)[4:], api_key, version)

    def send_frame(self, frame, api_key=None, version=0):
        outcome = self.mine.receive(frame, WALL_MS + int(self.now_ms), self.now_ms)
        chunks = getattr(outcome, "chunks", None)
        if not chunks or api_key is None:
            return outcome
        correlation_id, response = decode_response(api_key, version, b"".join(chunks)[4:])
        assert correlation_id == 1
        return replace(outcome, chunks=response)

    def handshake(self, mechanism="PLAIN", version=1):
        return self.send(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)

    def token(self, token=ALICE, version=2):
        return self.send(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=token)


@pytest.fixture
def client():
    return Client(authenticator())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_is_let_in_with_a_handshake_and_a_token(client, version):
    answer = client.handshake()
    assert isinstance(answer, Respond)
    assert (answer.chunks.error_code, list(answer.chunks.mechanisms)) == (0, ["PLAIN", "OTHER"])
    outcome = client.token(version=version)
    assert isinstance(outcome, Authenticated)
    assert (outcome.user, outcome.chunks.error_code, outcome.chunks.auth_bytes) == ("alice", 0, b"")
    assert client.mine.state is SaslState.COMPLETE


def test_a_handshake_of_version_0_is_followed_by_bare_tokens(client):
    client.handshake(version=0)
    outcome = client.send_frame(ALICE)
    assert (outcome.user, outcome.chunks) == ("alice", [b"\0\0\0\0"])


def test_a_bare_token_that_fails_has_no_answer(client):
    client.handshake(version=0)
    assert client.send_frame(b"\0alice\0wrong") == Refuse([], "the password is wrong", "alice", "PLAIN")


def test_the_versions_may_be_asked_first(client):
    assert client.send(ApiKey.API_VERSIONS) == AnswerApiVersions()
    client.mine.api_versions_answered(accepted=True)
    client.handshake()
    assert client.token().user == "alice"


def test_the_versions_may_be_asked_again_where_the_first_version_was_not_served(client):
    client.send(ApiKey.API_VERSIONS)
    client.mine.api_versions_answered(accepted=False)
    assert client.send(ApiKey.API_VERSIONS) == AnswerApiVersions()
    client.mine.api_versions_answered(accepted=True)
    assert isinstance(client.send(ApiKey.API_VERSIONS), Disconnect)


def test_a_wrong_password_is_told_and_who_and_why_is_for_the_log(client):
    client.handshake()
    outcome = client.token(b"\0alice\0wrong")
    assert (outcome.cause, outcome.user, outcome.mechanism) == ("the password is wrong", "alice", "PLAIN")
    assert outcome.chunks.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert outcome.chunks.error_message == "Authentication failed: Invalid username or password"
    assert client.mine.state is SaslState.FAILED


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(client):
    outcome = client.handshake("GSSAPI")
    assert isinstance(outcome, Refuse)
    assert outcome.chunks.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(outcome.chunks.mechanisms) == ["PLAIN", "OTHER"]


HINT = "the listener needs SASL: check the client's security.protocol"


def frame_of(api_key):
    """A frame that begins as a request of that API."""
    return encode_request(ApiKey.SASL_HANDSHAKE, 0)[4:].replace(b"\0\x11", int(api_key).to_bytes(2), 1)


@each_case("api_key", [key for key in ApiKey if key not in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE)])
def test_nothing_else_is_answered_at_first(api_key):
    outcome = Client(authenticator()).send_frame(frame_of(api_key))
    assert outcome == Disconnect(f"{api_key.name} came before the client authenticated: {HINT}")


@each_case("api_key", [key for key in ApiKey if key is not ApiKey.SASL_AUTHENTICATE])
def test_only_tokens_follow_a_handshake(api_key):
    client = Client(authenticator())
    client.handshake()
    outcome = client.send_frame(frame_of(api_key))
    assert isinstance(outcome, Refuse)
    assert outcome.cause == f"{api_key.name} came before the client authenticated: {HINT}"


def test_metadata_in_place_of_a_token_is_told_its_state(client):
    client.handshake()
    outcome = client.send(ApiKey.METADATA, 9, topics=[{"name": "t"}])
    assert isinstance(outcome, Refuse)
    assert [(topic.name, topic.error_code) for topic in outcome.chunks.topics] == [("t", ErrorCode.ILLEGAL_SASL_STATE)]


def test_a_handshake_in_place_of_a_token_is_told_its_state(client):
    client.handshake()
    outcome = client.handshake()
    assert (outcome.chunks.error_code, list(outcome.chunks.mechanisms)) == (ErrorCode.ILLEGAL_SASL_STATE, [])


def test_what_is_no_request_is_taken_for_kerberos_at_first_and_ends_it_later(client):
    token = b"\x60\x82" + bytes(20)
    outcome = client.send_frame(token)
    assert isinstance(outcome, Disconnect)
    assert "GSSAPI" in outcome.cause
    later = Client(authenticator())
    later.handshake()
    assert isinstance(later.send_frame(token), Disconnect)


@each_case("frame", [b"", b"\0", b"\0\x11\0\x01", b"\xff" * 40, encode_request(ApiKey.SASL_HANDSHAKE, 1)[4:-1]])
@each_case("is_shaken", [False, True])
def test_no_frame_is_a_fault_of_the_brokers(frame, is_shaken):
    client = Client(authenticator())
    if is_shaken:
        client.handshake()
    assert isinstance(client.send_frame(frame), Refuse | Disconnect)


def test_a_version_that_is_not_served_ends_it(client):
    frame = bytearray(encode_request(ApiKey.SASL_HANDSHAKE, 1)[4:])
    frame[3] = 2
    assert client.send_frame(bytes(frame)) == Disconnect("SASL_HANDSHAKE version 2 is not served")


@each_case(
    ("max_reauth_ms", "server", "lifetime_ms"),
    [(0, PlainServer, 0), (5_000, PlainServer, 5_000), (0, Expiring, 9_000), (20_000, Expiring, 9_000), (5_000, Expiring, 5_000)],
)
def test_a_session_lasts_as_long_as_the_credential_and_the_config_allow(max_reauth_ms, server, lifetime_ms):
    client = Client(authenticator(max_reauth_ms=max_reauth_ms, server=server))
    client.now_ms = 1_000.0
    client.handshake()
    assert client.token().chunks.session_lifetime == timedelta(milliseconds=lifetime_ms)
    assert client.mine.expires_at_ms == (1_000 + lifetime_ms if lifetime_ms else None)


def test_a_credential_that_is_over_already_gives_a_session_that_is_over():
    client = Client(authenticator(server=Expiring))
    client.now_ms = 20_000.0
    client.handshake()
    assert client.token().chunks.session_lifetime == timedelta(0)
    assert client.mine.expires_at_ms == 20_000


def test_a_session_without_an_end_is_not_renewed(client):
    client.handshake()
    client.token()
    assert not client.mine.begin_reauthentication(0)


@pytest.fixture
def renewing():
    client = Client(authenticator(max_reauth_ms=5_000))
    client.handshake()
    client.token()
    client.now_ms = 4_000.0
    assert client.mine.begin_reauthentication(4_000.0)
    return client


def test_a_session_is_renewed_with_its_user(renewing):
    renewing.handshake()
    outcome = renewing.token()
    assert (outcome.user, outcome.chunks.session_lifetime) == ("alice", timedelta(seconds=5))
    assert renewing.mine.expires_at_ms == 9_000


def test_a_session_stays_with_its_user(renewing):
    renewing.handshake()
    outcome = renewing.token(b"\0bob\0bob-secret")
    assert isinstance(outcome, Refuse)
    assert outcome.chunks.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert outcome.chunks.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"


def test_a_session_stays_with_its_mechanism(renewing):
    assert renewing.handshake("OTHER").chunks.error_code == 0
    assert renewing.token() == Refuse([], "the session began with PLAIN and cannot change its mechanism", "alice")


def test_a_session_is_not_renewed_by_what_is_not_enabled(renewing):
    assert isinstance(renewing.handshake("GSSAPI"), Disconnect)


def test_a_session_is_renewed_once_a_second():
    client = Client(authenticator(max_reauth_ms=5_000))
    client.handshake()
    client.token()
    renewals = []
    for now_ms in (100.0, 1_099.0, 1_100.0):
        renewals.append(client.mine.begin_reauthentication(now_ms))
        if renewals[-1]:
            client.handshake()
            client.token()
    assert renewals == [True, False, True]


def test_no_renewal_asks_for_the_versions(renewing):
    assert isinstance(renewing.send(ApiKey.API_VERSIONS), Disconnect)


def test_a_reason_that_could_tell_who_is_there_is_not_told():
    def begin():
        return SimpleNamespace(evaluate=fail, is_complete=False, refusal=None)

    def fail(_token):
        raise AuthenticationFailed("there is no such user", user="alice")

    client = Client(Authenticator({"SCRAM-SHA-256": Mechanism(begin, 0)}))
    client.handshake("SCRAM-SHA-256")
    outcome = client.token(b"")
    assert outcome.chunks.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert outcome.cause == "there is no such user"


def test_a_failure_that_the_client_is_to_acknowledge_is_told_the_log_once():
    failure = AuthenticationFailed("the token is refused", told="{}", user="alice")
    outcomes = iter([b"{}", failure])

    def evaluate(_token):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    server = SimpleNamespace(evaluate=evaluate, is_complete=False, refusal=failure)
    client = Client(Authenticator({"OAUTHBEARER": Mechanism(lambda: server, 0)}))
    client.handshake("OAUTHBEARER")
    assert client.token(b"token").refusal is failure
    assert client.token(b"\x01").is_logged


def test_what_comes_out_shows_no_token():
    client = Client(authenticator())
    client.handshake()
    frame = encode_request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=ALICE)[4:]
    assert "secret" not in repr(client.mine.receive(frame, WALL_MS, 0.0))


def test_every_state_is_in_the_table():
    assert TRANSITIONS.keys() == set(SaslState)
    assert EXPECTED.keys() == set(SaslState) - {SaslState.COMPLETE}


def test_before_a_session_there_are_three_apis_and_no_other():
    assert frozenset().union(*EXPECTED.values()) == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_a_failure_is_the_end():
    assert not TRANSITIONS[SaslState.FAILED]


def test_every_state_can_be_reached():
    reached = {SaslState.INITIAL_REQUEST}
    while (further := reached.union(*(TRANSITIONS[state] for state in reached))) != reached:
        reached = further
    assert reached == set(SaslState)


@each_case("state", SaslState)
def test_a_session_follows_tokens_and_nothing_else(state):
    if state is SaslState.AUTHENTICATE:
        assert step(state, SaslState.COMPLETE) is SaslState.COMPLETE
    else:
        with pytest.raises(IllegalTransition):
            step(state, SaslState.COMPLETE)


# Frames that no client sends, to the state machine with every mechanism: none is a fault of the broker's.
@pytest.mark.parametrize("seed", range(4))
def test_odd_frames_are_answered_refused_or_end_it_and_let_nobody_in(seed):
    assert {Refuse, Disconnect, AnswerApiVersions} < talk(enabled(), Random(seed), 1_500).keys()
