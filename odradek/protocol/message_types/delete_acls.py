"""DeleteAcls up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DeleteAclsFilter(NamedTuple):
    """A struct of the DeleteAcls request."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(NamedTuple):
    """The DeleteAcls request."""

    filters: Sequence[DeleteAclsFilter] = ()


class DeleteAclsMatchingAcl(NamedTuple):
    """A struct of the DeleteAcls response."""

    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(NamedTuple):
    """A struct of the DeleteAcls response."""

    error_code: int = 0
    error_message: str | None = None
    matching_acls: Sequence[DeleteAclsMatchingAcl] = ()


class DeleteAclsResponse(NamedTuple):
    """The DeleteAcls response."""

    throttle_time_ms: int = 0
    filter_results: Sequence[DeleteAclsFilterResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DeleteAclsFilter": DeleteAclsFilter,
    "DeleteAclsRequest": DeleteAclsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DeleteAclsMatchingAcl": DeleteAclsMatchingAcl,
    "DeleteAclsFilterResult": DeleteAclsFilterResult,
    "DeleteAclsResponse": DeleteAclsResponse,
}

REQUEST_FIELDS: Final = """
DeleteAclsRequest 1-3 flexible 2+
 filters []DeleteAclsFilter
  resource_type_filter int8
  resource_name_filter string null
  pattern_type_filter int8 = 3
  principal_filter string null
  host_filter string null
  operation int8
  permission_type int8
"""
RESPONSE_FIELDS: Final = """
DeleteAclsResponse 1-3 flexible 2+
 throttle_time_ms int32
 filter_results []DeleteAclsFilterResult
  error_code int16
  error_message string null
  matching_acls []DeleteAclsMatchingAcl
   error_code int16
   error_message string null
   resource_type int8
   resource_name string
   pattern_type int8 = 3
   principal string
   host string
   operation int8
   permission_type int8
"""
