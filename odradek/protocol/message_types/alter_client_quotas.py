"""AlterClientQuotas up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class RequestEntityData(NamedTuple):
    """A struct of the AlterClientQuotas request."""

    entity_type: str = ""
    entity_name: str | None = None


class OpData(NamedTuple):
    """A struct of the AlterClientQuotas request."""

    key: str = ""
    value: float = 0.0
    remove: bool = False


class RequestEntryData(NamedTuple):
    """A struct of the AlterClientQuotas request."""

    entity: Sequence[RequestEntityData] = ()
    ops: Sequence[OpData] = ()


class AlterClientQuotasRequest(NamedTuple):
    """The AlterClientQuotas request."""

    entries: Sequence[RequestEntryData] = ()
    validate_only: bool = False


class EntityData(NamedTuple):
    """A struct of the AlterClientQuotas response."""

    entity_type: str = ""
    entity_name: str | None = None


class EntryData(NamedTuple):
    """A struct of the AlterClientQuotas response."""

    error_code: int = 0
    error_message: str | None = None
    entity: Sequence[EntityData] = ()


class AlterClientQuotasResponse(NamedTuple):
    """The AlterClientQuotas response."""

    throttle_time_ms: int = 0
    entries: Sequence[EntryData] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "EntityData": RequestEntityData,
    "OpData": OpData,
    "EntryData": RequestEntryData,
    "AlterClientQuotasRequest": AlterClientQuotasRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EntityData": EntityData,
    "EntryData": EntryData,
    "AlterClientQuotasResponse": AlterClientQuotasResponse,
}

REQUEST_FIELDS: Final = """
AlterClientQuotasRequest 0-1 flexible 1+
 entries []EntryData
  entity []EntityData
   entity_type string
   entity_name string null
  ops []OpData
   key string
   value float64
   remove bool
 validate_only bool
"""
RESPONSE_FIELDS: Final = """
AlterClientQuotasResponse 0-1 flexible 1+
 throttle_time_ms int32
 entries []EntryData
  error_code int16
  error_message string null
  entity []EntityData
   entity_type string
   entity_name string null
"""
