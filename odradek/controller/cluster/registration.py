"""The brokers of a cluster: their registrations, sessions, heartbeats, and the directories of their replicas.

Brokers register with listeners, features and directories, and are unregistered (KIP-631, KIP-858, KIP-966). Their heartbeats
unfence or fence them, and begin and end their controlled shutdowns (KIP-841).

Sessions (Kafka: BrokerHeartbeatManager and BrokerHeartbeatTracker) are in memory. A starting controller gives each unfenced
broker a new session. A session belongs to an epoch of a broker, and only heartbeats extend it. Another incarnation cannot
register before it ends. The session of a broker with leave to shut down ends at once; in Kafka's controller it expires.

Brokers report the directories that hold their replicas (AssignReplicasToDirs, KIP-858).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final, NoReturn
from uuid import UUID

from odradek.controller.cluster import partition_changes
from odradek.controller.cluster.partition_changes import change_of, offline_replicas
from odradek.controller.metadata.cluster_view import MIGRATING, ClusterView, has_online, is_reserved
from odradek.controller.metadata.features import FIRST_CORDONING_DIRECTORIES, FIRST_UNREGISTERING_CONTROLLERS, METADATA_VERSION
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    NodeEndpoint,
    NodeFeature,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from odradek.timing.clock import Clock

_NO_OFFSET = -1


class BrokerState(Enum):
    """The state of a broker. In controlled shutdown, it still leads partitions that no other broker can lead."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


@dataclass(slots=True)
class _Heartbeats:
    """A broker's progress: how far it follows the metadata, and from which offset others know of its shutdown."""

    is_fenced: bool = True
    metadata_offset: int = _NO_OFFSET
    controlled_shutdown_offset: int = _NO_OFFSET

    @property
    def is_shutting_down(self) -> bool:
        return self.controlled_shutdown_offset >= 0


