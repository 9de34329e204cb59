"""ListConfigResources up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListConfigResourcesRequest(NamedTuple):
    """The ListConfigResources request."""

    resource_types: Sequence[int] = ()


class ConfigResource(NamedTuple):
    """A struct of the ListConfigResources response."""

    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(NamedTuple):
    """The ListConfigResources response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: Sequence[ConfigResource] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ListConfigResourcesRequest": ListConfigResourcesRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ConfigResource": ConfigResource,
    "ListConfigResourcesResponse": ListConfigResourcesResponse,
}

REQUEST_FIELDS: Final = """
ListConfigResourcesRequest 0-1 flexible 0+
 resource_types []int8 1+
"""
RESPONSE_FIELDS: Final = """
ListConfigResourcesResponse 0-1 flexible 0+
 throttle_time_ms int32
 error_code int16
 config_resources []ConfigResource
  resource_name string
  resource_type int8 1+ = 16
"""
