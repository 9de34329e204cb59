"""The controller of a cluster of several brokers (Kafka: QuorumController), and the interfaces through which handlers see it.

Methods take a request message, and reply with the response message once the records are committed. APIs that a single broker has
too (topics, partitions, configs, features) are methods of ``Controller``. The decisions are in the other modules of this package:
pure functions from a ``ClusterView`` and a request to a response and records.

``PeriodicTasks`` runs the controller's periodic tasks. A handler's first parameter has the narrowest of the ``...Services`` that
it needs; ``start.controller_node`` has all attributes.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Protocol

from odradek.controller.cluster.altered_partitions import alter_partitions
from odradek.controller.cluster.controller import Controller, as_it_is
from odradek.controller.cluster.partition_changes import fenced
from odradek.controller.cluster.reassignments import MAX_ELECTIONS, balance, elect_unclean
from odradek.controller.cluster.registration import BrokerSessions, BrokerState, assign_replicas, heartbeat, register
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.message_types.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from odradek.protocol.message_types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.common.config import BrokerConfig
    from odradek.common.config.dynamic import ConfigView
    from odradek.common.context import Session
    from odradek.controller.cluster.quorum_leader import QuorumLeader
    from odradek.controller.metadata.cluster_view import ClusterView
    from odradek.controller.metadata.metadata_log import MetadataLog
    from odradek.controller.metadata.writer import ControllerHost, Decided
    from odradek.protocol.errors import KafkaError
    from odradek.protocol.metadata_records import MetadataRecord
    from odradek.timing.clock import Clock
    from odradek.timing.reply import Reply
    from odradek.timing.timer import Timer, TimerTask

# The pause before a task continues unfinished work, so that others have their turn.
_SOON_MS = 10


class PeriodicTasks:
    """Tasks that run on ``timer`` until ``close``."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._next: dict[int, TimerTask] = {}

    def add(self, interval_ms: float, task: Callable[[], bool], due_in_ms: Callable[[], float] = lambda: inf) -> None:
        """Run ``task`` every ``interval_ms``, earlier if it is due earlier, and soon again if it returns that work is left."""
        key = len(self._next)

        def run() -> None:
            has_more = False
            try:
                has_more = task()
            finally:
                # A failed turn must not prevent the next one.
                self._next[key] = self._timer.call_after(_SOON_MS if has_more else min(interval_ms, due_in_ms()), run)

        self._next[key] = self._timer.call_after(interval_ms, run)

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._next.values():
            task.cancel()


