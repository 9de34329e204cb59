"""CreateAcls up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AclCreation(NamedTuple):
    """A struct of the CreateAcls request."""

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(NamedTuple):
    """The CreateAcls request."""

    creations: Sequence[AclCreation] = ()


class AclCreationResult(NamedTuple):
    """A struct of the CreateAcls response."""

    error_code: int = 0
    error_message: str | None = None


class CreateAclsResponse(NamedTuple):
    """The CreateAcls response."""

    throttle_time_ms: int = 0
    results: Sequence[AclCreationResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AclCreation": AclCreation,
    "CreateAclsRequest": CreateAclsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AclCreationResult": AclCreationResult,
    "CreateAclsResponse": CreateAclsResponse,
}

REQUEST_FIELDS: Final = """
CreateAclsRequest 1-3 flexible 2+
 creations []AclCreation
  resource_type int8
  resource_name string
  resource_pattern_type int8 = 3
  principal string
  host string
  operation int8
  permission_type int8
"""
RESPONSE_FIELDS: Final = """
CreateAclsResponse 1-3 flexible 2+
 throttle_time_ms int32
 results []AclCreationResult
  error_code int16
  error_message string null
"""
