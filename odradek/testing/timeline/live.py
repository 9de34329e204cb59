"""The timeline of a running broker: it records requests and answers.

It is the first gate between dispatch and the handlers. So it sees the client's request before other gates (faults) change it,
and the answer as it is sent. A broker that does not record has no gate here.

Not recorded: bytes that are no request, ApiVersions in an unsupported version, and look-ups of the test's helpers
(``broker.groups``, ``broker.records``).

State changes of transactions are read from the coordinator's records in ``__transaction_state``.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any

from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, RequestContext, Session
from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.coordinator.transaction.states import STATE_NAMES, TransactionState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import TransactionLogKey, decode_transaction_key
from odradek.protocol.coordinator_records.transactions import decode_value
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.testing.asking import PEER
from odradek.testing.misuse import checked_count
from odradek.testing.timeline.events import Decision, Exchange
from odradek.testing.timeline.messages import frozen, held_answer, held_request, sent_answer
from odradek.testing.timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.records import Record
    from odradek.storage.log.log import Log
    from odradek.testing.in_process import InProcessBroker
    from odradek.testing.timeline.events import Event, Outcome


_READ_BYTES = 1024 * 1024


class TransactionWatch:
    """Reads the records appended to the logs of one process (``core``) since it was made. Loop thread only."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self._read_to = {index: log.log_end_offset for index, log in self._logs()}

    def changes(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Yield the changes of transactional ids since the last call: (event, fields)."""
        for index, log in self._logs():
            offset, end = self._read_to.get(index, 0), log.log_end_offset
            if offset < end:
                self._read_to[index] = end
                for record in _records(log, offset):
                    key = decode_transaction_key(record.key or b"")
                    if isinstance(key, TransactionLogKey):
                        yield _change(key, record.value)

    def _logs(self) -> Iterator[tuple[int, Log]]:
        for index, partition in self.core.partitions.of_topic(TRANSACTION_STATE_TOPIC).items():
            if partition.log is not None:
                yield index, partition.log


def _records(log: Log, offset: int) -> Iterator[Record]:
    while found := log.read(offset, _READ_BYTES, upper_offset=log.log_end_offset, min_one_batch=True):
        data = found.read()
        next_offset = offset
        for position, header in iter_batches(data):
            if not header.is_control:
                yield from (record for record in read_records(data, position) if record.offset >= offset)
            next_offset = header.next_offset
        if next_offset == offset:
            return
        offset = next_offset


def _change(key: TransactionLogKey, value: bytes | None) -> tuple[str, dict[str, object]]:
    if value is None:
        return "transactional id removed", {"transactional_id": key.transactional_id}
    state = decode_value(value)
    return f"transaction {STATE_NAMES[TransactionState(state.status)]}", {
        "transactional_id": key.transactional_id,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "partitions": sorted(f"{topic}-{index}" for topic, index in state.partitions),
    }


__tracebackhide__ = True

# APIs that a test's helpers use for look-ups.
_LOOKS = frozenset(
    {
        *(ApiKey.FETCH, ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.OFFSET_FETCH),
        *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS),
    }
)


class _Noted:
    """A pending or answered request. Its answer is decoded only when somebody looks."""

    __slots__ = (
        *("answer", "at_ms", "begun", "connection", "context", "ended", "exchange", "outcome", "request", "started_ms"),
        "took_ms",
    )

    def __init__(self, begun: int, at_ms: int, started_ms: float, connection: int, context: RequestContext, request: Any) -> None:
        self.begun = begun
        self.at_ms = at_ms
        self.started_ms = started_ms
        self.connection = connection
        self.context = context
        self.request = request
        self.outcome: Outcome = "waiting"
        self.answer: Any = None
        self.ended: int | None = None
        self.took_ms: float | None = None
        self.exchange: Exchange | None = None

    def as_exchange(self) -> Exchange:
        """Return the request as an ``Exchange``."""
        if self.exchange is not None:
            return self.exchange
        context, outcome = self.context, self.outcome
        exchange = Exchange(
            begun=self.begun,
            at_ms=self.at_ms,
            connection=self.connection,
            client_id=context.client_id,
            api=context.api_key,
            version=context.version,
            correlation_id=context.correlation_id,
            request=frozen(self.request),
            outcome=outcome,
            answer=sent_answer(context.api_key, context.version, self.answer) if outcome == "answered" else None,
            ended=self.ended,
            took_ms=self.took_ms,
        )
        if outcome != "waiting":
            self.exchange = exchange
        return exchange


class LiveTimeline(Timeline):
    """A ``Timeline`` that grows while it records. Any thread may read the events; the rest is for the broker's loop.

    ``place`` is the position of the next event.
    """

    def __init__(self, broker: InProcessBroker) -> None:
        super().__init__()
        self._broker = broker
        self._noted: deque[_Noted | Decision] = deque()
        self.place = 0
        self._open: dict[int, _Noted] = {}
        self._connections: dict[tuple[str, int], tuple[Session, int]] = {}
        self._connection_numbers = count(1)
        self._transactions: TransactionWatch | None = None
        self._keeps_records = True
        self.is_recording = False
        self._was_started = False

    def __str__(self) -> str:
        return super().__str__() if self._was_started else "the timeline was never started"

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events so far. Raises RuntimeError if the timeline was never started."""
        if not self._was_started:
            raise RuntimeError("the timeline was never started: call timeline.start() first, or use Broker(timeline=True)")
        return tuple(each.as_exchange() if isinstance(each, _Noted) else each for each in tuple(self._noted))

    def start(self, *, limit: int | None = None, records: bool = True) -> None:
        """Record from now on: the last ``limit`` events, or all. Without ``records``, only their sizes are kept.

        Earlier events stay, up to the limit.
        """
        if limit is not None:
            checked_count("limit", limit, 1)
        self._noted = deque(self._noted, maxlen=limit)
        self._keeps_records = records
        self._was_started = True
        if not self.is_recording:
            self.is_recording = True
            self._broker.add_gate(self, first=True)
            self.look()

    def stop(self) -> None:
        """Stop recording. Recorded events stay; a pending request still gets its answer."""
        if self.is_recording:
            self.look()
            self._broker.remove_gate(self)
            self.is_recording = False
            self._transactions = None

    def clear(self) -> None:
        """Drop the recorded events."""
        self._noted.clear()

    def admit(self, context: RequestContext, request: Any) -> None:
        """Record the request, and admit it."""
        session = context.session
        if session.peer == PEER and context.api_key in _LOOKS:
            return
        self.look()
        clock = self._broker.clock
        noted = _Noted(
            self._next_place(),
            clock.now_ms(),
            clock.monotonic_ms(),
            self._connection_of(session),
            context,
            held_request(request, keeps_records=self._keeps_records),
        )
        # The note keeps the context alive, so its id stays unique.
        self._open[id(context)] = noted
        self._noted.append(noted)

    def release(self, context: RequestContext, response: Any) -> Any:
        """Record the response."""
        noted = self._open.pop(id(context), None)
        if noted is not None:
            self.look()
            outcome: Outcome = "answered"
            if response is CLOSE_CONNECTION:
                outcome = "closed"
            elif response is NO_RESPONSE:
                outcome = "unanswered"
            else:
                noted.answer = held_answer(context.api_key, context.version, response, keeps_records=self._keeps_records)
            noted.ended = self._next_place()
            noted.took_ms = self._broker.clock.monotonic_ms() - noted.started_ms
            # Set last: a thread that sees the outcome sees the rest.
            noted.outcome = outcome
        return response

    def note_line(self, event: str, fields: Mapping[str, object]) -> None:
        """Record a line of the broker's log, if a coordinator reports in it."""
        if self.is_recording and ("group" in fields or "transactional_id" in fields):
            self._decide(event, dict(fields))

    def look(self) -> None:
        """Record new state changes of transactions."""
        if not (self.is_recording and self._keeps_records and self._broker.is_running):
            return
        core = self._broker.core
        if self._transactions is None or self._transactions.core is not core:
            # The process has changed: no request of the old one is pending any more.
            self._transactions = TransactionWatch(core)
            self._open.clear()
        for event, fields in self._transactions.changes():
            self._decide(event, fields)

    def _next_place(self) -> int:
        self.place += 1
        return self.place - 1

    def _decide(self, event: str, about: dict[str, Any]) -> None:
        self._noted.append(Decision(begun=self._next_place(), at_ms=self._broker.clock.now_ms(), what=event, about=about))

    def _connection_of(self, session: Session) -> int:
        peer = session.peer
        if peer == PEER:
            return 0
        known = self._connections.get(peer)
        if known is None or known[0] is not session:
            # A port may be reused.
            known = self._connections[peer] = (session, next(self._connection_numbers))
        return known[1]