class ClusterController(Controller):
    """Brokers, topics, partitions, configs, features and producer ids of a cluster. ``image`` is read-only for others."""

    def __init__(self, log: MetadataLog, host: ControllerHost, *, node_id: int, cluster_id: str) -> None:
        """Replay ``log``, and write the first records of a new one. Raises MetadataUnreadable, KafkaError if the log fails."""
        self.cluster_id = cluster_id
        self._sessions = BrokerSessions(host.clock, host.config["broker.session.timeout.ms"])
        # The offset of each broker's last registration, as far as this process has seen it.
        self._registration_offsets: dict[int, int] = {}
        self._tasks: PeriodicTasks | None = None
        super().__init__(log, host, node_id)

    def start(self, timer: Timer) -> None:
        """Begin to watch the brokers' sessions and the balance of leaders."""
        # Sessions begin now: brokers could not be heard while the log was loaded.
        self._sessions.activate(self.image)
        config = self._config
        tasks = self._tasks = PeriodicTasks(timer)
        tasks.add(max(1, self._sessions.timeout_ms / 4), self._fence_one, self._sessions.next_end_in_ms)
        if config["auto.leader.rebalance.enable"]:
            tasks.add(config["leader.imbalance.check.interval.seconds"] * 1000, lambda: self._elect_by_itself(balance))
        tasks.add(config["unclean.leader.election.interval.ms"], lambda: self._elect_by_itself(elect_unclean))

    def close(self) -> None:
        """Stop the periodic tasks, and close the metadata log."""
        if self._tasks is not None:
            self._tasks.close()
        super().close()

    def register_broker(self, request: BrokerRegistrationRequest, version: int) -> Reply[BrokerRegistrationResponse]:
        """Register a broker that has started. Its epoch is the offset of the first record."""
        broker_id = request.broker_id

        def decide() -> Decided[int]:
            known = self.view.brokers.get(broker_id)
            has_session = known is not None and self._sessions.is_valid(broker_id, known.broker_epoch)
            return register(
                self.view,
                request,
                version,
                next_offset=self.log_end_offset,
                cluster_id=self.cluster_id,
                has_session=has_session,
            )

        def answer(epoch: int) -> BrokerRegistrationResponse:
            # The registration is the last of the records just committed.
            self._registration_offsets[broker_id] = self.log_end_offset - 1
            return BrokerRegistrationResponse(broker_epoch=epoch)

        return self._answered(decide, answer, lambda error: BrokerRegistrationResponse(error_code=error.code))

    def end_session(self, broker_id: int) -> None:
        """End a broker's session at once, as its process has ended and its next incarnation registers."""
        self._sessions.end(broker_id)

    def heartbeat(self, request: BrokerHeartbeatRequest) -> Reply[BrokerHeartbeatResponse]:
        """Keep a broker's session alive, and unfence it, fence it, or shut it down as it asks."""
        broker_id = request.broker_id
        self._sessions.contact(broker_id, request.broker_epoch)

        def decide() -> Decided[tuple[BrokerHeartbeatResponse, BrokerState]]:
            response, state, records = heartbeat(self.view, self._sessions, request, self._registration_offset(broker_id))
            return (response, state), records

        def answer(decided: tuple[BrokerHeartbeatResponse, BrokerState]) -> BrokerHeartbeatResponse:
            response, state = decided
            if state is BrokerState.CONTROLLED_SHUTDOWN:
                # A broker that has applied this offset knows the new leaders.
                self._sessions.shuts_down_at(broker_id, self.log_end_offset - 1)
            elif state is BrokerState.SHUTDOWN_NOW:
                # The broker sends no more heartbeats, and its next incarnation need not wait for the end of this session.
                self._sessions.end(broker_id)
            return response

        return self._answered(decide, answer, lambda error: BrokerHeartbeatResponse(error_code=error.code))

    def alter_partition(self, request: AlterPartitionRequest, _version: int) -> Reply[AlterPartitionResponse]:
        """Handle a leader's proposal of in-sync replicas. Version 2 has no broker epochs: they are -1 in ``request``."""
        return self._answered(
            lambda: alter_partitions(self.view, request),
            as_it_is,
            lambda error: AlterPartitionResponse(error_code=error.code),
        )

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest) -> Reply[AssignReplicasToDirsResponse]:
        """Record the directories that a broker reports for its replicas (KIP-858)."""
        return self._answered(
            lambda: assign_replicas(self.view, request),
            as_it_is,
            lambda error: AssignReplicasToDirsResponse(error_code=error.code),
        )

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> Reply[AllocateProducerIdsResponse]:
        """Allocate a block of producer ids for a broker."""

        def decide() -> Decided[range]:
            self.view.registration(request.broker_id, request.broker_epoch)
            return self._producer_id_block(request.broker_id, request.broker_epoch)

        return self._answered(
            decide,
            lambda block: AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block)),
            lambda error: AllocateProducerIdsResponse(error_code=error.code),
        )

    def config_view(self, config: BrokerConfig) -> ConfigView:
        """Return the basis of decisions on configs, of any registered broker and of this node."""
        return super().config_view(config)._replace(broker_exists=lambda each: each == self.node_id or each in self.view.brokers)

    def _usable_brokers(self) -> dict[int, bool]:
        return self._sessions.usable()

    def _take_over(self) -> None:
        """Keep all leaders; the sessions of dead brokers will expire."""
        self._sessions.activate(self.image)

    def _replay(self, records: Sequence[MetadataRecord]) -> None:
        super()._replay(records)
        self._sessions.replayed(records, self.image)

    def _registration_offset(self, broker_id: int) -> int:
        """Return the offset of a broker's registration, or a lower bound, its epoch, if an earlier process wrote it."""
        broker = self.view.brokers.get(broker_id)
        return self._registration_offsets.get(broker_id, -1 if broker is None else broker.broker_epoch)

    def _fence_one(self) -> bool:
        """Fence a broker with an expired session. Return whether there may be more: the next decision must see this one."""
        expired = self._sessions.take_expired()
        if expired is None:
            return False
        broker_id, broker_epoch = expired

        def decide() -> Decided[None]:
            broker = self.view.brokers.get(broker_id)
            if broker is None or broker.broker_epoch != broker_epoch or broker.fenced:
                return None, ()
            return None, fenced(self.view, broker)

        self._operate(decide)
        return True

    def _elect_by_itself(self, decide: Callable[[ClusterView], Sequence[MetadataRecord]]) -> bool:
        """Hold elections that no client requested. Return whether there may be more."""

        def decide_all() -> Decided[bool]:
            records = decide(self.view)
            return len(records) >= MAX_ELECTIONS, records

        return self._operate(decide_all).response is True


class DecisionServices(Protocol):
    """The controller of a single broker or of a cluster."""

    @property
    def controller(self) -> Controller:
        """Return the controller, with the image of the committed metadata."""


class BrokerServices(Protocol):
    """The controller of a cluster."""

    @property
    def controller(self) -> ClusterController:
        """Return the controller that brokers register with."""


class QuorumServices(BrokerServices, Protocol):
    """The leader of the quorum, which serves observers."""

    @property
    def leader(self) -> QuorumLeader:
        """Return this node as the quorum's leader."""

    @property
    def clock(self) -> Clock:
        """Return the node's clock."""


class EnvelopeServices(Protocol):
    """The service that answers the requests in envelopes."""

    def answer(self, frame: bytes, session: Session) -> Reply[bytes | KafkaError]:
        """Return the response to a request, both with headers. KafkaError: UNSUPPORTED_VERSION, UNKNOWN_SERVER_ERROR."""
