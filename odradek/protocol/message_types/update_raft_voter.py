"""UpdateRaftVoter up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class Listener(NamedTuple):
    """A struct of the UpdateRaftVoter request."""

    name: str = ""
    host: str = ""
    port: int = 0


class KRaftVersionFeature(NamedTuple):
    """A struct of the UpdateRaftVoter request."""

    min_supported_version: int = 0
    max_supported_version: int = 0


class UpdateRaftVoterRequest(NamedTuple):
    """The UpdateRaftVoter request."""

    cluster_id: str | None = None
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: UUID | None = None
    listeners: Sequence[Listener] = ()
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class CurrentLeader(NamedTuple):
    """A struct of the UpdateRaftVoter response."""

    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


class UpdateRaftVoterResponse(NamedTuple):
    """The UpdateRaftVoter response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = CurrentLeader()


REQUEST: Final[dict[str, type[Any]]] = {
    "Listener": Listener,
    "KRaftVersionFeature": KRaftVersionFeature,
    "UpdateRaftVoterRequest": UpdateRaftVoterRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "CurrentLeader": CurrentLeader,
    "UpdateRaftVoterResponse": UpdateRaftVoterResponse,
}

REQUEST_FIELDS: Final = """
UpdateRaftVoterRequest 0 flexible 0+
 cluster_id string null
 current_leader_epoch int32
 voter_id int32
 voter_directory_id uuid
 listeners []Listener
  name string
  host string
  port uint16
 k_raft_version_feature KRaftVersionFeature
  min_supported_version int16
  max_supported_version int16
"""
RESPONSE_FIELDS: Final = """
UpdateRaftVoterResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 current_leader CurrentLeader tag 0
  leader_id int32 = -1
  leader_epoch int32 = -1
  host string
  port int32
"""
