"""The client's end of a connection of Kafka's protocol, without I/O: no socket, no event loop, no clock.

    connection.negotiate()                    queues ApiVersions
    connection.send(api, request)             encodes the request in the newest common version, and queues it: a SentRequest
    connection.data_to_send()                 the bytes for the owner of the socket to write
    connection.writable(), .filled(count)     room for incoming bytes, and how many came
    connection.next_response()                the next response, together with its request
    connection.log_in_again()                 renews the session: nothing else is sent until that is done
    connection.close() -> [SentRequest, ...]  the end; returns the open requests, in order

A node answers the requests of one connection in order, and repeats the correlation id of each. A response that does not belong
to the oldest open request is an error. A Produce with acks 0 has no response.

ApiVersions comes first (KIP-511). It is sent in the newest version known here. A node that does not know this version answers
UNSUPPORTED_VERSION in the form of version 0, and a node that is new enough lists the versions that it knows. Then ApiVersions
is sent again. With a ``login`` the client authenticates next; only then is the connection ready.

The incoming bytes are cut into responses, each in memory that is never overwritten. A frame is a four-byte big-endian length
and that many bytes. Small frames are copied out of one receive buffer. A frame that does not fit into the buffer gets its own
memory, which the socket fills in place. The records of a Fetch stay there, neither moved nor overwritten as long as somebody
holds a view of them. (``protocol.frames`` reuses its buffer, because a broker is done with a request before it reads on.)

The memory of a large frame is allocated when its length is known. The system provides it page by page as it is written, so a
false length costs little.

A connection begins ``NEW``. Only ApiVersions may be sent before its answer, which determines the versions of everything else.
A client that logs in is ``AUTHENTICATING`` next, and again before its session ends (KIP-368). Answers to earlier requests may
still come then. ``CLOSED`` is final, whether this end closed the connection, the peer did, or the peer broke the protocol.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic

from odradek import __version__
from odradek.client.api import (
    Api,
    ClientError,
    Disconnected,
    InvalidFrame,
    InvalidRequest,
    LoginFailed,
    NegotiationFailed,
    RequestT,
    ResponseT,
    TooManyRequests,
    UnexpectedResponse,
    UnreadableResponse,
    UnsupportedVersion,
    VersionRange,
)
from odradek.client.login import Authentication, Login, LoginRequest
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest


class ConnectionState(Enum):
    """The state of a connection."""

    NEW = "new"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSED = "closed"


TRANSITIONS: Final[dict[ConnectionState, frozenset[ConnectionState]]] = {
    ConnectionState.NEW: frozenset({ConnectionState.NEGOTIATING, ConnectionState.CLOSED}),
    ConnectionState.NEGOTIATING: frozenset({ConnectionState.AUTHENTICATING, ConnectionState.READY, ConnectionState.CLOSED}),
    ConnectionState.AUTHENTICATING: frozenset({ConnectionState.READY, ConnectionState.CLOSED}),
    ConnectionState.READY: frozenset({ConnectionState.AUTHENTICATING, ConnectionState.CLOSED}),
    ConnectionState.CLOSED: frozenset(),
}


class IllegalTransition(RuntimeError):
    """The caller used the connection in a state that does not permit it."""


_BUFFER_BYTES: Final = 16 * 1024
_LENGTH_BYTES: Final = 4
# The size of the correlation id.
_MIN_RESPONSE_BYTES: Final = 4


class ResponseBuffer:
    """Cuts a stream into frames, whatever the sizes in which it arrives."""

    __slots__ = ("_buffer", "_end", "_large", "_large_end", "_max_response_bytes", "_start")

    def __init__(self, max_response_bytes: int) -> None:
        self._max_response_bytes = max_response_bytes
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._large_end = 0

    def writable(self) -> memoryview:
        """Return room for the socket to fill; never empty once ``next_frame`` has returned None."""
        if self._large is not None:
            return self._large[self._large_end :]
        if self._start:
            have = self._end - self._start
            self._buffer[:have] = self._buffer[self._start : self._end]
            self._start, self._end = 0, have
        return self._buffer[self._end :]

    def filled(self, count: int) -> None:
        """Account for ``count`` bytes that the socket has put at ``writable()``."""
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_frame(self) -> bytes | memoryview | None:
        """Return the next whole frame without its length; None if there is none yet. Raises InvalidFrame."""
        if self._large is not None:
            return self._take_large()
        have = self._end - self._start
        if have < _LENGTH_BYTES:
            return None
        begin = self._start + _LENGTH_BYTES
        length = int.from_bytes(self._buffer[self._start : begin], "big", signed=True)
        if not _MIN_RESPONSE_BYTES <= length <= self._max_response_bytes:
            raise InvalidFrame(f"a response of {length} bytes: {_MIN_RESPONSE_BYTES} to {self._max_response_bytes} are allowed")
        if have >= _LENGTH_BYTES + length:
            self._start = begin + length
            return bytes(self._buffer[begin : self._start])
        if _LENGTH_BYTES + length > _BUFFER_BYTES:
            self._begin_large(length, begin)
        return None

    def _begin_large(self, length: int, begin: int) -> None:
        """Go on in the frame's own memory; everything in the buffer from ``begin`` on belongs to it."""
        large = memoryview(bytearray(length))
        have = self._end - begin
        large[:have] = self._buffer[begin : self._end]
        self._large, self._large_end = large, have
        self._start = self._end = 0

    def _take_large(self) -> memoryview | None:
        large = self._large
        if large is None or self._large_end < len(large):
            return None
        self._large = None
        return large.toreadonly()


