"""FetchSnapshot, versions 0 and 1: the bytes of a snapshot of the metadata (KIP-630, KIP-853)."""

from typing import TYPE_CHECKING

from odradek.broker.controller.snapshot_fetches import fetch_snapshot
from odradek.protocol.message_types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.controller.services import QuorumServices


def handle(services: "QuorumServices", context: "RequestContext", request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Give a part of the snapshot."""
    return fetch_snapshot(services.leader, request, context.listener_name)
