"""DescribeClientQuotas up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ComponentData(NamedTuple):
    """A struct of the DescribeClientQuotas request."""

    entity_type: str = ""
    match_type: int = 0
    match: str | None = None


class DescribeClientQuotasRequest(NamedTuple):
    """The DescribeClientQuotas request."""

    components: Sequence[ComponentData] = ()
    strict: bool = False


class EntityData(NamedTuple):
    """A struct of the DescribeClientQuotas response."""

    entity_type: str = ""
    entity_name: str | None = None


class ValueData(NamedTuple):
    """A struct of the DescribeClientQuotas response."""

    key: str = ""
    value: float = 0.0


class EntryData(NamedTuple):
    """A struct of the DescribeClientQuotas response."""

    entity: Sequence[EntityData] = ()
    values: Sequence[ValueData] = ()


class DescribeClientQuotasResponse(NamedTuple):
    """The DescribeClientQuotas response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    entries: Sequence[EntryData] | None = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ComponentData": ComponentData,
    "DescribeClientQuotasRequest": DescribeClientQuotasRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EntityData": EntityData,
    "ValueData": ValueData,
    "EntryData": EntryData,
    "DescribeClientQuotasResponse": DescribeClientQuotasResponse,
}

REQUEST_FIELDS: Final = """
DescribeClientQuotasRequest 0-1 flexible 1+
 components []ComponentData
  entity_type string
  match_type int8
  match string null
 strict bool
"""
RESPONSE_FIELDS: Final = """
DescribeClientQuotasResponse 0-1 flexible 1+
 throttle_time_ms int32
 error_code int16
 error_message string null
 entries []EntryData null
  entity []EntityData
   entity_type string
   entity_name string null
  values []ValueData
   key string
   value float64
"""
