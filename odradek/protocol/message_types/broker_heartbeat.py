"""BrokerHeartbeat up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class BrokerHeartbeatRequest(NamedTuple):
    """The BrokerHeartbeat request."""

    broker_id: int = 0
    broker_epoch: int = -1
    current_metadata_offset: int = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Sequence[UUID | None] = ()
    cordoned_log_dirs: Sequence[UUID | None] | None = None


class BrokerHeartbeatResponse(NamedTuple):
    """The BrokerHeartbeat response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


REQUEST: Final[dict[str, type[Any]]] = {
    "BrokerHeartbeatRequest": BrokerHeartbeatRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "BrokerHeartbeatResponse": BrokerHeartbeatResponse,
}

REQUEST_FIELDS: Final = """
BrokerHeartbeatRequest 0-2 flexible 0+
 broker_id int32
 broker_epoch int64 = -1
 current_metadata_offset int64
 want_fence bool
 want_shut_down bool
 offline_log_dirs []uuid 1+ tag 0
 cordoned_log_dirs []uuid 2+ null 2+ tag 1 = null
"""
RESPONSE_FIELDS: Final = """
BrokerHeartbeatResponse 0-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 is_caught_up bool = false
 is_fenced bool = true
 should_shut_down bool
"""
