"""BrokerRegistration up to version 4. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class Listener(NamedTuple):
    """A struct of the BrokerRegistration request."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class Feature(NamedTuple):
    """A struct of the BrokerRegistration request."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class BrokerRegistrationRequest(NamedTuple):
    """The BrokerRegistration request."""

    broker_id: int = 0
    cluster_id: str = ""
    incarnation_id: UUID | None = None
    listeners: Sequence[Listener] = ()
    features: Sequence[Feature] = ()
    rack: str | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: Sequence[UUID | None] = ()
    previous_broker_epoch: int = -1


class BrokerRegistrationResponse(NamedTuple):
    """The BrokerRegistration response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1


REQUEST: Final[dict[str, type[Any]]] = {
    "Listener": Listener,
    "Feature": Feature,
    "BrokerRegistrationRequest": BrokerRegistrationRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "BrokerRegistrationResponse": BrokerRegistrationResponse,
}

REQUEST_FIELDS: Final = """
BrokerRegistrationRequest 0-4 flexible 0+
 broker_id int32
 cluster_id string
 incarnation_id uuid
 listeners []Listener
  name string
  host string
  port uint16
  security_protocol int16
 features []Feature
  name string
  min_supported_version int16
  max_supported_version int16
 rack string null
 is_migrating_zk_broker bool 1+ = false
 log_dirs []uuid 2+
 previous_broker_epoch int64 3+ = -1
"""
RESPONSE_FIELDS: Final = """
BrokerRegistrationResponse 0-4 flexible 0+
 throttle_time_ms int32
 error_code int16
 broker_epoch int64 = -1
"""
