"""AlterConfigs up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AlterableConfig(NamedTuple):
    """Part of the AlterConfigs request."""

    name: str = ""
    value: str | None = None


class AlterConfigsResource(NamedTuple):
    """Part of the AlterConfigs request."""

    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class AlterConfigsRequest(NamedTuple):
    """The AlterConfigs request."""

    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    """Part of the AlterConfigs response."""

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
