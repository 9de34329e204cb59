"""The ends of partitions that other brokers lead, by ListOffsets: for the lag of share groups (KIP-1226).

All questions of one turn of the event loop to one broker go into one request. Kafka's class is NetworkPartitionMetadataClient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.api import Api, ClientError
from odradek.client.apis import LATEST_TIMESTAMP
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_name, error_of
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.timing.driver import OwnTasks
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.cluster.broker_clients import BrokerClients
    from odradek.client.node_client import NodeClient
    from odradek.controller.metadata.image import MetadataImage

# From this version on, one offset for each partition.
_LIST_OFFSETS: Final[Api[ListOffsetsRequest, ListOffsetsResponse]] = Api(ApiKey.LIST_OFFSETS, 1)
_CONSUMER: Final = -1


class _Asked(NamedTuple):
    """A partition, and the Reply for its end."""

    topic: str
    partition: int
    reply: Reply[int | KafkaError]


class PartitionEnds:
    """Asks the leaders of partitions on other brokers. Loop thread only."""

    def __init__(self, image: MetadataImage, clients: BrokerClients[NodeClient]) -> None:
        self._image = image
        self._clients = clients
        self._network = clients.network
        self._unsent: dict[int, list[_Asked]] = {}
        self._tasks = OwnTasks()

    def latest(self, topic: str, partition: int) -> Reply[int | KafkaError]:
        """Return the offset of the next committed record. KafkaError: LEADER_NOT_AVAILABLE, NETWORK_EXCEPTION, the leader's."""
        reply: Reply[int | KafkaError] = Reply()
        known = self._image.topics.get(topic)
        record = None if known is None else known.partitions.get(partition)
        if record is None:
            reply.complete(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"))
        elif self._network.address_of(record.leader) is None:
            reply.complete(KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader"))
        else:
            if not self._unsent:
                self._network.call_soon(self._send)
            self._unsent.setdefault(record.leader, []).append(_Asked(topic, partition, reply))
        return reply

    def close(self) -> None:
        """Wait for no answer any more."""
        self._tasks.cancel()

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for node_id, asked in unsent.items():
            self._tasks.start(self._ask(node_id, asked))

    async def _ask(self, node_id: int, asked: list[_Asked]) -> None:
        client = self._clients.client_of(node_id)
        ends: dict[tuple[str, int], int | KafkaError] = {}
        reason = "the leader is not alive"
        if client is not None:
            try:
                ends = _ends(await client.request(_LIST_OFFSETS, _request(asked)))
            except ClientError as error:
                reason = error.reason
        missing = KafkaError(ErrorCode.NETWORK_EXCEPTION, reason)
        for topic, partition, reply in asked:
            reply.complete(ends.get((topic, partition), missing))


def _request(asked: Iterable[_Asked]) -> ListOffsetsRequest:
    by_topic: dict[str, set[int]] = {}
    for topic, partition, _ in asked:
        by_topic.setdefault(topic, set()).add(partition)
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP) for index in sorted(indexes)],
        )
        for topic, indexes in by_topic.items()
    ]
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=topics)


def _ends(response: ListOffsetsResponse) -> dict[tuple[str, int], int | KafkaError]:
    return {
        (topic.name, each.partition_index): each.offset
        if not each.error_code
        else KafkaError(error_of(each.error_code), f"the leader answered with the error {error_name(each.error_code)}")
        for topic in response.topics
        for each in topic.partitions
    }
