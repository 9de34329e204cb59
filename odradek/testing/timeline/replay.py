"""Sends the requests of a timeline to any broker, and compares the answers with the recorded ones.

Requests go out in their recorded order, on one connection for each recorded connection. An answer recorded before a request is
awaited before that request is sent. If a request was never answered (a Fetch that waited at the end), its answer is not read.
Ids in requests are replaced by the ids that the new broker gave (``IdPairs``). ``likeness`` compares two answers.

A broker that has just made a topic, or loads a coordinator, answers that it is not ready. Such an answer is no difference: the
request is sent again, as a client would, for up to ``timeout_s``. So is a share group's heartbeat, if its partitions come late.

Not replayed: time. A session that timed out because its client slept does so only if the broker's clock moves the same way.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.testing.timeline.likeness import FieldDifference, IdPairs, ResponseComparison
from odradek.testing.timeline.messages import error_codes, sendable_request
from odradek.testing.timeline.timeline import Timeline
from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.testing.timeline.events import Exchange


_LENGTH: Final = Struct(">i")
_CONNECT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 30


class NoAnswer(Exception):
    """The state of a connection that gave no answer."""

    CLOSED: ClassVar = "closed"
    SILENT: ClassVar = "silent"


class ReplayConnection:
    """A connection to the broker. ``is_closed`` is true once it has ended, ``is_idle`` while no answer is due."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, _CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._due: deque[int] = deque()
        self._correlation_id = 0
        self.is_closed = False

    @property
    def is_idle(self) -> bool:
        """Return whether no answer is due."""
        return not self._due

    def send(self, exchange: Exchange, request: Any) -> None:
        """Send ``request`` like the recorded exchange. Raises NoAnswer, and KafkaError if the version cannot express it."""
        self._correlation_id += 1
        encode = request_encoder(exchange.api, exchange.version)
        frame = b"".join(encode(self._correlation_id, exchange.client_id, sendable_request(request)))
        try:
            self._socket.sendall(frame)
        except OSError:
            self.close()
            raise NoAnswer(NoAnswer.CLOSED) from None
        if exchange.outcome != "unanswered":
            self._due.append(self._correlation_id)

    def receive(self, exchange: Exchange, within_s: float) -> Any:
        """Return the answer to the oldest request. Raises NoAnswer, which closes the connection, and MalformedMessage."""
        self._socket.settimeout(within_s)
        try:
            frame = self._read(_LENGTH.unpack(self._read(_LENGTH.size))[0])
        except TimeoutError:
            self.close()
            raise NoAnswer(NoAnswer.SILENT) from None
        except OSError:
            self.close()
            raise NoAnswer(NoAnswer.CLOSED) from None
        due = self._due.popleft()
        if _LENGTH.unpack_from(frame)[0] != due:
            self.close()
            raise NoAnswer("the broker answered another request")
        is_refused = exchange.api == ApiKey.API_VERSIONS and int.from_bytes(frame[4:6]) == ErrorCode.UNSUPPORTED_VERSION
        # The answer has the form of version 0 then (KIP-511).
        return response_decoder(exchange.api, 0 if is_refused else exchange.version)(frame)

    def close(self) -> None:
        """Close the socket."""
        self.is_closed = True
        with suppress(OSError):
            self._socket.close()

    def _read(self, size: int) -> bytes:
        if not 0 <= size <= _MOST_BYTES:
            raise ConnectionError(f"{size} bytes")
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)


__tracebackhide__ = True

