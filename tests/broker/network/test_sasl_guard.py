"""A connection of a SASL listener, over a transport that keeps what it is given, under a clock that the test moves."""

import pytest

from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_registry import ConnectionLimits, ConnectionRegistry
from odradek.broker.network.sasl_listeners import SaslGuard
from odradek.broker.security.sasl.listeners import SaslListener, SaslServices
from odradek.common.config.listener_config import SaslConfig
from odradek.common.context import ANONYMOUS
from odradek.common.logging import LineLimit, lines_to
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.broker.network.test_connection import FakeTransport
from tests.broker.network.turns import in_the_next_turn
from tests.raw_client import decode_response, encode_request

pytestmark = pytest.mark.interpreted

LINE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
ALICE, BOB, WRONG = b"\0alice\0alice-secret", b"\0bob\0bob-secret", b"\0alice\0a wrong secret"
METADATA = encode_request(ApiKey.METADATA, 9)


class Echo:
    """Answers every request with its frame, and remembers the principals."""

    def __init__(self):
        self.principals = []
        # In place of the echo.
        self.error_code = 0

    def pipeline_depth(self, _frame):
        return 1

    def ensure_allowed(self, key, size_bytes):
        pass

    def dispatch(self, frame, session, _arrived_ms):
        self.principals.append(session.principal)
        if frame[:2] == b"\0\x12":
            session.client_software_name = "client"
        if self.error_code:
            return [bytes(8), self.error_code.to_bytes(2)]
        return [len(frame).to_bytes(4), bytes(frame)]


class Bed:
    """A connection that is open, and its client."""

    def __init__(self, **settings):
        self.clock = VirtualClock()
        timer = Timer(self.clock)
        self.registry = ConnectionRegistry(lambda: ConnectionLimits(10, 1_000, 10, {}, -1), self.clock, timer, in_the_next_turn)
        self.echo = Echo()
        self.counts = self.registry.sasl
        self.lines = []
        self.connection = Connection(self.echo, self.registry, "CLIENTS", 1 << 20)
        texts = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.clients.plain.sasl.jaas.config": LINE, **settings}
        listener = SaslListener(
            SaslConfig("CLIENTS", texts), SaslServices(lambda _user, _mechanism: None, lambda: "", self.clock, InlineBackground())
        )
        SaslGuard(
            self.connection,
            self.echo,
            listener,
            self.counts,
            max_frame_bytes=1 << 20,
            clock=self.clock,
            timer=timer,
            line_limit=LineLimit(self.clock),
        )
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def send(self, *frames):
        """What is answered at once."""
        before = len(self.transport.sent)
        data = b"".join(frames)
        with lines_to(lambda *line: self.lines.append(line)):
            self.connection.get_buffer(-1)[: len(data)] = data
            self.connection.buffer_updated(len(data))
        return self.transport.sent[before:]

    def pass_ms(self, duration_ms):
        before = len(self.transport.sent)
        with lines_to(lambda *line: self.lines.append(line)):
            self.clock.advance(duration_ms)
        return self.transport.sent[before:]


def handshake(version=1):
    return encode_request(ApiKey.SASL_HANDSHAKE, version, mechanism="PLAIN")


def token(token, version=2):
    return encode_request(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=token)


def told(data):
    return decode_response(ApiKey.SASL_AUTHENTICATE, 2, data[4:])[1]


def test_requests_of_an_authenticated_client_go_to_dispatch_itself():
    bed = Bed()
    bed.send(handshake())
    assert told(bed.send(token(ALICE))).error_code == 0
    assert bed.send(METADATA) == METADATA
    assert bed.echo.principals == ["User:alice"]
    assert bed.connection._dispatcher is bed.echo
    assert (bed.counts.succeeded, bed.counts.failed) == (1, 0)


def test_requests_in_one_read_with_the_token_are_answered_behind_it():
    bed = Bed()
    assert bed.send(handshake(), token(ALICE), METADATA, METADATA).endswith(METADATA * 2)
    assert bed.echo.principals == ["User:alice"] * 2


def test_nothing_reaches_dispatch_before():
    bed = Bed()
    assert bed.send(METADATA) == b""
    assert bed.echo.principals == []
    assert bed.connection.session.principal == ANONYMOUS
    assert bed.transport.closed


def test_versions_that_were_refused_may_be_asked_for_again_and_others_not():
    bed = Bed()
    versions = encode_request(ApiKey.API_VERSIONS, 3, client_software_name="c", client_software_version="1")
    bed.echo.error_code = ErrorCode.UNSUPPORTED_VERSION
    assert bed.send(versions).endswith(bytes([0, ErrorCode.UNSUPPORTED_VERSION]))
    bed.echo.error_code = 0
    assert bed.send(versions) == versions
    assert bed.send(versions) == b""
    assert bed.transport.closed


def test_the_versions_are_told_before():
    bed = Bed()
    versions = encode_request(ApiKey.API_VERSIONS, 3, client_software_name="c", client_software_version="1")
    assert bed.send(versions) == versions
    assert bed.echo.principals == [ANONYMOUS]
    bed.send(handshake())
    assert told(bed.send(token(ALICE))).error_code == 0


