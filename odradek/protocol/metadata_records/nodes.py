"""Metadata records of brokers and controllers: their registration (KIP-631, KIP-919). Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.protocol.metadata_records.base import ZERO_ID


class NodeEndpoint(NamedTuple):
    """The address of a node's listener."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


class NodeFeature(NamedTuple):
    """The levels of a feature that a node supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


class RegisterBrokerRecord(NamedTuple):
    """A broker has registered: a new incarnation of it, with a new epoch."""

    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: UUID = ZERO_ID
    broker_epoch: int = 0
    end_points: tuple[NodeEndpoint, ...] = ()
    features: tuple[NodeFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


class UnregisterBrokerRecord(NamedTuple):
    """A broker is no longer a member of the cluster."""

    broker_id: int = 0
    broker_epoch: int = 0


class FenceBrokerRecord(NamedTuple):
    """A broker is fenced: it leads no partition. Written by Kafka before 3.3."""

    id: int = 0
    epoch: int = 0


class UnfenceBrokerRecord(NamedTuple):
    """A broker is unfenced: it may lead partitions. Written by Kafka before 3.3."""

    id: int = 0
    epoch: int = 0


class BrokerRegistrationChangeRecord(NamedTuple):
    """A registration changes.

    ``fenced``: 1 fences, -1 unfences, 0 means no change; ``in_controlled_shutdown``: 1 sets it. Empty ``log_dirs`` and null
    ``cordoned_log_dirs`` mean no change.
    """

    broker_id: int = 0
    broker_epoch: int = 0
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


class RegisterControllerRecord(NamedTuple):
    """A controller has registered."""

    controller_id: int = 0
    incarnation_id: UUID = ZERO_ID
    zk_migration_ready: bool = False
    end_points: tuple[NodeEndpoint, ...] = ()
    features: tuple[NodeFeature, ...] = ()


class UnregisterControllerRecord(NamedTuple):
    """A controller is no longer registered."""

    controller_id: int = 0


CLASSES: Final[dict[str, type[Any]]] = {
    "NodeEndpoint": NodeEndpoint,
    "NodeFeature": NodeFeature,
    "RegisterBrokerRecord": RegisterBrokerRecord,
    "UnregisterBrokerRecord": UnregisterBrokerRecord,
    "FenceBrokerRecord": FenceBrokerRecord,
    "UnfenceBrokerRecord": UnfenceBrokerRecord,
    "BrokerRegistrationChangeRecord": BrokerRegistrationChangeRecord,
    "RegisterControllerRecord": RegisterControllerRecord,
    "UnregisterControllerRecord": UnregisterControllerRecord,
}
FIELDS: Final[dict[int, str]] = {
    0: """
RegisterBrokerRecord 0-4 flexible 0+
 broker_id int32
 is_migrating_zk_broker bool 2+ = false
 incarnation_id uuid
 broker_epoch int64
 end_points []NodeEndpoint
  name string
  host string
  port uint16
  security_protocol int16
 features []NodeFeature
  name string
  min_supported_version int16
  max_supported_version int16
 rack string null
 fenced bool = true
 in_controlled_shutdown bool 1+ = false
 log_dirs []uuid 3+ tag 0
 cordoned_log_dirs []uuid 4+ null 4+ tag 1 = null
""",
    1: """
UnregisterBrokerRecord 0 flexible 0+
 broker_id int32
 broker_epoch int64
""",
    7: """
FenceBrokerRecord 0 flexible 0+
 id int32
 epoch int64
""",
    8: """
UnfenceBrokerRecord 0 flexible 0+
 id int32
 epoch int64
""",
    17: """
BrokerRegistrationChangeRecord 0-3 flexible 0+
 broker_id int32
 broker_epoch int64
 fenced int8 tag 0
 in_controlled_shutdown int8 1+ tag 1
 log_dirs []uuid 2+ tag 2
 cordoned_log_dirs []uuid 3+ null 3+ tag 3 = null
""",
    27: """
RegisterControllerRecord 0 flexible 0+
 controller_id int32
 incarnation_id uuid
 zk_migration_ready bool
 end_points []NodeEndpoint
  name string
  host string
  port uint16
  security_protocol int16
 features []NodeFeature
  name string
  min_supported_version int16
  max_supported_version int16
""",
    29: """
UnregisterControllerRecord 0 flexible 0+
 controller_id int32
""",
}
