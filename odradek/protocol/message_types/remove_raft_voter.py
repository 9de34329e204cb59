"""RemoveRaftVoter up to version 0. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID


class RemoveRaftVoterRequest(NamedTuple):
    """The RemoveRaftVoter request."""

    cluster_id: str | None = None
    voter_id: int = 0
    voter_directory_id: UUID | None = None


class RemoveRaftVoterResponse(NamedTuple):
    """The RemoveRaftVoter response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "RemoveRaftVoterRequest": RemoveRaftVoterRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "RemoveRaftVoterResponse": RemoveRaftVoterResponse,
}

REQUEST_FIELDS: Final = """
RemoveRaftVoterRequest 0 flexible 0+
 cluster_id string null
 voter_id int32
 voter_directory_id uuid
"""
RESPONSE_FIELDS: Final = """
RemoveRaftVoterResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
"""
