"""AddRaftVoter up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class Listener(NamedTuple):
    """A struct of the AddRaftVoter request."""

    name: str = ""
    host: str = ""
    port: int = 0


class AddRaftVoterRequest(NamedTuple):
    """The AddRaftVoter request."""

    cluster_id: str | None = None
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID | None = None
    listeners: Sequence[Listener] = ()
    ack_when_committed: bool = True


class AddRaftVoterResponse(NamedTuple):
    """The AddRaftVoter response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "Listener": Listener,
    "AddRaftVoterRequest": AddRaftVoterRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AddRaftVoterResponse": AddRaftVoterResponse,
}

REQUEST_FIELDS: Final = """
AddRaftVoterRequest 0-1 flexible 0+
 cluster_id string null
 timeout_ms int32
 voter_id int32
 voter_directory_id uuid
 listeners []Listener
  name string
  host string
  port uint16
 ack_when_committed bool 1+ = true
"""
RESPONSE_FIELDS: Final = """
AddRaftVoterResponse 0-1 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
"""
