"""DescribeConfigs up to version 4. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeConfigsResource(NamedTuple):
    """A struct of the DescribeConfigs request."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequest(NamedTuple):
    """The DescribeConfigs request."""

    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(NamedTuple):
    """A struct of the DescribeConfigs response."""

    name: str = ""
    value: str | None = None
    source: int = 0


class DescribeConfigsResourceResult(NamedTuple):
    """A struct of the DescribeConfigs response."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = None


class DescribeConfigsResult(NamedTuple):
    """A struct of the DescribeConfigs response."""

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

REQUEST_FIELDS: Final = """
DescribeConfigsRequest 1-4 flexible 4+
 resources []DescribeConfigsResource
  resource_type int8
  resource_name string
  configuration_keys []string null
 include_synonyms bool = false
 include_documentation bool 3+ = false
"""
RESPONSE_FIELDS: Final = """
DescribeConfigsResponse 1-4 flexible 4+
 throttle_time_ms int32
 results []DescribeConfigsResult
  error_code int16
  error_message string null
  resource_type int8
  resource_name string
  configs []DescribeConfigsResourceResult
   name string
   value string null
   read_only bool
   config_source int8 = -1
   is_sensitive bool
   synonyms []DescribeConfigsSynonym
    name string
    value string null
    source int8
   config_type int8 3+ = 0
   documentation string 3+ null 3+
"""
