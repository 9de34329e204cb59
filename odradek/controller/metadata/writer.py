"""The only writer of the metadata: decisions are appended, replayed into the image, and published.

An operation's records are one synced batch of the metadata log (``MetadataLog``). Once committed, they are replayed into the
image, and the changes are published (``cluster_metadata``) to partitions, coordinators and configs. So an answered operation is
on disk; an unanswered one is there completely or not at all. If a publisher could not finish, ``Reconciliation`` finishes at the
next start.

An operation answers with a Reply, completed when the records are committed. Here that is before the call returns, on the loop
thread, for one fsync; metadata changes are rare. The records of a large operation are encoded and replayed in slices. Operations
submitted meanwhile are queued.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from odradek.common.config import BrokerConfig
from odradek.common.logging import LineLimit
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.cluster_metadata import MetadataPublisher, Publishers, PublishingOrder
from odradek.controller.metadata.decisions import parts
from odradek.controller.metadata.features import BOOTSTRAP_RECORDS, unknown_level
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.loader import MetadataLoader
from odradek.controller.metadata.metadata_log import MetadataBatch, MetadataLog, UnknownFeatureLevel
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import MetadataRecord
from odradek.protocol.metadata_records.log_control import AbortTransactionRecord
from odradek.timing.background import Background, InlineBackground
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices

# The numbers of records committed at once, in some milliseconds, and replayed at once.
AT_ONCE: Final = 250
_REPLAYED_TOGETHER: Final = 200

T = TypeVar("T")

# The answer of an operation, and its records.
Decided = tuple[T, Sequence[MetadataRecord]]


class ControllerHost(NamedTuple):
    """The node's services for its controller. Without ``slices`` all operations are carried out at once."""

    config: BrokerConfig
    clock: Clock
    new_uuid: Callable[[], UUID]
    random: Random
    background: Background = InlineBackground()
    slices: Slices | None = None


