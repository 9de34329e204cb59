"""AlterConfigs up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AlterableConfig(NamedTuple):
    """A struct of the AlterConfigs request."""

    name: str = ""
    value: str | None = None


class AlterConfigsResource(NamedTuple):
    """A struct of the AlterConfigs request."""

    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class AlterConfigsRequest(NamedTuple):
    """The AlterConfigs request."""

    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    """A struct of the AlterConfigs response."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(NamedTuple):
    """The AlterConfigs response."""

    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AlterableConfig": AlterableConfig,
    "AlterConfigsResource": AlterConfigsResource,
    "AlterConfigsRequest": AlterConfigsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AlterConfigsResourceResponse": AlterConfigsResourceResponse,
    "AlterConfigsResponse": AlterConfigsResponse,
}

REQUEST_FIELDS: Final = """
AlterConfigsRequest 0-2 flexible 2+
 resources []AlterConfigsResource
  resource_type int8
  resource_name string
  configs []AlterableConfig
   name string
   value string null
 validate_only bool
"""
RESPONSE_FIELDS: Final = """
AlterConfigsResponse 0-2 flexible 2+
 throttle_time_ms int32
 responses []AlterConfigsResourceResponse
  error_code int16
  error_message string null
  resource_type int8
  resource_name string
"""
