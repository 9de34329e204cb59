"""Faults of a broker that the campaign must find, by name: each is put into the process of every broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.cluster.peers import TransactionPeers
from odradek.broker.replica import followed_partition
from odradek.broker.replica.in_sync_replicas import InSyncReplicas
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicated_roles import ReplicatedRoles
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.controller.quorum.forwarding import ProducerIdBlocks
from odradek.timing.reply import Reply
from tests.campaigns.planted import Faults

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = Faults()


def _leads_on(take: Any, roles: ReplicatedRoles, partition: Partition, record: Any) -> None:
    has_led = partition.leader is not None and partition.leader.followers is not None
    if not has_led or record.leader == roles.node_id:
        take(roles, partition, record)


def _forget_markers(of_topic: Callable[[str], bool]) -> Callable[..., Any]:
    """Markers for such partitions that other brokers lead are not sent."""

    def write(write_marker: Any, peers: TransactionPeers, topic: str, *arguments: Any) -> Any:
        if not of_topic(topic):
            return write_marker(peers, topic, *arguments)
        reply: Reply[Any] = Reply()
        reply.complete(None)
        return reply

    return write


FAULTS.put(
    "acks-before-replication",
    Partition,
    "is_acknowledged",
    lambda partition, last_offset, acks: last_offset < partition.require_log().log_end_offset,
)
FAULTS.put("isr-never-shrunk", InSyncReplicas, "shrink", lambda *_: None)
FAULTS.wrap("leads-on", ReplicatedRoles, "take", _leads_on)
FAULTS.wrap("markers-forgotten", TransactionPeers, "write_marker", _forget_markers(lambda topic: topic != CONSUMER_OFFSETS_TOPIC))
FAULTS.wrap("offsets-forgotten", TransactionPeers, "write_marker", _forget_markers(lambda topic: topic == CONSUMER_OFFSETS_TOPIC))
FAULTS.put("never-truncated", followed_partition, "truncation_offset", lambda log, diverging: log.log_end_offset)
FAULTS.wrap(
    "producer-ids-twice",
    ProducerIdBlocks,
    "request",
    lambda ask, blocks: ask(blocks).then(lambda block: range(len(block)) if isinstance(block, range) else block),
)
