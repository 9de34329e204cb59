"""ControllerRegistration up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class Listener(NamedTuple):
    """A struct of the ControllerRegistration request."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class Feature(NamedTuple):
    """A struct of the ControllerRegistration request."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class ControllerRegistrationRequest(NamedTuple):
    """The ControllerRegistration request."""

    controller_id: int = 0
    incarnation_id: UUID | None = None
    zk_migration_ready: bool = False
    listeners: Sequence[Listener] = ()
    features: Sequence[Feature] = ()


class ControllerRegistrationResponse(NamedTuple):
    """The ControllerRegistration response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "Listener": Listener,
    "Feature": Feature,
    "ControllerRegistrationRequest": ControllerRegistrationRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ControllerRegistrationResponse": ControllerRegistrationResponse,
}

REQUEST_FIELDS: Final = """
ControllerRegistrationRequest 0 flexible 0+
 controller_id int32
 incarnation_id uuid
 zk_migration_ready bool
 listeners []Listener
  name string
  host string
  port uint16
  security_protocol int16
 features []Feature
  name string
  min_supported_version int16
  max_supported_version int16
"""
RESPONSE_FIELDS: Final = """
ControllerRegistrationResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
"""
