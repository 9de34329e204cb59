"""Where the partitions of new topics go in a cluster: on brokers that are assigned, or striped over all of them."""

from collections.abc import Sequence
from random import Random

from odradek.broker.controller.broker_sessions import BrokerSessions
from odradek.broker.controller.cluster_view import ClusterView
from odradek.broker.controller.striped_placement import PlacedBroker, StripedPlacer
from odradek.broker.metadata.placement import PlacedPartition, Placing, ensure_assignment
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord


class ClusterPlacement:
    """A Placement over the brokers of ``view``; those in controlled shutdown, by ``sessions``, get nothing new."""

    def __init__(self, view: ClusterView, sessions: BrokerSessions, random: Random) -> None:
        self._view = view
        self._sessions = sessions
        self._random = random

    @property
    def default_partitions(self) -> int:
        """Part of Placement."""
        return int(self._view.config["num.partitions"])

    @property
    def default_replication_factor(self) -> int:
        """Part of Placement."""
        return int(self._view.config["default.replication.factor"])

    def begin(self) -> Placing:
        """Part of Placement."""
        return self

    def assigned(self, replicas: Sequence[int], replication_factor: int | None) -> PlacedPartition:
        """Part of Placing."""
        ensure_assignment(replicas, self._view.brokers, replication_factor)
        placed = self._placed_on(replicas)
        if not placed.isr:
            reason = f"All brokers of the assignment {list(replicas)} are fenced or in controlled shutdown."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        return placed

    def placed(self, partition_count: int, replication_factor: int) -> Sequence[PlacedPartition]:
        """Part of Placing."""
        striped = StripedPlacer(self._usable(), self._random).place(partition_count, replication_factor)
        placed = [self._placed_on(replicas) for replicas in striped]
        if not all(each.isr for each in placed):
            reason = f"No partition can be replicated {replication_factor} time(s): no broker of one is active."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        return placed

    def _usable(self) -> list[PlacedBroker]:
        brokers = self._view.brokers
        return [
            PlacedBroker(each.broker_id, brokers[each.broker_id].rack, each.is_fenced)
            for each in self._sessions.usable()
            if _takes_replicas(brokers[each.broker_id])
        ]

    def _placed_on(self, replicas: Sequence[int]) -> PlacedPartition:
        view = self._view
        isr = tuple(replica for replica in replicas if view.is_active(replica))
        return PlacedPartition(tuple(replicas), isr, tuple(view.default_directory(replica) for replica in replicas))


def _takes_replicas(broker: RegisterBrokerRecord) -> bool:
    """Whether a directory is left that is not cordoned."""
    return not broker.log_dirs or not set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())