@pytest.mark.parametrize(("settings", "delay_ms"), [({}, 100), ({"connection.failed.authentication.delay.ms": "700"}, 700)])
async def test_a_wrong_password_is_answered_after_the_delay_and_the_connection_closes(settings, delay_ms):
    bed = Bed(**settings)
    bed.send(handshake())
    assert bed.send(token(WRONG), METADATA) == b""
    assert bed.pass_ms(delay_ms - 1) == b""
    assert not bed.transport.closed
    assert told(bed.pass_ms(1)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert bed.transport.closed
    assert bed.echo.principals == []


def test_a_bare_token_whose_failure_is_not_told_ends_it_at_once():
    key = "listener.name.clients.scram-sha-256.sasl.jaas.config"
    line = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    bed = Bed(**{"sasl.enabled.mechanisms": "SCRAM-SHA-256", key: line})
    bed.send(encode_request(ApiKey.SASL_HANDSHAKE, 0, mechanism="SCRAM-SHA-256"))
    bare = b"n,,n=nobody,r=abc"
    assert bed.send(len(bare).to_bytes(4) + bare) == b""
    assert bed.transport.closed
    assert (bed.lines[0][2]["user"], bed.counts.failed) == ("nobody", 1)


def test_a_client_that_leaves_during_the_delay_is_forgotten():
    bed = Bed()
    bed.send(handshake())
    bed.send(token(WRONG))
    bed.connection.connection_lost(None)
    assert bed.pass_ms(200) == b""


def test_the_log_says_who_and_why_and_no_secret():
    bed = Bed()
    bed.send(handshake())
    bed.send(token(WRONG))
    (line,) = bed.lines
    assert line == (
        "warning",
        "authentication failed",
        {
            "peer": "10.0.0.1:5",
            "listener": "CLIENTS",
            "mechanism": "PLAIN",
            "user": "alice",
            "cause": "the password is wrong",
        },
    )
    assert "secret" not in repr(line)
    assert (bed.counts.succeeded, bed.counts.failed) == (0, 1)


def test_a_name_in_the_log_has_one_line_and_an_end():
    bed = Bed()
    bed.send(handshake())
    bed.send(token(b"\0" + b"a\n" * 1_000 + b"\0x"))
    assert bed.lines[0][2]["user"] == ascii("a\n" * 50)


@pytest.mark.parametrize("size", [0, 4])
def test_a_bare_token_may_be_smaller_than_a_request(size):
    bed = Bed()
    bed.send(handshake(0))
    bed.send(size.to_bytes(4) + b"\0a\0b"[:size])
    assert "expected 3 tokens" in bed.lines[0][2]["cause"] or bed.lines[0][2]["cause"] == "no such user"


def test_a_request_before_is_no_larger_than_the_config_allows():
    bed = Bed(**{"sasl.server.max.receive.size": "50"})
    bed.send(handshake())
    bed.send((51).to_bytes(4))
    assert bed.transport.closed
    assert "allowed are 0 to 50 (sasl.server.max.receive.size)" in bed.lines[0][2]["cause"]
    other = Bed(**{"sasl.server.max.receive.size": "50"})
    other.send(handshake(), token(ALICE))
    frame = encode_request(ApiKey.METADATA, 9, client_id="c" * 100)
    assert other.send(frame) == frame


def test_a_session_that_is_not_renewed_ends_with_the_next_request():
    bed = Bed(**{"connections.max.reauth.ms": "5000"})
    bed.send(handshake(), token(ALICE))
    bed.pass_ms(5_000)
    assert bed.send(METADATA) == METADATA
    bed.pass_ms(1)
    assert bed.send(METADATA) == b""
    assert bed.transport.closed
    assert "the session of User:alice has expired" in bed.lines[-1][2]["cause"]
    assert bed.counts.expired == 1


def test_a_session_that_is_renewed_goes_on():
    bed = Bed(**{"connections.max.reauth.ms": "5000"})
    bed.send(handshake(), token(ALICE))
    for _ in range(3):
        bed.pass_ms(5_001)
        bed.send(handshake())
        assert told(bed.send(token(ALICE))).error_code == 0
        assert bed.send(METADATA) == METADATA
    assert bed.counts.succeeded_again == 3
    assert set(bed.echo.principals) == {"User:alice"}


def test_a_session_that_is_renewed_for_another_user_ends():
    bed = Bed(**{"connections.max.reauth.ms": "5000"})
    bed.send(handshake(), token(ALICE))
    bed.pass_ms(2_000)
    bed.send(handshake(), token(BOB))
    assert "Cannot change principals" in told(bed.pass_ms(100)).error_message
    assert bed.transport.closed
    assert bed.connection.session.principal == "User:alice"
    assert (bed.lines[-1][1], bed.counts.failed_again) == ("re-authentication failed", 1)


def test_a_handshake_that_comes_too_soon_is_dispatchs_to_refuse():
    bed = Bed(**{"connections.max.reauth.ms": "5000"})
    bed.send(handshake(), token(ALICE), handshake(), token(ALICE))
    assert bed.send(handshake()) == handshake()
