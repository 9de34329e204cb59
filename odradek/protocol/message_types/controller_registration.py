"""ControllerRegistration up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class Listener(NamedTuple):
    """Part of the ControllerRegistration request."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class Feature(NamedTuple):
    """Part of the ControllerRegistration request."""

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
