"""CreateAcls up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AclCreation(NamedTuple):
    """Part of the CreateAcls request."""

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
    """Part of the CreateAcls response."""

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
