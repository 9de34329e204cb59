"""A ShareFetch: reads the partitions of a member, acquires records, and waits if there are not enough.

A fetch reads each share partition at its next fetch offset. If that yields ``min_bytes``, the records are acquired and the
response is complete. Otherwise the fetch waits in a purgatory of its own, watched under

    (group, topic id, partition)    records are released, a lock expires, room in the window, the state is loaded
    (topic id, partition)           records are appended, the leader changes

Nothing is acquired by a fetch that goes on waiting. Kafka's classes are ShareFetch and DelayedShareFetch. Its fetch lock, which
keeps two threads from one share partition, is not needed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.share.acquisition import AcquireRequest
from odradek.broker.share.read_batches import read_batches, slice_of
from odradek.broker.share.share_partition import SharePartition, SharePartitionState
from odradek.common.logging import log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_fetch import PartitionData
from odradek.storage.log.local_log import LogSlice  # noqa: TC001  the type of a compiled tuple's field
from odradek.timing.timer import DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.share.share_sessions import TopicIdPartition

_NO_RECORDS: Final = b""
_UNUSABLE: Final = frozenset({SharePartitionState.FAILED, SharePartitionState.FENCED})


class ShareFetchParams(NamedTuple):
    """The wishes of a fetch. If ``is_committed_only``, reads end at the last stable offset, without aborted records."""

    member_id: str
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    has_record_limit: bool
    is_committed_only: bool


class _Found(NamedTuple):
    """The records read for a share partition, and the offset they were read from."""

    fetch_offset: int
    records: LogSlice | None


Results = dict["TopicIdPartition", PartitionData]
_Reading = dict["TopicIdPartition", "_Found | KafkaError"]


def failed(partition: int, error: KafkaError) -> PartitionData:
    """Return the data of a partition with an error. Kafka does not send the error's message."""
    return PartitionData(partition_index=partition, error_code=error.code, records=_NO_RECORDS)


