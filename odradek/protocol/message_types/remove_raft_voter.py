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
