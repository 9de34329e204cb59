"""What producers and others ask, as canonical messages, and the error codes in the answers."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.campaigns.simulation.transactions.membership import Held
    from tests.campaigns.simulation.transactions.plan import ProducerPlan

_INIT = messages(ApiKey.INIT_PRODUCER_ID)
_ADD = messages(ApiKey.ADD_PARTITIONS_TO_TXN)
_ADD_OFFSETS = messages(ApiKey.ADD_OFFSETS_TO_TXN)
_TXN_COMMIT = messages(ApiKey.TXN_OFFSET_COMMIT)
_END = messages(ApiKey.END_TXN)
_COMMIT = messages(ApiKey.OFFSET_COMMIT)
_FETCH = messages(ApiKey.OFFSET_FETCH)
_DELETE = messages(ApiKey.DELETE_GROUPS)
_MARKERS = messages(ApiKey.WRITE_TXN_MARKERS)

Partition = tuple[str, int]
Identity = tuple[int, int]


def _by_topic(partitions: Iterable[Partition]) -> list[tuple[str, list[int]]]:
    return [(topic, [index for _, index in of]) for topic, of in groupby(sorted(partitions), key=lambda each: each[0])]


def init(plan: ProducerPlan, known: Identity) -> Any:
    """InitProducerId of who thinks it is ``known``, (-1, -1) for nobody."""
    return _INIT.InitProducerIdRequest(
        transactional_id=plan.transactional_id,
        transaction_timeout_ms=plan.timeout_ms,
        producer_id=known[0],
        producer_epoch=known[1],
        enable2_pc=plan.is_two_phase,
    )


def add_partitions(transactional_id: str, identity: Identity, partitions: Iterable[Partition]) -> Any:
    """AddPartitionsToTxn, as clients ask."""
    topics = [_ADD.AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in _by_topic(partitions)]
    return _ADD.AddPartitionsToTxnRequest(
        transactions=[
            _ADD.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id, producer_id=identity[0], producer_epoch=identity[1], topics=topics
            )
        ]
    )


def added(response: Any) -> int:
    """The worst of its error codes: one that may not be tried again, if there is any."""
    topics = response.results_by_transaction[0].topic_results
    codes = [partition.partition_error_code for topic in topics for partition in topic.results_by_partition]
    return next((code for code in codes if code), 0)


def add_offsets(transactional_id: str, identity: Identity, group_id: str) -> Any:
    """AddOffsetsToTxn."""
    return _ADD_OFFSETS.AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=identity[0], producer_epoch=identity[1], group_id=group_id
    )


def produce(
    transactional_id: str, identity: Identity, batches: Mapping[Partition, tuple[int, Sequence[bytes]]], now_ms: int
) -> ProduceRequest:
    """Produce, topics by name: (first sequence number, values) for each partition."""
    topics: list[Any] = []
    for topic, indexes in _by_topic(batches):
        of_topic = []
        for index in indexes:
            sequence, values = batches[topic, index]
            batch = build_batch(
                [Record(timestamp=now_ms, value=value) for value in values],
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=sequence,
                transactional=True,
            )
            of_topic.append((index, batch))
        topics.append((topic, of_topic))
    return ProduceRequest(transactional_id, -1, 1_000, topics)


def txn_offset_commit(
    transactional_id: str, identity: Identity, group_id: str, offsets: Mapping[Partition, int], held: Held | None = None
) -> Any:
    """TxnOffsetCommit by a member of the group, or by a producer that names none."""
    partition_of = _TXN_COMMIT.TxnOffsetCommitRequestPartition
    return _TXN_COMMIT.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=identity[0],
        producer_epoch=identity[1],
        generation_id_or_member_epoch=-1 if held is None else held.generation,
        member_id="" if held is None else held.member_id,
        group_instance_id=None if held is None else held.instance_id,
        topics=[
            _TXN_COMMIT.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[partition_of(partition_index=index, committed_offset=offsets[topic, index]) for index in indexes],
            )
            for topic, indexes in _by_topic(offsets)
        ],
    )


def offsets_committed(response: Any) -> int:
    """The first of its error codes that is none of success."""
    return next((each.error_code for topic in response.topics for each in topic.partitions if each.error_code), 0)


def end(transactional_id: str, identity: Identity, *, commit: bool) -> Any:
    """EndTxn."""
    return _END.EndTxnRequest(
        transactional_id=transactional_id, producer_id=identity[0], producer_epoch=identity[1], committed=commit
    )


def commit(group_id: str, partition: Partition, offset: int) -> Any:
    """OffsetCommit by somebody who is no member."""
    each = _COMMIT.OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=offset)
    return _COMMIT.OffsetCommitRequest(
        group_id=group_id, topics=[_COMMIT.OffsetCommitRequestTopic(name=partition[0], partitions=[each])]
    )


def fetch(group_id: str, partitions: Iterable[Partition], *, require_stable: bool) -> Any:
    """OffsetFetch."""
    topics = [_FETCH.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes) for topic, indexes in _by_topic(partitions)]
    return _FETCH.OffsetFetchRequest(
        groups=[_FETCH.OffsetFetchRequestGroup(group_id=group_id, topics=topics)], require_stable=require_stable
    )


def delete(group_id: str) -> Any:
    """DeleteGroups."""
    return _DELETE.DeleteGroupsRequest(groups_names=[group_id])


def marker(identity: Identity, partition: Partition, *, is_commit: bool, coordinator_epoch: int, version: int) -> Any:
    """WriteTxnMarkers for one partition."""
    return _MARKERS.WriteTxnMarkersRequest(
        markers=[
            _MARKERS.WritableTxnMarker(
                producer_id=identity[0],
                producer_epoch=identity[1],
                transaction_result=is_commit,
                topics=[_MARKERS.WritableTxnMarkerTopic(name=partition[0], partition_indexes=[partition[1]])],
                coordinator_epoch=coordinator_epoch,
                transaction_version=version,
            )
        ]
    )


def error_code(response: Any) -> int:
    """Of a response that has one for all."""
    code: int = response.error_code
    return code
