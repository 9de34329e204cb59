"""The producers and open transactions on partitions, and the detection of hanging transactions.

A transaction hangs on a partition if two things are true. It has been open there for longer than any transaction may last. And
no coordinator has the partition in a transaction of that producer: none knows the producer id, or the transactional id has
another transaction now. The last stable offset does not pass a hanging transaction, so consumers with read_committed stop at
it.

Source: ``FindHangingTransactionsCommand`` of Apache Kafka's tools; KIP-664.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from odradek.cli.cluster import Cluster, Refused, check, patiently
from odradek.client.admin_apis import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS
from odradek.client.apis import TRANSACTIONAL_ID
from odradek.client.known_cluster import Partition, by_topic, name_of
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest, TransactionState
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest, ListTransactionsResponse

# Partitions in one request.
_BATCH = 500


@dataclass(frozen=True, slots=True)
class ProducerOnPartition:
    """A producer's state on a partition. ``start_offset`` is the first offset of its open transaction, None without one.

    ``coordinator_epoch`` is that of its last marker, -1 before the first. ``last_timestamp`` is in ms.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp: int
    start_offset: int | None


def partitions_of(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None = None
) -> dict[Partition, int]:
    """Return the leaders of the partitions of a topic, of one of them, or of all topics.

    With ``broker_id``, only partitions with a replica on this broker are returned. Raises Refused: UNKNOWN_TOPIC_OR_PARTITION
    for a topic or a partition that does not exist.
    """
    leaders = cluster.leaders(None if topic is None else [topic], broker_id)
    if topic is None or partition is None:
        return leaders
    if (topic, partition) not in leaders:
        raise Refused(f"{topic}-{partition}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {(topic, partition): leaders[topic, partition]}


def describe_producers(
    cluster: Cluster, leaders: dict[Partition, int], broker_id: int | None = None
) -> tuple[list[ProducerOnPartition], list[Refused]]:
    """Return the producers of each partition, as its leader or ``broker_id`` has them, and the refusals.

    A broker that does not answer is added to ``cluster.unreachable``.
    """
    found: list[ProducerOnPartition] = []
    refusals: list[Refused] = []
    by_node: dict[int, list[Partition]] = {}
    for partition, leader in leaders.items():
        if broker_id is None and leader < 0:
            refusals.append(Refused(name_of(partition), ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            by_node.setdefault(leader if broker_id is None else broker_id, []).append(partition)
    for node_id, partitions in by_node.items():
        for start in range(0, len(partitions), _BATCH):
            for partition, described in _ask(cluster, node_id, partitions[start : start + _BATCH]):
                if described.error_code:
                    refusals.append(Refused(name_of(partition), described.error_code, described.error_message))
                found += [_producer(partition, each) for each in described.active_producers]
    return found, refusals


def _ask(cluster: Cluster, node_id: int, partitions: list[Partition]) -> Iterator[tuple[Partition, PartitionResponse]]:
    topics = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions).items()]
    request = DescribeProducersRequest(topics=topics)
    answer = cluster.tried(lambda: cluster.node(node_id).call(DESCRIBE_PRODUCERS, request))
    for answered in () if answer is None else answer.topics:
        for described in answered.partitions:
            yield (str(answered.name), int(described.partition_index)), described


def hanging(cluster: Cluster, candidates: list[ProducerOnPartition]) -> list[ProducerOnPartition]:
    """Return the candidates that no coordinator will end, unless the coordinator does not answer. Raises Refused."""
    if not candidates:
        return []
    transactional_ids, are_all = _transactional_ids(cluster, {each.producer_id for each in candidates})
    expected: dict[str | None, set[Partition] | None] = {
        each: cluster.tried(partial(_partitions, cluster, each)) for each in set(transactional_ids.values())
    }
    # For producer ids that are unknown to the coordinators that answered.
    expected[None] = set() if are_all else None
    found = []
    for each in candidates:
        partitions = expected[transactional_ids.get(each.producer_id)]
        if partitions is not None and (each.topic, each.partition) not in partitions:
            found.append(each)
    return found


def describe_transaction(cluster: Cluster, transactional_id: str) -> tuple[int, TransactionState]:
    """Return the coordinator's node id, and DescribeTransactions' TransactionState. Raises Refused."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    def attempt() -> tuple[int, TransactionState]:
        connection, node = cluster.coordinator(transactional_id, TRANSACTIONAL_ID)
        described = connection.call(DESCRIBE_TRANSACTIONS, request).transaction_states[0]
        check(transactional_id, described.error_code)
        return node.node_id, described

    return patiently(attempt)


def partitions_in(described: TransactionState) -> set[Partition]:
    """Return the partitions of a TransactionState."""
    return {(str(topic.topic), int(index)) for topic in described.topics for index in topic.partitions}


def _transactional_ids(cluster: Cluster, producer_ids: set[int]) -> tuple[dict[int, str], bool]:
    """Return the transactional id of each producer id that a coordinator knows, and whether all coordinators answered."""
    request = ListTransactionsRequest(producer_id_filters=sorted(producer_ids))
    found: dict[int, str] = {}
    are_all = True
    for node in cluster.nodes():

        def attempt(node_id: int = node.node_id) -> ListTransactionsResponse:
            answer = cluster.node(node_id).call(LIST_TRANSACTIONS, request)
            check(f"transactions of broker {node_id}", answer.error_code)
            return answer

        answer = cluster.tried(partial(patiently, attempt))
        if answer is None:
            are_all = False
        else:
            found |= {int(each.producer_id): str(each.transactional_id) for each in answer.transaction_states}
    return found, are_all


def _partitions(cluster: Cluster, transactional_id: str) -> set[Partition]:
    """Return the partitions that the coordinator will write markers to; none for an unknown transactional id."""
    try:
        _, described = describe_transaction(cluster, transactional_id)
    except Refused as refusal:
        if refusal.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return set()
        raise
    return partitions_in(described)


def _producer(partition: Partition, described: ProducerState) -> ProducerOnPartition:
    start_offset = described.current_txn_start_offset
    return ProducerOnPartition(
        *partition,
        int(described.producer_id),
        described.producer_epoch,
        described.coordinator_epoch,
        described.last_sequence,
        described.last_timestamp,
        start_offset if start_offset >= 0 else None,
    )
