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

REQUEST_FIELDS: Final = """
GetTelemetrySubscriptionsRequest 0 flexible 0+
 client_instance_id uuid
"""
RESPONSE_FIELDS: Final = """
GetTelemetrySubscriptionsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 client_instance_id uuid
 subscription_id int32
 accepted_compression_types []int8
 push_interval_ms int32
 telemetry_max_bytes int32
 delta_temporality bool
 requested_metrics []string
"""
