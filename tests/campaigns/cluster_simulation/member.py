"""The one member of a group: it joins once, and goes on whoever coordinates, without having to join again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.heartbeat import HeartbeatRequest
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.campaigns.cluster_simulation.client import GROUP
from tests.campaigns.cluster_simulation.consumers import Committer
from tests.campaigns.cluster_simulation.ledger import MEMBER
from tests.campaigns.cluster_simulation.producers import RETRIABLE
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.world import World

_JOIN: Api[Any, Any] = Api(ApiKey.JOIN_GROUP, 5, 9)
_SYNC: Api[Any, Any] = Api(ApiKey.SYNC_GROUP, 3)
_HEARTBEAT: Api[Any, Any] = Api(ApiKey.HEARTBEAT, 3)
_SESSION_MS = 30_000


class Member(Committer):
    """A Committer that is a member: longer than its session no coordinator is missing, so that its membership never ends."""

    def __init__(self, world: World, name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._assignment = name.encode()

    async def work(self) -> None:
        """Join, then commit and send heartbeats as long as the world is in trouble, and a little beyond."""
        while not await self._join():
            await self.look_for_coordinator(self.group, GROUP)
        await super().work()

    async def _join(self) -> bool:
        """Whether the group is this member's now."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_SESSION_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )
        response = await self.ask_coordinator(self.group, GROUP, _JOIN, request)
        if response is None or response.error_code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            if response is not None and response.error_code not in RETRIABLE:
                # An id that was given is remembered by the coordinator that gave it, until the group is in its log.
                self.member_id = ""
            return False
        self.member_id = response.member_id
        if response.error_code:
            return False
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=response.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(self.member_id, self._assignment)],
        )
        synced = await self.ask_coordinator(self.group, GROUP, _SYNC, sync)
        if synced is None or synced.error_code:
            return False
        self.generation = response.generation_id
        self.world.note("%s is in generation %s", self.name, self.generation)
        return True

    async def look_after_group(self) -> None:
        """Send a heartbeat. Raises Violation where the group does not know this member any more."""
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        response = await self.ask_coordinator(self.group, GROUP, _HEARTBEAT, request)
        code = None if response is None else response.error_code
        if code == ErrorCode.NONE:
            return
        if code is not None and code not in RETRIABLE:
            raise Violation(MEMBER, f"{self.name}: a heartbeat is answered {ErrorCode(code).name}")
        await self.look_for_coordinator(self.group, GROUP)
