"""A client that logs in: before anything else is asked, and again before its session is over."""

import pytest

from odradek.broker.security.sasl.mechanism import AuthenticationFailed, PlainServer
from odradek.broker.security.sasl.oauthbearer import InvalidToken, OAuthBearerServer, Token
from odradek.broker.security.sasl.scram import ScramServer
from odradek.client.api import ConnectFailed, LoginFailed
from odradek.client.connection import ClientConnection, ConnectionState
from odradek.client.login import Login
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateResponse
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeResponse
from odradek.protocol.scram import MECHANISMS
from tests.broker.security.sasl.test_scram import credential
from tests.cases import each_case
from tests.client.net import CONFIG, HEARTBEAT, HeartbeatRequest, Net, asked, failure, settle
from tests.client.peer import EVERY_VERSION, Peer, nothing
from tests.client.test_connection import exchange

RIGHT, WRONG = "alice-secret", "another-secret"
LIFETIME_MS = 10_000
PLAIN = Login("PLAIN", "alice", RIGHT)
HANDSHAKE, AUTHENTICATE = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE


class Node:
    """What a node answers: to logins by its own end of the mechanism, to all else by ``answer``."""

    def __init__(self, answer=nothing, *, lifetime_ms=0, mechanisms=("PLAIN", "OAUTHBEARER", *MECHANISMS)):
        self._answer = answer
        self._lifetime_ms = lifetime_ms
        self._mechanisms = mechanisms
        self.password = RIGHT
        self.is_silent = False

    def __call__(self, api_key, version, request):
        if self.is_silent:
            return None
        if api_key is HANDSHAKE:
            return self._shake_hands(request.mechanism)
        if api_key is not AUTHENTICATE:
            return self._answer(api_key, version, request)
        try:
            answer = self._server.evaluate(request.auth_bytes)
        except AuthenticationFailed as error:
            return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=error.told or "no")
        lifetime_ms = self._lifetime_ms if self._server.is_complete else 0
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)

    def _shake_hands(self, name):
        if name not in self._mechanisms:
            return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(self._mechanisms))
        if name == "PLAIN":
            self._server = PlainServer({"alice": self.password.encode()})
        elif name == "OAUTHBEARER":
            self._server = OAuthBearerServer(self._validate)
        else:
            mechanism = MECHANISMS[name]
            known = credential(mechanism, self.password)
            self._server = ScramServer(mechanism, {"alice": known}.get, lambda: "theirs")
        return SaslHandshakeResponse()

    def _validate(self, token):
        if token != self.password:
            raise InvalidToken("it is another one")
        return Token("alice", 0)


class LoginNet(Net):
    """Its clients log in."""

    def __init__(self, node, login=PLAIN):
        super().__init__(node)
        self._login = login

    def log_in_as(self, login):
        """From the next connection on; from the next session on, if it is by a token."""
        self._login = login

    async def connect(self, make_protocol):
        def make_session():
            session = make_protocol()
            session.log_in_as(lambda: self._login)
            return session

        return await super().connect(make_session)


def connected(login, node, **peer):
    """A connection that has talked to a node as long as there was anything to say, and the node."""
    connection, node = ClientConnection("me", login=login), Peer(node, **peer)
    connection.negotiate()
    exchange(connection, node)
    return connection, node


@each_case("mechanism", ["PLAIN", "OAUTHBEARER", *MECHANISMS])
def test_a_connection_is_ready_when_the_node_has_let_the_client_in(mechanism):
    connection, peer = connected(Login(mechanism, "alice", RIGHT), Node(lifetime_ms=LIFETIME_MS))
    assert connection.state is ConnectionState.READY
    assert connection.session_lifetime_ms == LIFETIME_MS
    tokens = 2 if mechanism in MECHANISMS else 1
    assert [key for key, *_ in peer.asked] == [ApiKey.API_VERSIONS, HANDSHAKE, *[AUTHENTICATE] * tokens]


@each_case(
    ("login", "node", "served", "reason"),
    [
        (Login("PLAIN", "alice", WRONG), Node(), EVERY_VERSION, "Authentication failed: Invalid username or password"),
        (Login("SCRAM-SHA-256", "alice", WRONG), Node(), EVERY_VERSION, "no"),
        (Login("SCRAM-SHA-512", "bob", RIGHT), Node(), EVERY_VERSION, "no"),
        (Login("OAUTHBEARER", "alice", WRONG), Node(), EVERY_VERSION, '{"status":"invalid_token"}'),
        (PLAIN, Node(mechanisms=["OAUTHBEARER"]), EVERY_VERSION, "it does not enable PLAIN; enabled: OAUTHBEARER"),
        (PLAIN, Node(), {ApiKey.API_VERSIONS: (0, 4)}, "the node does not support this SASL login: "),
        (
            PLAIN,
            lambda *_: SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE),
            EVERY_VERSION,
            "its listener has no SASL",
        ),
    ],
)
def test_who_is_not_let_in_is_told_why(login, node, served, reason):
    connection, peer = ClientConnection("me", login=login), Peer(node, served)
    connection.negotiate()
    with pytest.raises(LoginFailed) as failed:
        exchange(connection, peer)
    assert failed.value.reason.startswith(reason)
    assert WRONG not in failed.value.reason
    assert connection.state is ConnectionState.CLOSED


