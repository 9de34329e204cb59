"""GetTelemetrySubscriptions up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class GetTelemetrySubscriptionsRequest(NamedTuple):
    """The GetTelemetrySubscriptions request."""

    client_instance_id: UUID | None = None


class GetTelemetrySubscriptionsResponse(NamedTuple):
    """The GetTelemetrySubscriptions response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID | None = None
    subscription_id: int = 0
    accepted_compression_types: Sequence[int] = ()
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: Sequence[str] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "GetTelemetrySubscriptionsRequest": GetTelemetrySubscriptionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "GetTelemetrySubscriptionsResponse": GetTelemetrySubscriptionsResponse,
}