DEFAULT_MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
DEFAULT_MAX_IN_FLIGHT: Final = 5

_API_VERSIONS: Final[Api[Any, Any]] = Api(ApiKey.API_VERSIONS)
_OF_LOGINS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_SOFTWARE_NAME: Final = "odradek"
_MAX_CORRELATION_ID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class SentRequest(Generic[ResponseT]):
    """An encoded request. ``is_answered`` is False for a Produce with acks 0, which has no response."""

    api_key: ApiKey
    version: int
    correlation_id: int
    is_answered: bool


@dataclass(frozen=True, slots=True, eq=False)
class ReceivedResponse(Generic[ResponseT]):
    """A response and its request. Views of records in ``response`` stay valid as long as they are held."""

    sent: SentRequest[ResponseT]
    response: ResponseT


class ClientConnection:
    """One connection to one node. Once ``next_response`` has raised an error, the connection is CLOSED.

    ``served`` has the versions of each API that the node serves, by API key, including APIs unknown here. ``login`` is used to
    authenticate, unless it is None. It may be set before ``negotiate``, and before ``log_in_again``. ``session_lifetime_ms``
    is how long the present session lasts, 0 if it has no end.
    """

    def __init__(
        self,
        client_id: str | None,
        *,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
        max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
        login: Login | None = None,
    ) -> None:
        self.state = ConnectionState.NEW
        self.login = login
        self.session_lifetime_ms = 0
        self._authentication: Authentication | None = None
        self.served: dict[int, VersionRange] = {}
        self._client_id = client_id
        self._max_in_flight = max_in_flight
        self._received = ResponseBuffer(max_response_bytes)
        self._to_send: list[bytes | memoryview] = []
        self._open: deque[SentRequest[Any]] = deque()
        self._next_correlation_id = 0

    @property
    def in_flight(self) -> int:
        """Return how many requests wait for their response."""
        return len(self._open)

    @property
    def can_send(self) -> bool:
        """Return whether ``send`` takes another request now."""
        return self.state is ConnectionState.READY and len(self._open) < self._max_in_flight

    def negotiate(self) -> None:
        """Ask for the versions that the node serves. After its answer, without a login, the connection is READY."""
        self._enter(ConnectionState.NEGOTIATING)
        self._ask_for_versions(_API_VERSIONS.versions.highest)

    def log_in_again(self) -> None:
        """Begin to authenticate for the next session, which replaces this one (KIP-368). The connection must be READY."""
        self._log_in()

    def version_of(self, api: Api[Any, Any]) -> int:
        """Return the version in which a request of this API is sent. Raises UnsupportedVersion."""
        served = self.served.get(api.key)
        version = None if served is None else api.common_version(served)
        if version is None:
            theirs = "none" if served is None else f"{served.lowest} to {served.highest}"
            ours = f"{api.versions.lowest} to {api.versions.highest}"
            raise UnsupportedVersion(f"{api.key.name}: the node serves {theirs}, the client needs {ours}", api.key, served)
        return version

    def send(self, api: Api[RequestT, ResponseT], request: RequestT) -> SentRequest[ResponseT]:
        """Encode a canonical request (``protocol.messages``) and queue it.

        Raises Disconnected when CLOSED, TooManyRequests, UnsupportedVersion, InvalidRequest; then nothing is queued.
        """
        if self.state is ConnectionState.CLOSED:
            raise Disconnected("the connection is closed")
        if self.state is not ConnectionState.READY:
            raise IllegalTransition("cannot send a request before the versions are negotiated")
        if len(self._open) >= self._max_in_flight:
            raise TooManyRequests(f"{self._max_in_flight} requests are in flight")
        return self._send(api.key, self.version_of(api), request)

    def data_to_send(self) -> list[bytes | memoryview]:
        """Take the chunks to write to the socket, in order."""
        chunks, self._to_send = self._to_send, []
        return chunks

    def writable(self) -> memoryview:
        """Return room for the socket to fill; never empty once ``next_response`` has returned None."""
        return self._received.writable()

    def filled(self, count: int) -> None:
        """Account for ``count`` bytes that the socket has put at ``writable()``; then drain ``next_response``."""
        self._received.filled(count)

    def next_response(self) -> ReceivedResponse[Any] | None:
        """Return the next response; None if there is no whole one. Raises ProtocolViolation, NegotiationFailed, LoginFailed."""
        try:
            while self.state is not ConnectionState.CLOSED and (frame := self._received.next_frame()) is not None:
                received = self._match(frame)
                if self.state is ConnectionState.NEGOTIATING:
                    self._negotiated(received)
                elif received.sent.api_key in _OF_LOGINS and self._authentication is not None:
                    self._send_login(self._authentication, self._authentication.answered(received.response))
                else:
                    return received
        except ClientError:
            self._enter(ConnectionState.CLOSED)
            raise
        return None

    def close(self) -> list[SentRequest[Any]]:
        """End the connection. Return the requests that will get no response, in order."""
        if self.state is not ConnectionState.CLOSED:
            self._enter(ConnectionState.CLOSED)
        unanswered = list(self._open)
        self._open.clear()
        self._to_send.clear()
        return unanswered

    def _send(self, api_key: ApiKey, version: int, request: object) -> SentRequest[Any]:
        correlation_id = self._next_correlation_id
        try:
            chunks = request_encoder(api_key, version)(correlation_id, self._client_id, request)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise UnsupportedVersion(error.reason, api_key, self.served.get(api_key)) from error
            raise InvalidRequest(error.reason) from error
        self._next_correlation_id = correlation_id + 1 if correlation_id < _MAX_CORRELATION_ID else 0
        is_answered = not isinstance(request, ProduceRequest) or request.acks != 0
        sent: SentRequest[Any] = SentRequest(api_key, version, correlation_id, is_answered=is_answered)
        if sent.is_answered:
            self._open.append(sent)
        self._to_send += chunks
        return sent

    def _match(self, frame: bytes | memoryview) -> ReceivedResponse[Any]:
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._open:
            raise UnexpectedResponse(f"a response with correlation id {correlation_id}, but no request is pending")
        sent = self._open[0]
        if correlation_id != sent.correlation_id:
            raise UnexpectedResponse(f"a response with correlation id {correlation_id} instead of {sent.correlation_id}")
        version = 0 if self._is_refused_negotiation(sent, frame) else sent.version
        try:
            response = response_decoder(sent.api_key, version)(frame)
        except MalformedMessage as error:
            raise UnreadableResponse(error.reason) from error
        self._open.popleft()
        return ReceivedResponse(sent, response)

    def _is_refused_negotiation(self, sent: SentRequest[Any], frame: bytes | memoryview) -> bool:
        """Return whether ApiVersions answers a version unknown to the node. Such an answer has the form of version 0."""
        error_code = int.from_bytes(frame[4:6], "big", signed=True)
        return sent.api_key == ApiKey.API_VERSIONS and error_code == ErrorCode.UNSUPPORTED_VERSION

    def _ask_for_versions(self, version: int) -> None:
        request = messages(ApiKey.API_VERSIONS).request(client_software_name=_SOFTWARE_NAME, client_software_version=__version__)
        self._send(ApiKey.API_VERSIONS, version, request)

    def _negotiated(self, received: ReceivedResponse[Any]) -> None:
        """Store the versions that the node serves, or ask again in a version that it knows. Raises NegotiationFailed."""
        response = received.response
        served = {api.api_key: VersionRange(api.min_version, api.max_version) for api in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and received.sent.version > 0:
            # A node before Kafka 2.4 does not list its versions, but every node knows version 0.
            known = served.get(ApiKey.API_VERSIONS, VersionRange(0, 0)).highest
            self._ask_for_versions(min(known, received.sent.version - 1))
        elif response.error_code:
            raise NegotiationFailed(response.error_code)
        else:
            self.served = served
            if self.login is None:
                self._enter(ConnectionState.READY)
            else:
                self._log_in()

    def _log_in(self) -> None:
        """Begin to authenticate. Raises LoginFailed if the node does not support it."""
        assert self.login is not None  # noqa: S101  a session exists only with a login
        self._enter(ConnectionState.AUTHENTICATING)
        self._authentication = authentication = Authentication(self.login)
        self._send_login(authentication, authentication.begin())

    def _send_login(self, authentication: Authentication, question: LoginRequest | None) -> None:
        if question is None:
            self.session_lifetime_ms = authentication.lifetime_ms
            self._authentication = None
            self._enter(ConnectionState.READY)
            return
        try:
            version = self.version_of(question.api)
        except UnsupportedVersion as error:
            raise LoginFailed(f"the node does not support this SASL login: {error.reason}") from error
        self._send(question.api.key, version, question.request)

    def _enter(self, state: ConnectionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalTransition(f"a connection cannot go from {self.state.value} to {state.value}")
        self.state = state
