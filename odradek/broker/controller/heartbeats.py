"""Heartbeats of brokers, and what they make of them: unfenced, fenced, in controlled shutdown, shut down (KIP-631, KIP-841)."""

from odradek.broker.controller import broker_changes
from odradek.broker.controller.broker_sessions import BrokerSessions, BrokerState
from odradek.broker.controller.cluster_view import ClusterView
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.metadata_records import MetadataRecord


def heartbeat(
    view: ClusterView, sessions: BrokerSessions, request: BrokerHeartbeatRequest, registration_offset: int
) -> tuple[BrokerHeartbeatResponse, BrokerState, list[MetadataRecord]]:
    """The answer, what the broker is from now on, and the records. ``sessions`` are told what the broker tells.

    A broker that has followed the metadata to its registration, at ``registration_offset``, is caught up, and can be unfenced.
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
