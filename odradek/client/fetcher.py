"""Fetches partitions from their leaders, one request in flight to each, on a ``ClusterClient``.

``next`` returns the records of one partition of one response. By then the next request is on its way, so the leader reads while
the caller works. Markers are left out, and aborted records if the isolation level is read_committed. A position outside of the
log becomes the nearer end of the log.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, cast

from odradek.client.api import ClientError, RequestRefused
from odradek.client.apis import EARLIEST_TIMESTAMP, FETCH, LATEST_TIMESTAMP
from odradek.client.cluster_client import PATIENCE_MS, ClusterClient, is_transient
from odradek.client.known_cluster import Partition, by_topic
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.fetched_batches import fetched_batches
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from odradek.protocol.record_batch import Buffer, ensure_intact
from odradek.protocol.records import Record, read_records

READ_COMMITTED: Final = 1
_MAX_WAIT_MS: Final = 500
_PARTITION_BYTES: Final = 4 * 1024 * 1024
_RESPONSE_BYTES: Final = 16 * 1024 * 1024
_PURPOSE: Final = "fetch"


class Fetched(NamedTuple):
    """The part of a response that belongs to one partition: from ``offset`` on, up to ``next_offset``."""

    partition: Partition
    offset: int
    next_offset: int
    data: Buffer
    # The positions of the visible batches in ``data``.
    batches: list[int]

    def records(self) -> Iterator[Record]:
        """Yield the records. Raises MalformedMessage."""
        for position in self.batches:
            for record in read_records(self.data, position):
                if record.offset >= self.offset:
                    yield record


class Fetcher:
    """The positions of partitions, and the requests in flight. Loop thread only."""

    def __init__(self, cluster: ClusterClient, isolation_level: int) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._positions: dict[Partition, int] = {}
        self._in_flight: dict[int, asyncio.Future[FetchResponse]] = {}
        self._ready: deque[Fetched] = deque()
        # When the cluster last gave an answer that is no error.
        self._answered_ms = cluster.timer.clock.monotonic_ms()
        # The positions of each request. Answers to those of an earlier assignment are dropped.
        self._asked: dict[int, dict[Partition, int]] = {}

    @property
    def positions(self) -> dict[Partition, int]:
        """Return the offset of the next record to fetch, for each partition."""
        return self._positions

    def assign(self, positions: dict[Partition, int]) -> None:
        """Replace all partitions and positions."""
        self._positions = dict(positions)
        self._ready.clear()
        self._asked.clear()

    def drop(self, partition: Partition) -> None:
        """Fetch no more of a partition."""
        self._positions.pop(partition, None)

    def close(self) -> None:
        """Take no more answers."""
        for answer in self._in_flight.values():
            answer.cancel()

    async def next(self, timeout_ms: float | None = None) -> Fetched | None:
        """Return records, or the news that a position has moved on; None after ``timeout_ms``. Raises ClientError."""
        deadline_ms = None if timeout_ms is None else self._cluster.timer.clock.monotonic_ms() + timeout_ms
        while not self._ready:
            left_ms = None if deadline_ms is None else deadline_ms - self._cluster.timer.clock.monotonic_ms()
            if left_ms is not None and left_ms <= 0:
                return None
            await self._turn(left_ms)
        fetched = self._ready.popleft()
        if not self._ready:
            await self._fill()
        return fetched

    async def _turn(self, left_ms: float | None) -> None:
        """Send what can be sent, and take the answers that are there."""
        await self._fill()
        if not self._in_flight:
            await self._cluster.sleep(_MAX_WAIT_MS if left_ms is None else min(_MAX_WAIT_MS, left_ms))
            return
        timeout_s = None if left_ms is None else left_ms / 1000
        await asyncio.wait(self._in_flight.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for leader, answer in list(self._in_flight.items()):
            if answer.done():
                del self._in_flight[leader]
                await self._take(self._asked.pop(leader, {}), answer)

    async def _fill(self) -> None:
        """Send a request to each leader that has none."""
        try:
            by_leader = self._cluster.by_leader(self._positions)
        except RequestRefused as error:
            await self._back_off(error)
            return
        for leader, partitions in by_leader.items():
            if leader not in self._in_flight:
                self._asked[leader] = asked = {partition: self._positions[partition] for partition in partitions}
                self._in_flight[leader] = self._cluster.node(leader, _PURPOSE).request(FETCH, self._request(asked))

    def _request(self, asked: dict[Partition, int]) -> FetchRequest:
        rows = [
            (topic, FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES))
            for (topic, index), offset in asked.items()
        ]
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_RESPONSE_BYTES,
            isolation_level=self._isolation_level,
            topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in by_topic(rows).items()],
        )

    async def _take(self, asked: dict[Partition, int], answer: "asyncio.Future[FetchResponse]") -> None:
        try:
            response = answer.result()
        except ClientError as error:
            await self._back_off(error)
            return
        failure = None
        for topic in response.responses:
            for data in topic.partitions:
                partition = str(topic.topic), int(data.partition_index)
                if self._positions.get(partition) != asked.get(partition):
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._reset(partition)
                elif data.error_code:
                    failure = RequestRefused(f"{partition[0]}-{partition[1]}", data.error_code)
                else:
                    self._answered_ms = self._cluster.timer.clock.monotonic_ms()
                    self._keep(partition, data)
        if failure is not None:
            await self._back_off(failure)

    async def _back_off(self, error: ClientError) -> None:
        """Wait a moment after a transient error; raise any other, and one that does not pass."""
        if not is_transient(error) or self._cluster.timer.clock.monotonic_ms() - self._answered_ms > PATIENCE_MS:
            raise error
        await self._cluster.back_off({topic for topic, _ in self._positions})

    def _keep(self, partition: Partition, data: PartitionData) -> None:
        buffer = cast("Buffer", data.records or b"")
        if not len(buffer):
            return
        offset = next_offset = self._positions[partition]
        visible = []
        try:
            for position, header, is_visible in fetched_batches(buffer, data.aborted_transactions):
                ensure_intact(header, buffer, position)
                next_offset = header.next_offset
                if is_visible:
                    visible.append(position)
        except (KafkaError, MalformedMessage) as error:
            subject = f"{partition[0]}-{partition[1]} from offset {next_offset}"
            raise RequestRefused(subject, ErrorCode.CORRUPT_MESSAGE, error.reason) from error
        if next_offset > offset:
            self._positions[partition] = next_offset
            self._ready.append(Fetched(partition, offset, next_offset, buffer, visible))

    async def _reset(self, partition: Partition) -> None:
        position = self._positions[partition]
        earliest = (await self._cluster.list_offsets({partition: EARLIEST_TIMESTAMP}))[partition]
        latest = (await self._cluster.list_offsets({partition: LATEST_TIMESTAMP}))[partition]
        self._positions[partition] = min(max(position, earliest), latest)
