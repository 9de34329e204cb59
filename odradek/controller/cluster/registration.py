"""Registers brokers with listeners, features and directories, and unregisters them (KIP-631, KIP-858, KIP-966).

Also handles their heartbeats, which unfence or fence brokers, and begin and end their controlled shutdowns (KIP-841).
"""

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn
from uuid import UUID

from odradek.controller.cluster import broker_changes
from odradek.controller.cluster.broker_sessions import BrokerSessions, BrokerState
from odradek.controller.metadata.cluster_view import ClusterView, is_reserved
from odradek.controller.metadata.features import METADATA_VERSION
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest
from odradek.protocol.metadata_records import MetadataRecord
from odradek.protocol.metadata_records.nodes import NodeEndpoint, NodeFeature, RegisterBrokerRecord

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
    return record.broker_epoch, [*broker_changes.shut_down(view, request.broker_id, was_clean=was_clean), record]


def unregister(view: ClusterView, broker_id: int) -> list[MetadataRecord]:
    """Return the records that remove a broker. KafkaError: BROKER_ID_NOT_REGISTERED."""
    broker = view.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return broker_changes.unregistered(view, broker)


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
                records += broker_changes.unfenced(view, broker)
            case BrokerState.CONTROLLED_SHUTDOWN:
                records += broker_changes.in_controlled_shutdown(view, broker)
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
                records += broker_changes.fenced(view, broker)
    is_fenced = following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
    sessions.touch(request.broker_id, is_fenced=is_fenced, metadata_offset=request.current_metadata_offset)
    records += broker_changes.directories_offline(view, broker, request.offline_log_dirs)
    records += broker_changes.directories_cordoned(broker, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registration_offset,
        is_fenced=is_fenced,
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return response, following, records