class ShareFetch:
    """The partitions of one ShareFetch, in the order in which they are read."""

    __slots__ = ("_errors", "_params", "_partitions")

    def __init__(self, params: ShareFetchParams, partitions: Mapping[TopicIdPartition, SharePartition | KafkaError]) -> None:
        self._params = params
        self._partitions: dict[TopicIdPartition, SharePartition] = {}
        self._errors: dict[TopicIdPartition, KafkaError] = {}
        for name, found in partitions.items():
            if isinstance(found, SharePartition):
                self._partitions[name] = found
            else:
                self._errors[name] = found

    @property
    def has_only_errors(self) -> bool:
        """Return whether no partition is left to wait for."""
        self._drop_unusable()
        return not self._partitions

    def _drop_unusable(self) -> None:
        """Turn partitions that cannot be used any more into errors."""
        for name, partition in tuple(self._partitions.items()):
            if partition.state in _UNUSABLE:
                del self._partitions[name]
                self._errors[name] = partition.error or KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def read(self) -> tuple[_Reading, bool]:
        """Read the partitions. Return what was found, and whether it is enough to answer."""
        self._drop_unusable()
        readable = [(name, each) for name, each in self._partitions.items() if each.has_room]
        if not readable:
            return {}, False
        if self._params.max_bytes < 0:
            return {name: KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) for name, _ in readable}, True
        share = max(self._params.max_bytes // len(readable), 1)
        left, total = self._params.max_bytes, 0
        must_answer = False
        reading: _Reading = {}
        for name, partition in readable:
            fetch_offset = partition.window.next_fetch_offset()
            try:
                records = self._read_partition(partition, fetch_offset, min(share, left), not total)
            except KafkaError as error:
                reading[name] = error
                must_answer = True
                continue
            reading[name] = _Found(fetch_offset, records)
            if records is not None:
                total += len(records)
                left = max(left - len(records), 0)
                must_answer = must_answer or _is_behind(partition, fetch_offset)
        return reading, must_answer or total >= self._params.min_bytes

    def _read_partition(self, partition: SharePartition, fetch_offset: int, max_bytes: int, min_one: bool) -> LogSlice | None:
        source = partition.partition
        source_log = source.require_leader_log()
        upper = source.last_stable_offset if self._params.is_committed_only else source.high_watermark
        return source_log.read(fetch_offset, max_bytes, upper_offset=upper, min_one_batch=min_one)

    def acquire(self, reading: _Reading) -> Results:
        """Acquire the records that were found. Return the response's data of each partition that was read or has an error."""
        results: Results = {name: failed(name.partition, error) for name, error in self._errors.items()}
        left = self._params.max_records
        for name, found in reading.items():
            partition = self._partitions[name]
            try:
                if isinstance(found, KafkaError):
                    results[name] = _after_error(name, partition, found)
                    continue
                data = self._acquire_partition(name, partition, found, left)
            except KafkaError as error:
                data = failed(name.partition, error)
            left -= sum(each.last_offset - each.first_offset + 1 for each in data.acquired_records)
            results[name] = data
        return results

    def _acquire_partition(self, name: TopicIdPartition, partition: SharePartition, found: _Found, left: int) -> PartitionData:
        records = found.records
        if records is None or left <= 0:
            return PartitionData(partition_index=name.partition, records=_NO_RECORDS)
        params, window = self._params, partition.window
        # Records up to there can be acquired at most: those in flight, and as many new ones.
        batches = read_batches(records, max(found.fetch_offset - 1, window.end_offset) + left)
        aborted: list[tuple[int, int]] = []
        if params.is_committed_only:
            source_log = partition.partition.require_leader_log()
            aborted = source_log.aborted_in(records, found.fetch_offset, partition.partition.last_stable_offset)
        request = AcquireRequest(
            params.member_id, found.fetch_offset, left, params.batch_size, params.has_record_limit, lock_deadline_ms=0.0
        )
        acquired = partition.acquire(request, batches, aborted)
        if not acquired:
            return PartitionData(partition_index=name.partition, records=_NO_RECORDS)
        part = slice_of(records, batches, acquired[0].first_offset, acquired[-1].last_offset)
        partition.partition.fetched_bytes += len(part)
        return PartitionData(partition_index=name.partition, records=part, acquired_records=acquired)


def _after_error(name: TopicIdPartition, partition: SharePartition, error: KafkaError) -> PartitionData:
    """Return the data after a failed read. If the log no longer has the offset, the window follows the log, without an error."""
    source_log = partition.partition.log
    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or source_log is None:
        return failed(name.partition, error)
    partition.window.log_starts_at(source_log.log_start_offset)
    return PartitionData(partition_index=name.partition, records=_NO_RECORDS)


def _is_behind(partition: SharePartition, fetch_offset: int) -> bool:
    """Return whether a later segment has more. A read ends with its segment, so waiting would not help."""
    source_log = partition.partition.log
    return source_log is not None and fetch_offset < source_log.segments.active.base_offset


class DelayedShareFetch(DelayedOperation):
    """A ShareFetch that waits until it finds enough, or for its deadline."""

    __slots__ = ("_fetch", "_reading", "_respond")

    def __init__(self, deadline_ms: float, fetch: ShareFetch, respond: Callable[[Results], None]) -> None:
        super().__init__(deadline_ms)
        self._fetch = fetch
        self._reading: _Reading | None = None
        self._respond = respond

    def try_complete(self) -> bool:
        """Complete the fetch if it finds enough. A failure is answered to the fetch, never to the producer that appended."""
        try:
            if not self._fetch.has_only_errors:
                reading, is_enough = self._fetch.read()
                if not is_enough:
                    return False
                self._reading = reading
        except Exception as error:  # noqa: BLE001  no error may reach the append
            log.error("cannot retry a delayed share fetch", error)
        return self.force_complete()

    def on_complete(self) -> None:
        """See DelayedOperation."""
        reading, self._reading = self._reading, None
        self._respond(self._fetch.acquire(self._fetch.read()[0] if reading is None else reading))
