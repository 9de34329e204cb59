"""What each broker says of the cluster, asked at its own port, past the network that is harmed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from odradek.client.api import Api, ClientError, RequestT, ResponseT
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataResponse

_METADATA: Api[MetadataRequest, MetadataResponse] = Api(ApiKey.METADATA)
_LIST_OFFSETS: Api[ListOffsetsRequest, ListOffsetsResponse] = Api(ApiKey.LIST_OFFSETS)
_LIST_TRANSACTIONS: Api[ListTransactionsRequest, ListTransactionsResponse] = Api(ApiKey.LIST_TRANSACTIONS)
_INIT_PRODUCER_ID: Api[InitProducerIdRequest, InitProducerIdResponse] = Api(ApiKey.INIT_PRODUCER_ID)
_TIMEOUT_S = 5.0
_LATEST = -1
_ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})

TopicPartition = tuple[str, int]


class PartitionView(NamedTuple):
    """What a broker says of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


Views = Mapping[int, Mapping[TopicPartition, PartitionView]]


class Silent(Exception):
    """A broker did not answer, or with an error."""


def ask(port: int, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
    """The answer of the broker at ``port``. Raises Silent."""
    try:
        client = BlockingClient("127.0.0.1", port, "observer", _TIMEOUT_S)
        try:
            return client.call(api, request)
        finally:
            client.close()
    except ClientError as error:
        raise Silent(f"{port}: {error.reason}") from error


def partitions_by(port: int) -> dict[TopicPartition, PartitionView]:
    """What a broker says of all partitions. Raises Silent."""
    response = ask(port, _METADATA, MetadataRequest(topics=None))
    return {
        (topic.name or "", each.partition_index): PartitionView(each.leader_id, each.leader_epoch, tuple(sorted(each.isr_nodes)))
        for topic in response.topics
        for each in topic.partitions
    }


def are_in_sync(views: Views, nodes: Sequence[int]) -> bool:
    """Whether all brokers say the same: every replica is in sync, and every partition has a leader."""
    first, *others = views.values()
    return all(each == first for each in others) and all(
        partition.isr == tuple(nodes) and partition.leader in nodes for partition in first.values()
    )


def open_transaction(ports: Mapping[int, int], views: Mapping[TopicPartition, PartitionView]) -> str:
    """Which transaction has not ended, on a coordinator or on a partition; "" where all have. Raises Silent."""
    for port in ports.values():
        for transaction in ask(port, _LIST_TRANSACTIONS, ListTransactionsRequest()).transaction_states:
            if transaction.transaction_state not in _ENDED:
                return f"{transaction.transactional_id} is in {transaction.transaction_state}"
    for (topic, index), view in views.items():
        high_watermark, stable = (_end(ports[view.leader], topic, index, isolation) for isolation in (0, 1))
        if stable < high_watermark:
            return f"{topic}-{index} is stable up to {stable} only, of {high_watermark}"
    return ""


def new_producer_id(port: int) -> int:
    """A producer id from a broker. Raises Silent."""
    response = ask(port, _INIT_PRODUCER_ID, InitProducerIdRequest())
    if response.error_code:
        raise Silent(f"{port}: error {response.error_code}")
    return response.producer_id


def _end(port: int, topic: str, index: int, isolation_level: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=_LATEST)])
    response = ask(port, _LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[asked]))
    [[answer]] = [topic.partitions for topic in response.topics]
    if answer.error_code:
        raise Silent(f"{port}: error {answer.error_code} for {topic}-{index}")
    return answer.offset
