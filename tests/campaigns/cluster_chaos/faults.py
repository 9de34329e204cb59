"""Faults of a broker that the campaign must find, by name: each is put into the process of every broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.cluster.replicated_roles import ReplicatedRoles
from odradek.broker.cluster.transaction_peers import TransactionPeers
from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.broker.quorum.producer_id_blocks import ProducerIdBlocks
from odradek.broker.replica import followed_partition
from odradek.broker.replica.in_sync_replicas import InSyncReplicas
from odradek.broker.replica.partition import Partition
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.protocol.errors import KafkaError


def _acknowledged_before_replication() -> None:
    """acks=all is answered when this broker has the batch."""
    Partition.is_acknowledged = lambda partition, last_offset, acks: last_offset < partition.require_log().log_end_offset


def _isr_never_shrunk() -> None:
    """Who falls behind is waited for."""
    InSyncReplicas.shrink = lambda self, log_end_offset: None


def _leads_on() -> None:
    """A leader does not take note that another broker was elected."""
    take = ReplicatedRoles.take

    def faulty(roles: ReplicatedRoles, partition: Partition, record: Any) -> None:
        has_led = partition.leader is not None and partition.leader.followers is not None
        if not has_led or record.leader == roles.node_id:
            take(roles, partition, record)

    ReplicatedRoles.take = faulty


def _markers_forgotten(of_topic: Callable[[str], bool]) -> None:
    """Markers for partitions that other brokers lead are not sent."""
    write_marker = TransactionPeers.write_marker

    def faulty(peers: TransactionPeers, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None]:
        if not of_topic(topic):
            return write_marker(peers, topic, partition, marker)
        reply: Reply[KafkaError | None] = Reply()
        reply.complete(None)
        return reply

    TransactionPeers.write_marker = faulty


def _never_truncated() -> None:
    """A follower keeps what its leader lacks."""
    followed_partition.truncation_offset = lambda log, diverging: log.log_end_offset


def _producer_ids_twice() -> None:
    """Every block of producer ids is taken for the first one."""
    request = ProducerIdBlocks.request

    def faulty(blocks: ProducerIdBlocks) -> Reply[Any]:
        return request(blocks).then(lambda block: range(len(block)) if isinstance(block, range) else block)

    ProducerIdBlocks.request = faulty


FAULTS: Final[dict[str, Callable[[], None]]] = {
    "acks-before-replication": _acknowledged_before_replication,
    "isr-never-shrunk": _isr_never_shrunk,
    "leads-on": _leads_on,
    "markers-forgotten": lambda: _markers_forgotten(lambda topic: topic != CONSUMER_OFFSETS_TOPIC),
    "offsets-forgotten": lambda: _markers_forgotten(lambda topic: topic == CONSUMER_OFFSETS_TOPIC),
    "never-truncated": _never_truncated,
    "producer-ids-twice": _producer_ids_twice,
}