def test_a_node_that_does_not_know_the_password_itself_is_not_believed():
    def forged(api_key, version, request):
        answer = node(api_key, version, request)
        if api_key is AUTHENTICATE and answer.auth_bytes.startswith(b"v="):
            return SaslAuthenticateResponse(auth_bytes=b"v=AAAA")
        return answer

    node = Node()
    with pytest.raises(LoginFailed, match="could not prove that it knows the password"):
        connected(Login("SCRAM-SHA-256", "alice", RIGHT), forged)


async def test_requests_wait_until_the_client_is_let_in(make):
    net = LoginNet(Node())
    await make(net).request(HEARTBEAT, HeartbeatRequest())
    assert asked(net) == [HANDSHAKE, AUTHENTICATE, ApiKey.HEARTBEAT]


async def test_a_client_that_is_not_let_in_tries_again_for_the_next_request(make, clock):
    node = Node()
    net = LoginNet(node)
    client = make(net)
    node.password = WRONG
    error = await failure(client.request(HEARTBEAT, HeartbeatRequest()))
    assert isinstance(error, ConnectFailed)
    assert error.reason == "User:alice cannot log in with PLAIN: Authentication failed: Invalid username or password"
    node.password = RIGHT
    later = client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(CONFIG.reconnect_backoff_max_ms)
    await later
    assert net.attempts == 2


async def test_a_session_is_renewed_on_its_connection_for_the_first_request_that_comes_late_in_it(make, clock):
    net = LoginNet(Node(lifetime_ms=LIFETIME_MS))
    client = make(net)
    await client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(LIFETIME_MS * 0.84)
    await client.request(HEARTBEAT, HeartbeatRequest())
    assert asked(net)[2:] == [ApiKey.HEARTBEAT] * 2
    for _ in range(2):
        clock.advance(LIFETIME_MS * 0.96)
        await settle()
        before = len(asked(net))
        await client.request(HEARTBEAT, HeartbeatRequest())
        assert asked(net)[before:] == [HANDSHAKE, AUTHENTICATE, ApiKey.HEARTBEAT]
    assert net.attempts == 1


@pytest.mark.parametrize(("mechanism", "attempts"), [("OAUTHBEARER", 1), ("PLAIN", 2)])
async def test_a_session_by_a_token_goes_on_by_the_token_of_then_and_by_a_password_as_it_began(make, clock, mechanism, attempts):
    node = Node(lifetime_ms=LIFETIME_MS)
    net = LoginNet(node, Login(mechanism, "alice", RIGHT))
    client = make(net)
    await client.request(HEARTBEAT, HeartbeatRequest())
    node.password = "later-secret"
    net.log_in_as(Login(mechanism, "alice", "later-secret"))
    clock.advance(LIFETIME_MS * 0.96)
    future = client.request(HEARTBEAT, HeartbeatRequest())
    if attempts > 1:
        assert isinstance(await failure(future), ConnectFailed)
        future = client.request(HEARTBEAT, HeartbeatRequest())
        clock.advance(CONFIG.reconnect_backoff_max_ms)
    await future
    assert net.attempts == attempts


def test_a_node_that_refuses_a_token_and_lets_in_nevertheless_is_not_believed():
    def forged(api_key, version, request):
        if api_key is AUTHENTICATE:
            return SaslAuthenticateResponse(auth_bytes=b"{}" if b"auth=" in request.auth_bytes else b"")
        return Node()(api_key, version, request)

    with pytest.raises(LoginFailed, match=r"\{\}"):
        connected(Login("OAUTHBEARER", "alice", RIGHT), forged)


async def test_what_was_asked_before_a_renewal_is_answered_and_what_comes_meanwhile_waits(make, clock):
    node = Node(lifetime_ms=LIFETIME_MS)
    net = LoginNet(node)
    client = make(net)
    await client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(LIFETIME_MS * 0.84)
    net.links[0].hold()
    first = client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(LIFETIME_MS * 0.12)
    second = client.request(HEARTBEAT, HeartbeatRequest())
    third = client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    assert asked(net)[3:] == [ApiKey.HEARTBEAT, HANDSHAKE]
    assert not first.done()
    net.links[0].release()
    for future in (first, second, third):
        await future
    assert asked(net)[3:] == [ApiKey.HEARTBEAT, HANDSHAKE, AUTHENTICATE, ApiKey.HEARTBEAT, ApiKey.HEARTBEAT]


@pytest.mark.parametrize("what", ["refused", "silent"])
async def test_a_renewal_that_fails_is_a_connection_that_failed(make, clock, what):
    node = Node(lifetime_ms=LIFETIME_MS)
    net = LoginNet(node)
    client = make(net)
    await client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(LIFETIME_MS)
    node.password, node.is_silent = WRONG, what == "silent"
    future = client.request(HEARTBEAT, HeartbeatRequest())
    await settle()
    clock.advance(CONFIG.connection_setup_timeout_ms)
    assert isinstance(await failure(future), ConnectFailed)
    assert net.links[0].is_lost
    node.password, node.is_silent = RIGHT, False
    later = client.request(HEARTBEAT, HeartbeatRequest())
    clock.advance(CONFIG.reconnect_backoff_max_ms)
    await later
    assert net.attempts == 2


def test_nobody_reads_the_password_in_a_login():
    assert RIGHT not in f"{PLAIN!r} {PLAIN}"