class BrokerSessions:
    """The sessions of brokers: by id and epoch, the time of the last heartbeat."""

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self.timeout_ms = timeout_ms
        self._brokers: dict[int, _Heartbeats] = {}
        self._contacts_ms: dict[tuple[int, int], float] = {}

    def activate(self, image: MetadataImage) -> None:
        """Begin a session for each unfenced broker of ``image``. A fenced broker's session begins with its first heartbeat."""
        for broker in image.kept.brokers.values():
            self._register(broker.broker_id, is_fenced=broker.fenced)
            if not broker.fenced:
                self.contact(broker.broker_id, broker.broker_epoch)

    def contact(self, broker_id: int, broker_epoch: int) -> None:
        """Note a heartbeat."""
        self._contacts_ms[broker_id, broker_epoch] = self._clock.monotonic_ms()

    def is_valid(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether the broker was heard from within the session timeout."""
        contact_ms = self._contacts_ms.get((broker_id, broker_epoch))
        return contact_ms is not None and contact_ms + self.timeout_ms >= self._clock.monotonic_ms()

    def take_expired(self) -> tuple[int, int] | None:
        """Remove and return (broker id, epoch) of an expired session, or None."""
        for key in self._contacts_ms:
            if not self.is_valid(*key):
                del self._contacts_ms[key]
                return key
        return None

    def next_end_in_ms(self) -> float:
        """Return the ms until the first session expires without news, at least 1. Kafka checks every quarter session."""
        oldest_ms = min(self._contacts_ms.values(), default=inf)
        return max(oldest_ms + self.timeout_ms - self._clock.monotonic_ms(), 0) + 1

    def end(self, broker_id: int) -> None:
        """Forget the contacts of a broker whose process has ended."""
        for key in [key for key in self._contacts_ms if key[0] == broker_id]:
            del self._contacts_ms[key]

    def usable(self) -> dict[int, bool]:
        """Return the brokers that are not about to shut down, and whether each of them is fenced."""
        return {broker_id: known.is_fenced for broker_id, known in self._brokers.items() if not known.is_shutting_down}

    def touch(self, broker_id: int, *, is_fenced: bool, metadata_offset: int) -> None:
        """Note the content of a heartbeat."""
        known = self._brokers[broker_id]
        known.is_fenced = is_fenced
        known.metadata_offset = metadata_offset
        if is_fenced:
            known.controlled_shutdown_offset = _NO_OFFSET

    def shuts_down_at(self, broker_id: int, offset: int) -> None:
        """Note the offset from which others know that a broker shuts down. The first one counts."""
        known = self._brokers[broker_id]
        if not known.is_shutting_down:
            known.controlled_shutdown_offset = offset

    def states(
        self, request: BrokerHeartbeatRequest, registration_offset: int, is_leader: Callable[[], bool]
    ) -> tuple[BrokerState, BrokerState]:
        """Return the broker's state, and its state after ``request``. ``is_leader`` tells whether it leads a partition."""
        known = self._brokers[request.broker_id]
        if known.is_shutting_down:
            is_known = known.controlled_shutdown_offset <= self._lowest_active_offset()
            done = is_known and not is_leader()
            return BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW if done else BrokerState.CONTROLLED_SHUTDOWN
        if known.is_fenced:
            if request.want_shut_down:
                return BrokerState.FENCED, BrokerState.SHUTDOWN_NOW
            is_ready = not request.want_fence and request.current_metadata_offset >= registration_offset
            return BrokerState.FENCED, BrokerState.UNFENCED if is_ready else BrokerState.FENCED
        if request.want_shut_down:
            waits = not request.want_fence and is_leader()
            return BrokerState.UNFENCED, BrokerState.CONTROLLED_SHUTDOWN if waits else BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED, BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED

    def replayed(self, records: Iterable[MetadataRecord], image: MetadataImage) -> None:
        """Follow the registrations in ``records``, which are in the image."""
        for record in records:
            match record:
                case RegisterBrokerRecord():
                    self._brokers.pop(record.broker_id, None)
                    self._register(record.broker_id, is_fenced=record.fenced)
                case UnregisterBrokerRecord():
                    self._brokers.pop(record.broker_id, None)
                case BrokerRegistrationChangeRecord():
                    self._follow(record.broker_id, image)
                case FenceBrokerRecord() | UnfenceBrokerRecord():
                    self._follow(record.id, image)

    def _follow(self, broker_id: int, image: MetadataImage) -> None:
        broker = image.kept.brokers.get(broker_id)
        if broker is not None:
            self._register(broker_id, is_fenced=broker.fenced)

    def _register(self, broker_id: int, *, is_fenced: bool) -> None:
        known = self._brokers.get(broker_id)
        offset = _NO_OFFSET
        if known is None:
            self._brokers[broker_id] = _Heartbeats()
        elif known.is_fenced != is_fenced:
            offset = known.metadata_offset
        self.touch(broker_id, is_fenced=is_fenced, metadata_offset=offset)

    def _lowest_active_offset(self) -> float:
        """Return the lowest metadata offset of unfenced brokers that do not shut down; infinity without any."""
        active = (known for known in self._brokers.values() if not known.is_fenced and not known.is_shutting_down)
        return min((known.metadata_offset for known in active), default=float("inf"))


# The first version with the epoch that the broker had when it was shut down.
_TELLS_PREVIOUS_EPOCH: Final = 3


def register(
    view: ClusterView, request: BrokerRegistrationRequest, version: int, *, next_offset: int, cluster_id: str, has_session: bool
) -> tuple[int, list[MetadataRecord]]:
    """Return the epoch of the registering broker, and the records: the end of its previous incarnation, and its own.

    ``has_session``: the registered incarnation was heard from recently. The epoch is the offset of the first record. An
    incarnation that registers again keeps its epoch and stays fenced or unfenced. KafkaError: INCONSISTENT_CLUSTER_ID,
    DUPLICATE_BROKER_REGISTRATION, BROKER_ID_NOT_REGISTERED (a broker from a time of ZooKeeper), INVALID_REGISTRATION,
    UNSUPPORTED_VERSION.
    """
    known = view.brokers.get(request.broker_id)
    is_known = known is not None and known.incarnation_id == request.incarnation_id
    if request.cluster_id != cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"The cluster's id is {cluster_id}, not {request.cluster_id}.")
    if has_session and not is_known:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker {request.broker_id} is registered, and its session is not over yet.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "ZooKeeper brokers cannot register.")
    _check_directories(view, request)
    _check_features(view, request)
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=_incarnation(request),
        broker_epoch=known.broker_epoch if known is not None and is_known else next_offset,
        end_points=tuple(NodeEndpoint(**each._asdict()) for each in request.listeners),
        features=tuple(NodeFeature(**each._asdict()) for each in request.features),
        rack=request.rack,
        fenced=known.fenced if known is not None and is_known else True,
        in_controlled_shutdown=known is not None and is_known and known.in_controlled_shutdown,
        log_dirs=tuple(each for each in request.log_dirs if each is not None),
    )
    if is_known:
        return record.broker_epoch, [record]
    was_clean = version >= _TELLS_PREVIOUS_EPOCH and known is not None and request.previous_broker_epoch == known.broker_epoch
    return record.broker_epoch, [*partition_changes.shut_down(view, request.broker_id, was_clean=was_clean), record]


def unregister(view: ClusterView, broker_id: int) -> list[MetadataRecord]:
    """Return the records that remove a broker. KafkaError: BROKER_ID_NOT_REGISTERED."""
    broker = view.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return partition_changes.unregistered(view, broker)


