"""A producer of transactions over a raw socket, of either kind, that sends an unanswered request again, as clients do.

TV1     AddPartitionsToTxn and AddOffsetsToTxn say what the transaction will write to; one epoch for all transactions
TV2     Produce and TxnOffsetCommit do that by themselves; EndTxn gives an epoch for the next transaction (KIP-890)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.raw_client import RawClient

DEADLINE_S = 10.0
_BACKOFF_S = 0.005
TRANSACTION_TIMEOUT_MS = 60_000
# Error codes after which a client retries.
_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """The versions of requests that a client sends."""

    name: str
    produce: int
    txn_offset_commit: int
    end_txn: int
    adds_partitions: bool


TV1 = Kind("TV1", produce=11, txn_offset_commit=4, end_txn=4, adds_partitions=True)
TV2 = Kind("TV2", produce=12, txn_offset_commit=5, end_txn=5, adds_partitions=False)


class Refused(Exception):
    """The broker answered with a non-retriable error."""

    def __init__(self, code: int) -> None:
        super().__init__(ErrorCode(code).name)
        self.code = ErrorCode(code)


class Appended(NamedTuple):
    """Acknowledged records and their place."""

    partition: Partition
    base_offset: int
    values: tuple[bytes, ...]


class Producer:
    """One instance of a transactional id. ``appended`` has its acknowledged records."""

    def __init__(self, transactional_id: str, kind: Kind) -> None:
        self.transactional_id = transactional_id
        self.kind = kind
        self.producer_id = self.epoch = -1
        self.appended: list[Appended] = []
        self._sequences: dict[Partition, int] = {}
        self._client: RawClient | None = None

    def connect(self, client: RawClient) -> None:
        """Use ``client`` from now on."""
        self._client = client

    def successor(self) -> Producer:
        """The next instance of the transactional id, which shares no state with this one."""
        successor = Producer(self.transactional_id, self.kind)
        successor._client = self._client
        return successor

    def init(self, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> None:
        """InitProducerId."""
        fields = {"transactional_id": self.transactional_id, "transaction_timeout_ms": timeout_ms}
        answer = self._call(ApiKey.INIT_PRODUCER_ID, 5, lambda answer: [answer.error_code], **fields)
        self._take(answer)

    def add_partitions(self, partitions: Sequence[Partition]) -> None:
        """AddPartitionsToTxn."""
        self._call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            lambda answer: [
                each.partition_error_code for topic in answer.results_by_topic_v3_and_below for each in topic.results_by_partition
            ],
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": topic, "partitions": indexes} for topic, indexes in _by_topic(partitions)],
        )

    def batch(self, partition: Partition, values: Sequence[bytes], timestamp_ms: int) -> bytes:
        """The next batch for a partition; it may be produced repeatedly."""
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        return build_batch(
            [Record(value=value, timestamp=timestamp_ms) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )

    def produce(self, batches: Mapping[Partition, tuple[bytes, tuple[bytes, ...]]]) -> None:
        """Produce (batch, values) to each partition, in one request."""
        topics = [
            {"name": topic, "partition_data": [{"index": index, "records": batches[topic, index][0]} for index in indexes]}
            for topic, indexes in _by_topic(batches)
        ]
        answer = self._call(
            ApiKey.PRODUCE,
            self.kind.produce,
            lambda answer: [each.error_code for topic in answer.responses for each in topic.partition_responses],
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5000,
            topic_data=topics,
        )
        for topic in answer.responses:
            for each in topic.partition_responses:
                partition = (topic.name, each.index)
                self.appended.append(Appended(partition, each.base_offset, batches[partition][1]))

    def add_offsets(self, group_id: str) -> None:
        """AddOffsetsToTxn."""
        self._call(ApiKey.ADD_OFFSETS_TO_TXN, 3, lambda answer: [answer.error_code], **self._identity(), group_id=group_id)

    def commit_offset(self, group_id: str, partition: Partition, offset: int) -> None:
        """TxnOffsetCommit."""
        topic, index = partition
        self._call(
            ApiKey.TXN_OFFSET_COMMIT,
            self.kind.txn_offset_commit,
            lambda answer: [each.error_code for topic in answer.topics for each in topic.partitions],
            **self._identity(),
            group_id=group_id,
            topics=[{"name": topic, "partitions": [{"partition_index": index, "committed_offset": offset}]}],
        )

    def end(self, *, is_commit: bool) -> None:
        """EndTxn."""
        answer = self._call(
            ApiKey.END_TXN, self.kind.end_txn, lambda answer: [answer.error_code], **self._identity(), committed=is_commit
        )
        if self.kind is TV2:
            self._take(answer)

    def ask_nothing(self) -> None:
        """ApiVersions."""
        self._call(ApiKey.API_VERSIONS, 2, lambda answer: [answer.error_code])

    def _take(self, answer: Any) -> None:
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
            self._sequences = {}
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def _identity(self) -> dict[str, Any]:
        return {"transactional_id": self.transactional_id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def _call(self, api_key: ApiKey, version: int, errors: Any, **fields: Any) -> Any:
        """The response without an error. Raises Refused; OSError if the broker is gone; AssertionError past the deadline."""
        assert self._client is not None
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            answer = self._client.call(api_key, version, **fields)
            codes = {code for code in errors(answer) if code != ErrorCode.NONE}
            if not codes:
                return answer
            if codes - _AGAIN:
                raise Refused(min(codes - _AGAIN))
            assert time.monotonic() < deadline_s, f"{api_key.name} is still answered {sorted(codes)} after {DEADLINE_S} s"
            time.sleep(_BACKOFF_S)


def _by_topic(partitions: Any) -> list[tuple[str, list[int]]]:
    return [(topic, [index for _, index in group]) for topic, group in groupby(sorted(partitions), key=lambda each: each[0])]
