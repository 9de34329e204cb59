"""kio's schemas: a library's own reading of Kafka's definitions, which judges ours (odradek.protocol.messages).

kio has one dataclass for each API and version. ``field_specs`` turns its fields into ``FieldSpec``s with the names of our
canonical classes. kio decodes durations and times to ``timedelta`` and ``datetime``; ours are integers of milliseconds, and
their names say so (``timeout`` becomes ``timeout_ms``).
"""

from dataclasses import Field, dataclass, fields
from datetime import datetime, timedelta
from enum import IntEnum
from importlib import import_module
from types import NoneType
from typing import Any, get_args, get_origin

from kio.schema.index import schema_name_map

from odradek.protocol.api_keys import ApiKey
from tests.kio_newer import NEWER

MILLISECOND = timedelta(milliseconds=1)
_MILLISECOND_TYPES = frozenset({"timedelta_i32", "timedelta_i64", "datetime_i64"})
# Tagged arrays that kio takes for nullable.
_NEVER_NULL = {("BrokerRegistrationRequest", "log_dirs"), ("BrokerHeartbeatRequest", "offline_log_dirs")}
# Fields that Kafka 4.4 has renamed, in all versions: (message, name, type).
_RENAMED = {
    ("TxnOffsetCommitRequest", "generation_id", "int32"): "generation_id_or_member_epoch",
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag", "int32"): "acceptable_recovery_lag_legacy",
}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a message.

    ``wire_name`` is kio's attribute, ``name`` ours. ``kafka_type`` is kio's type name; for a struct it is None, and ``entity``
    is its kio class. ``tag`` is None for an untagged field.
    """

    name: str
    wire_name: str
    kafka_type: str | None
    entity: type[Any] | None
    is_array: bool
    nullable: bool
    tag: int | None


def load(api_key: ApiKey, version: int, kind: str) -> type[Any]:
    """Kio's class for an API's ``kind`` ("request" or "response") in that version."""
    newer = NEWER.get((api_key, version, kind))
    if newer is not None:
        return newer
    name = api_key.name.lower()
    module = import_module(f"kio.schema.{name}.v{version}.{kind}")
    camel = "".join(part.capitalize() for part in name.split("_"))
    return getattr(module, camel + kind.capitalize())  # type: ignore[no-any-return]


def versions(api_key: ApiKey) -> set[int]:
    """All versions of an API that ``load`` has."""
    own = {version for key, version, _ in NEWER if key == api_key}
    return own | set(schema_name_map.get(api_key.name.lower(), ()))


def field_specs(entity: type[Any]) -> tuple[FieldSpec, ...]:
    """The fields of one of kio's classes in wire order."""
    return tuple(_spec(entity.__name__, field) for field in fields(entity))


def _spec(owner: str, field: "Field[Any]") -> FieldSpec:
    inner, is_array, nullable = _unwrap(field.type)
    kafka_type = field.metadata.get("kafka_type")
    entity = inner if kafka_type is None else None
    in_milliseconds = kafka_type in _MILLISECOND_TYPES
    name = f"{field.name}_ms" if in_milliseconds and not field.name.endswith("_ms") else field.name.removesuffix("_")
    return FieldSpec(
        name=_RENAMED.get((owner, name, str(kafka_type)), name),
        wire_name=field.name,
        kafka_type=kafka_type,
        entity=entity,
        is_array=is_array,
        nullable=nullable and (owner, name) not in _NEVER_NULL,
        tag=field.metadata.get("tag"),
    )


def _unwrap(annotation: Any) -> tuple[Any, bool, bool]:
    """(type, is an array, may be null) of an annotation such as ``tuple[X, ...] | None``."""
    nullable = False
    arguments = get_args(annotation)
    if NoneType in arguments:
        nullable = True
        (annotation,) = (argument for argument in arguments if argument is not NoneType)
    if get_origin(annotation) is tuple:
        inner, _, inner_nullable = _unwrap(get_args(annotation)[0])
        return inner, True, nullable or inner_nullable
    return annotation, False, nullable


def plain(value: Any) -> Any:
    """A primitive of kio's in canonical form: durations and times as milliseconds, enums as numbers."""
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, IntEnum):
        return int(value)
    return value