# Errors after which a client sends its request again.
_NOT_READY: Final = frozenset(
    {
        *(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR),
        *(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT),
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.LEADER_NOT_AVAILABLE),
        *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REPLICA_NOT_AVAILABLE),
    }
)
# Their answers change a moment later: on a cluster's other nodes, or once the state of a share group's partitions is initialized.
_SPREADING: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.SHARE_GROUP_HEARTBEAT}
)
_PAUSE_S: Final = 0.05
_SPREADS_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference from the recorded answer at ``path``; the path "connection" means a different outcome."""

    exchange: Exchange
    path: str
    recorded: object
    replayed: object

    def __str__(self) -> str:
        of = self.exchange
        return (
            f"{of.api.name} v{of.version} of {of.client_id} ({of.begun}): {self.path} was {self.recorded!r}, is {self.replayed!r}"
        )


@dataclass(slots=True)
class Replay:
    """The result: how many requests were sent, how many of them again, and which answers differ."""

    sent: int = 0
    sent_again: int = 0
    differences: list[Difference] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.sent} requests, {self.sent_again} of them sent again, {len(self.differences)} differences"
        return "\n".join([*map(str, self.differences), counts])


def replay(timeline: Timeline, bootstrap_servers: str, *, timeout_s: float = 10.0) -> Replay:
    """Send the requests of a timeline to the broker at "host:port", which may be of any make. Blocks.

    Each answer may take ``timeout_s`` longer than it took in the recording. Raises OSError if the broker cannot be reached,
    ValueError for a timeline without its records.
    """
    if not isinstance(timeline, Timeline):
        raise TypeError(f"replay needs a timeline, such as broker.timeline or Timeline.load(path), not {timeline!r}")
    if not re.fullmatch(r"[^,]+:\d+(,.*)?", bootstrap_servers):
        raise ValueError(f"a broker's address must be HOST:PORT, not {bootstrap_servers!r}")
    host, _, port = bootstrap_servers.partition(",")[0].rpartition(":")
    run = _Run((host.strip("[]"), int(port)), timeout_s, timeline.exchanges)
    try:
        for exchange, is_answer in _steps(timeline.exchanges):
            if is_answer:
                run.take_answer(exchange)
            else:
                run.send(exchange)
    finally:
        run.close()
    return run.result


def _steps(exchanges: Iterable[Exchange]) -> list[tuple[Exchange, bool]]:
    """Return requests and answers in order: (exchange, whether this step is its answer)."""
    placed = [(place, each, place == each.ended) for each in exchanges for place in (each.begun, each.ended) if place is not None]
    return [(exchange, is_answer) for _, exchange, is_answer in sorted(placed, key=lambda step: step[0])]


class _Run:
    def __init__(self, address: tuple[str, int], timeout_s: float, exchanges: list[Exchange]) -> None:
        self.result = Replay()
        self._address = address
        self._timeout_s = timeout_s
        self._clock = SystemClock()
        self._ids = IdPairs()
        now_ms = self._clock.now_ms()
        self._days_ms = (exchanges[0].at_ms if exchanges else now_ms, now_ms)
        self._connections: dict[int, ReplayConnection] = {}

    def send(self, exchange: Exchange) -> None:
        """Send the request."""
        connection = self._connections.get(exchange.connection)
        if connection is None or connection.is_closed:
            connection = self._connections[exchange.connection] = ReplayConnection(self._address)
        self.result.sent += 1
        try:
            connection.send(exchange, self._ids.translated("", exchange.request))
        except NoAnswer as reason:
            self._differ(exchange, [("connection", exchange.outcome, str(reason))])

    def take_answer(self, exchange: Exchange) -> None:
        """Wait for the answer, and compare it."""
        connection = self._connections.get(exchange.connection)
        if connection is None or connection.is_closed or exchange.outcome == "unanswered":
            return
        wait_s = self._timeout_s + (exchange.took_ms or 0) / 1000
        try:
            answer = connection.receive(exchange, wait_s)
            if exchange.outcome == "answered":
                answer = self._ready(connection, exchange, answer, wait_s)
        except (NoAnswer, MalformedMessage) as reason:
            if exchange.outcome != "closed" or str(reason) != NoAnswer.CLOSED:
                self._differ(exchange, [("connection", exchange.outcome, str(reason))])
            return
        if exchange.outcome == "closed":
            self._differ(exchange, [("connection", "closed", "answered")])
        elif not set(error_codes(exchange.answer)) & _NOT_READY:
            self._differ(exchange, ResponseComparison(self._ids, self._days_ms).differences(exchange.answer, answer))

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    def _ready(self, connection: ReplayConnection, exchange: Exchange, answer: Any, wait_s: float) -> Any:
        """Return the answer, sending the request again while the broker is not ready."""
        started_ms = self._clock.monotonic_ms()
        is_first = True
        while self._is_early(exchange, answer, (self._clock.monotonic_ms() - started_ms) / 1000) and connection.is_idle:
            self.result.sent_again += is_first
            is_first = False
            threading.Event().wait(_PAUSE_S)
            connection.send(exchange, self._ids.translated("", exchange.request))
            answer = connection.receive(exchange, wait_s)
        return answer

    def _is_early(self, exchange: Exchange, answer: Any, waited_s: float) -> bool:
        codes = set(error_codes(answer))
        if (codes & _NOT_READY) - set(error_codes(exchange.answer)):
            return waited_s < self._timeout_s
        if exchange.api not in _SPREADING or waited_s > _SPREADS_S:
            return False
        # Compare with a copy: only the final answer may add ids.
        return any(ResponseComparison(self._ids.copy(), self._days_ms).differences(exchange.answer, answer))

    def _differ(self, exchange: Exchange, found: Iterable[FieldDifference]) -> None:
        self.result.differences += [Difference(exchange, *each) for each in found]
