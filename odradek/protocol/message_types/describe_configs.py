"""DescribeConfigs up to version 4. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeConfigsResource(NamedTuple):
    """Part of the DescribeConfigs request."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequest(NamedTuple):
    """The DescribeConfigs request."""

    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(NamedTuple):
    """Part of the DescribeConfigs response."""

    name: str = ""
    value: str | None = None
    source: int = 0


class DescribeConfigsResourceResult(NamedTuple):
    """Part of the DescribeConfigs response."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = None


class DescribeConfigsResult(NamedTuple):
    """Part of the DescribeConfigs response."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(NamedTuple):
    """The DescribeConfigs response."""

    throttle_time_ms: int = 0
    results: Sequence[DescribeConfigsResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeConfigsResource": DescribeConfigsResource,
    "DescribeConfigsRequest": DescribeConfigsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribeConfigsSynonym": DescribeConfigsSynonym,
    "DescribeConfigsResourceResult": DescribeConfigsResourceResult,
    "DescribeConfigsResult": DescribeConfigsResult,
    "DescribeConfigsResponse": DescribeConfigsResponse,
}