class MetadataWriter:
    """The writer of the metadata. ``image`` is read-only for others."""

    def __init__(self, log: MetadataLog, host: ControllerHost) -> None:
        """Set up the writer; a subclass must call ``_load``."""
        self.image = MetadataImage()
        self.clock = host.clock
        self._log = log
        self._publishers = Publishers()
        # With a clock that stands still, all work is done in the first slice.
        self._slices = host.slices or Slices(lambda: 0.0, lambda _: None)
        # True during a large operation; then the operations that wait for it.
        self._is_committing = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._line_limit = LineLimit(host.clock)
        self._snapshots = SnapshotGenerator(log, self.image, host.config, host.clock, host.background)

    @property
    def log_end_offset(self) -> int:
        """Return the offset after the last metadata record. One less is the epoch of the finalized features."""
        return self._log.end_offset

    @property
    def kraft_version(self) -> int:
        """Return the level of ``kraft.version``."""
        return self._log.kraft_version

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` for every later change, when it is committed and in the image."""
        self._publishers.add(publisher, order)

    def change(self, decide: Callable[[MetadataImage], Decided[T]]) -> Reply[T | KafkaError]:
        """Commit the records of ``decide(image)``. Reply with its answer, or the error that it raises."""
        return self._operate(lambda: decide(self.image))

    def write(self, records: Sequence[MetadataRecord]) -> Reply[KafkaError | None]:
        """Commit records that need no decision."""
        return self._operate(lambda: (None, records))

    def close(self) -> None:
        """Close the metadata log."""
        self._log.close(now_ms=self.clock.now_ms())

    def _load(self) -> None:
        """Replay the log, and write the first records of a new one.

        Raises MetadataUnreadable, KafkaError if the log fails.
        """
        loader = MetadataLoader(self.image)
        loader.load(self._log.read_snapshot(), lambda _: self._log.snapshot_path)
        loader.load(self._behind_snapshot(), self._log.path_at)
        problem = unknown_level(self.image.features)
        if problem is not None:
            raise UnknownFeatureLevel(self._log.path_at(self._log.end_offset), problem)
        if loader.is_in_transaction:
            reason = "The controller that began the transaction has stopped."
            self._log.append([AbortTransactionRecord(reason=reason)], now_ms=self.clock.now_ms())
        if not self.image.features:
            self._commit([*self._first_records(), *self._log.bootstrap])
        self._take_over()

    def _first_records(self) -> Sequence[MetadataRecord]:
        """Return the records that a new log begins with."""
        return BOOTSTRAP_RECORDS

    def _take_over(self) -> None:
        """Start as controller: the log is loaded, and no other controller writes it."""

    def _operate(self, decide: Callable[[], Decided[T]]) -> Reply[T | KafkaError]:
        """Commit the records of ``decide()``. Reply with its answer after the commit, or with the error of either.

        With one controller, a small operation is mostly committed before this returns. Callers must not rely on that.
        """
        reply: Reply[T | KafkaError] = Reply()
        self._in_turn(lambda: self._carry_out(decide, reply))
        return reply

    def _operate_in_slices(self, deciding: Generator[None, None, Decided[T]]) -> Reply[T | KafkaError]:
        """Commit like ``_operate``, for an operation whose decision takes long."""
        reply: Reply[T | KafkaError] = Reply()
        self._in_turn(lambda: self._begin(self._deciding(deciding), reply))
        return reply

    def _in_turn(self, operation: Callable[[], None]) -> None:
        """Run ``operation`` now, or after the large operation under way and those already waiting."""
        if self._is_committing:
            self._waiting.append(operation)
        else:
            operation()

    def _carry_out(self, decide: Callable[[], Decided[T]], reply: Reply[T | KafkaError]) -> None:
        try:
            answer, records = decide()
            if len(records) > AT_ONCE:
                self._begin(self._commit_in_slices(records, answer), reply)
                return
            self._commit(records)
        except KafkaError as error:
            self._log_fault(error)
            reply.complete(error)
        else:
            reply.complete(answer)

    def _begin(self, work: Generator[Reply[Any] | None, Any, T], reply: Reply[T | KafkaError]) -> None:
        """Carry out a large operation, while others wait."""
        self._is_committing = True
        self._slices.run(work).when_done(lambda outcome: self._committed(reply, outcome))

    def _deciding(self, deciding: Generator[None, None, Decided[T]]) -> Generator[Reply[Any] | None, Any, T]:
        answer, records = yield from deciding
        return (yield from self._commit_in_slices(records, answer))

    def _commit_in_slices(self, records: Sequence[MetadataRecord], answer: T) -> Generator[Reply[Any] | None, Any, T]:
        if records:
            size_bytes = yield from self._log.append_in_slices(records, now_ms=self.clock.now_ms())
            # Everything is committed. Meanwhile, readers of the image find some of the topics, each complete.
            for part in parts(records, _REPLAYED_TOGETHER):
                yield None
                self._replay(part)
            self._snapshots.appended(size_bytes)
        return answer

    def _committed(self, reply: Reply[T | KafkaError], outcome: T | Exception) -> None:
        """End a large operation, successful or not, and run the waiting ones."""
        self._is_committing = False
        if isinstance(outcome, KafkaError):
            self._log_fault(outcome)
        elif isinstance(outcome, Exception):
            broker_log.error("a change of the metadata failed", outcome)
            outcome = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        reply.complete(outcome)
        while self._waiting and not self._is_committing:
            self._waiting.popleft()()

    def _log_fault(self, error: KafkaError) -> None:
        """Log an error of the disk, but not a client's error."""
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            extra_fields = self._line_limit.admit(error.reason)
            if extra_fields is not None:
                broker_log.tell("error", "a change of the metadata failed", {"reason": error.reason, **extra_fields})

    def _behind_snapshot(self) -> Iterator[MetadataBatch]:
        for batch in self._log.read_all():
            self._snapshots.found(batch.size_bytes)
            yield batch

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            self._publish(records, self._log.append(records, now_ms=self.clock.now_ms()))

    def _publish(self, records: Sequence[MetadataRecord], size_bytes: int) -> None:
        self._replay(records)
        # After the publishers: a snapshot forgets deleted topics, so their directories must be gone by then.
        self._snapshots.appended(size_bytes)

    def _replay(self, records: Sequence[MetadataRecord]) -> None:
        """Replay the appended records into the image, and publish the changes."""
        self._publishers.publish(self.image.replay(records), self.image)
