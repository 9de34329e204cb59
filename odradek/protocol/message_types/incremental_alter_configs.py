"""IncrementalAlterConfigs up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AlterableConfig(NamedTuple):
    """A struct of the IncrementalAlterConfigs request."""

    name: str = ""
    config_operation: int = 0
    value: str | None = None


class AlterConfigsResource(NamedTuple):
    """A struct of the IncrementalAlterConfigs request."""

    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class IncrementalAlterConfigsRequest(NamedTuple):
    """The IncrementalAlterConfigs request."""

    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    """A struct of the IncrementalAlterConfigs response."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(NamedTuple):
    """The IncrementalAlterConfigs response."""

    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AlterableConfig": AlterableConfig,
    "AlterConfigsResource": AlterConfigsResource,
    "IncrementalAlterConfigsRequest": IncrementalAlterConfigsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AlterConfigsResourceResponse": AlterConfigsResourceResponse,
    "IncrementalAlterConfigsResponse": IncrementalAlterConfigsResponse,
}

REQUEST_FIELDS: Final = """
IncrementalAlterConfigsRequest 0-1 flexible 1+
 resources []AlterConfigsResource
  resource_type int8
  resource_name string
  configs []AlterableConfig
   name string
   config_operation int8
   value string null
 validate_only bool
"""
RESPONSE_FIELDS: Final = """
IncrementalAlterConfigsResponse 0-1 flexible 1+
 throttle_time_ms int32
 responses []AlterConfigsResourceResponse
  error_code int16
  error_message string null
  resource_type int8
  resource_name string
"""