def unregister_controller(view: ClusterView, controller_id: int) -> list[MetadataRecord]:
    """Return the record that removes a controller's registration.

    KafkaError: INVALID_REQUEST for the active controller, UNSUPPORTED_VERSION, CONTROLLER_ID_NOT_REGISTERED.
    """
    if controller_id == view.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The active controller cannot unregister itself.")
    if view.image.features[METADATA_VERSION] < FIRST_UNREGISTERING_CONTROLLERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Controllers can be unregistered from metadata.version 4.4-IV2 on.")
    if not view.image.kept.has_controller(controller_id):
        raise KafkaError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, f"Controller {controller_id} is not registered.")
    return [UnregisterControllerRecord(controller_id=controller_id)]


def _incarnation(request: BrokerRegistrationRequest) -> UUID:
    if request.incarnation_id is None:
        _refuse("A broker must register with its incarnation id.")
    return request.incarnation_id


def _check_directories(view: ClusterView, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        _refuse("A broker must register with the ids of its log directories.")
    if any(is_reserved(directory) for directory in directories):
        _refuse("A directory id is a reserved one.")
    if len(set(directories)) != len(directories):
        _refuse("A directory id appears twice.")
    for broker in view.brokers.values():
        shared = set(broker.log_dirs) & set(directories)
        if shared and broker.broker_id != request.broker_id:
            _refuse(f"Directory {min(shared)} is already registered for broker {broker.broker_id}.")


def _check_features(view: ClusterView, request: BrokerRegistrationRequest) -> None:
    """Raise unless the broker supports each finalized feature, and the finalized level of each feature it names."""
    supported = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name in supported:
        _check_level(view.image.features, name, supported)
    if METADATA_VERSION not in supported:
        _refuse(f"A broker must register with its supported levels of {METADATA_VERSION}.")
    for name in view.image.features:
        _check_level(view.image.features, name, supported)


def _check_level(finalized: Mapping[str, int], name: str, supported: Mapping[str, Sequence[int]]) -> None:
    lowest, highest = supported.get(name, (0, 0))
    level = finalized.get(name, 0)
    if not lowest <= level <= highest:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{name} is at {level} in this cluster, and the broker supports {lowest} to {highest}.",
        )


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REGISTRATION, reason)


def heartbeat(
    view: ClusterView, sessions: BrokerSessions, request: BrokerHeartbeatRequest, registration_offset: int
) -> tuple[BrokerHeartbeatResponse, BrokerState, list[MetadataRecord]]:
    """Return the response, the broker's new state, and the records. Updates ``sessions``.

    A broker that has followed the metadata up to its registration, at ``registration_offset``, is caught up and can be unfenced.
    KafkaError: STALE_BROKER_EPOCH.
    """
    broker = view.registration(request.broker_id, request.broker_epoch)
    current, following = sessions.states(request, registration_offset, lambda: view.leads(request.broker_id))
    records: list[MetadataRecord] = []
    if current is not following:
        match following:
            case BrokerState.UNFENCED:
                records += partition_changes.unfenced(view, broker)
            case BrokerState.CONTROLLED_SHUTDOWN:
                records += partition_changes.in_controlled_shutdown(view, broker)
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
                records += partition_changes.fenced(view, broker)
    is_fenced = following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
    sessions.touch(request.broker_id, is_fenced=is_fenced, metadata_offset=request.current_metadata_offset)
    records += partition_changes.directories_offline(view, broker, request.offline_log_dirs)
    if view.image.features[METADATA_VERSION] >= FIRST_CORDONING_DIRECTORIES:
        records += partition_changes.directories_cordoned(broker, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registration_offset,
        is_fenced=is_fenced,
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return response, following, records


def assign_replicas(
    view: ClusterView, request: AssignReplicasToDirsRequest
) -> tuple[AssignReplicasToDirsResponse, list[MetadataRecord]]:
    """Return the response, with a result per partition, and the records. KafkaError: STALE_BROKER_EPOCH.

    A replica in a directory that has failed meanwhile is offline, and another replica becomes leader.
    """
    broker = view.registration(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    offline: dict[tuple[str, int], tuple[Topic, PartitionRecord]] = {}
    directories = []
    for asked in request.directories:
        directory = asked.id or MIGRATING
        topics = []
        for named in asked.topics:
            topic = None if named.topic_id is None else view.image.topics_by_id.get(named.topic_id)
            answers = []
            for index in (each.partition_index for each in named.partitions):
                partition = None if topic is None else topic.partitions.get(index)
                error = _error(topic, partition, broker.broker_id)
                answers.append(PartitionData(index, error))
                if error or topic is None or partition is None:
                    continue
                change = change_of(view, topic, partition)
                change.directories[broker.broker_id] = directory
                record = change.record()
                if record is not None:
                    records.append(record)
                if not has_online(broker, directory):
                    offline[topic.name, index] = (topic, partition)
            topics.append(TopicData(topic_id=named.topic_id, partitions=answers))
        directories.append(DirectoryData(id=asked.id, topics=topics))
    records += offline_replicas(view, broker.broker_id, offline.values())
    return AssignReplicasToDirsResponse(directories=directories), records


def _error(topic: Topic | None, partition: PartitionRecord | None, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
