"""What a broker tells clients of its cluster: the brokers, and the state of partitions.

A cluster of one is ``OneBroker`` (``replica.partition_roles``), one of several ``ManyBrokers`` (Kafka: KRaftMetadataCache). A
broker counts as alive for a client if it is registered, is not fenced, and has the listener that the client came by.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode

NO_NODE = -1


class ClusterNode(NamedTuple):
    """A broker, and where the clients of a listener reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


class PartitionState(NamedTuple):
    """A partition as clients are told of it: without a leader (-1) there is an error.

    The fields are those of a partition in a Metadata response, in that order.
    """

    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline_replicas: Sequence[int]


class Cluster(Protocol):
    """What a broker knows of its cluster."""

    @property
    def controller_id(self) -> int:
        """The broker that clients are to send requests for the controller to."""

    def nodes(self, listener_name: str) -> list[ClusterNode]:
        """The brokers that are alive, by id."""

    def fenced_nodes(self, listener_name: str) -> list[ClusterNode]:
        """The registered brokers that are fenced, by id."""

    def partition_state(self, topic: Topic, index: int, listener_name: str, metadata_version: int) -> PartitionState:
        """The state of a partition, with the errors of that version of Metadata."""

    def coordinator(self, topic: str, coordinated_id: str, listener_name: str) -> ClusterNode | None:
        """The broker that leads the partition of the internal ``topic`` for this id; None while it cannot be reached."""
