"""PushTelemetry up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID


class PushTelemetryRequest(NamedTuple):
    """The PushTelemetry request."""

    client_instance_id: UUID | None = None
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""


class PushTelemetryResponse(NamedTuple):
    """The PushTelemetry response."""

    throttle_time_ms: int = 0
    error_code: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "PushTelemetryRequest": PushTelemetryRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PushTelemetryResponse": PushTelemetryResponse,
}

REQUEST_FIELDS: Final = """
PushTelemetryRequest 0 flexible 0+
 client_instance_id uuid
 subscription_id int32
 terminating bool
 compression_type int8
 metrics bytes
"""
RESPONSE_FIELDS: Final = """
PushTelemetryResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
"""
