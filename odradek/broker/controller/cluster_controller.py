"""The controller of a cluster of several brokers (Kafka: QuorumController).

A request's message is answered by the response's message, when the records that it comes to are committed. The APIs that a broker
alone has too (topics, partitions, configs, features) are the methods of ``Controller``.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar
from uuid import UUID

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.controller import Controller
from odradek.broker.metadata.metadata_log import MetadataLog
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.message_types.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from odradek.protocol.message_types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from odradek.protocol.message_types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from odradek.timing.background import Background
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices
from odradek.timing.timer import Timer

T = TypeVar("T")


class ClusterController(Controller):
    """Brokers, topics, partitions, configs, features and producer ids of a cluster. ``image`` is to be read, never written."""

    def __init__(
        self,
        log: MetadataLog,
        *,
        node_id: int,
        cluster_id: str,
        config: BrokerConfig,
        clock: Clock,
        new_topic_id: Callable[[], UUID],
        random: Random,
        background: Background | None = None,
        slices: Slices | None = None,
    ) -> None:
        """Replay ``log``, and give it its first records if it is new. Raises MetadataUnreadable, KafkaError if the log fails.

        ``random`` places replicas.
        """
        self.cluster_id = cluster_id
        self._random = random
        super().__init__(
            log,
            node_id=node_id,
            directory_counts=dict,
            config=config,
            clock=clock,
            new_topic_id=new_topic_id,
            background=background,
            slices=slices,
        )

    def start(self, timer: Timer) -> None:
        """Begin to watch the sessions of brokers, and the balance of leaders."""

    def register_broker(self, _request: BrokerRegistrationRequest, _version: int) -> Reply[BrokerRegistrationResponse]:
        """A broker has started. Its epoch is the offset of the record."""
        return _answer(BrokerRegistrationResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def heartbeat(self, _request: BrokerHeartbeatRequest) -> Reply[BrokerHeartbeatResponse]:
        """A broker lives: it is unfenced, fenced, or shuts down, as it asks."""
        return _answer(BrokerHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def unregister_broker(self, _request: UnregisterBrokerRequest) -> Reply[UnregisterBrokerResponse]:
        """A broker is no longer a member."""
        return _answer(UnregisterBrokerResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def alter_partition(self, _request: AlterPartitionRequest, _version: int) -> Reply[AlterPartitionResponse]:
        """A leader proposes in-sync replicas."""
        return _answer(AlterPartitionResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def assign_replicas_to_dirs(self, _request: AssignReplicasToDirsRequest) -> Reply[AssignReplicasToDirsResponse]:
        """A broker tells which directories its replicas are in (KIP-858)."""
        return _answer(AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def allocate_producer_ids(self, _request: AllocateProducerIdsRequest) -> Reply[AllocateProducerIdsResponse]:
        """A block of producer ids for a broker."""
        return _answer(AllocateProducerIdsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def elect_leaders(self, _request: ElectLeadersRequest) -> Reply[ElectLeadersResponse]:
        """Preferred or unclean elections (KIP-460)."""
        return _answer(ElectLeadersResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def alter_partition_reassignments(
        self, _request: AlterPartitionReassignmentsRequest
    ) -> Reply[AlterPartitionReassignmentsResponse]:
        """Replicas move to other brokers (KIP-455), or their moves are cancelled."""
        return _answer(AlterPartitionReassignmentsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))

    def list_partition_reassignments(
        self, _request: ListPartitionReassignmentsRequest
    ) -> Reply[ListPartitionReassignmentsResponse]:
        """The moves that are under way."""
        return _answer(ListPartitionReassignmentsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))


def _answer(response: T) -> Reply[T]:
    reply: Reply[T] = Reply()
    reply.complete(response)
    return reply
