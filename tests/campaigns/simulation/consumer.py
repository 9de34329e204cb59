"""A group member that behaves like the Java client: its requests, their order, and its reaction to each error.

    no coordinator, or loading, or no response   retry after a while
    MEMBER_ID_REQUIRED                           retry with the member id in the response
    UNKNOWN_MEMBER_ID                            join again as a new member
    ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS    join again
    FENCED_INSTANCE_ID, any other                end; an operator may start it again

An eager member revokes its partitions before it joins again. A cooperative one keeps them and lists them in its JoinGroup. If
the assignment takes some from it, it revokes these and joins once more. The leader gives no partition to a member while another
one owns it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.campaigns.simulation.process import Process

if TYPE_CHECKING:
    from tests.campaigns.simulation.group_world import GroupWorld
    from tests.campaigns.simulation.plan import GroupPlan

JOIN = messages(ApiKey.JOIN_GROUP)
SYNC = messages(ApiKey.SYNC_GROUP)
HEARTBEAT = messages(ApiKey.HEARTBEAT)
LEAVE = messages(ApiKey.LEAVE_GROUP)

_RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
_LOST_PLACE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_BACKOFF_MS = 100


class Phase(Enum):
    """What a consumer is doing."""

    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()
    DEAD = auto()


class Consumer(Process):
    """One process of one consumer."""

    def __init__(
        self,
        world: GroupWorld,
        group: GroupPlan,
        client_id: str,
        instance_id: str | None,
        protocols: tuple[str, ...],
        *,
        join_version: int,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        super().__init__(world, group, client_id, instance_id)
        self.protocols = protocols
        self.join_version = join_version
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.phase = Phase.JOINING
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[Any, ...] = ()
        self._protocol_type: str | None = None
        self._protocol: str | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.phase is not Phase.DEAD

    def __str__(self) -> str:
        return f"{self.client_id}({self.member_id or '?'}, {self.generation}, {self.phase.name})"

    # ------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        """Join, and send heartbeats from then on."""
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        self._join()

    def die(self) -> None:
        """End the process without LeaveGroup."""
        self.phase = Phase.DEAD
        self.turn += 1

    def lose_connection(self) -> None:
        """Requests under way get no response. They may still arrive, after requests on the next connection."""
        self.turn += 1
        self._world.connect_anew(self)
        if self.phase in (Phase.JOINING, Phase.SYNCING):
            self._again()

    def leave(self, *, for_good: bool) -> None:
        """Leave the group, and end or come back as a new member. A static member is removed by name, as by an administrator."""
        identity = LEAVE.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        if self.member_id:
            request = LEAVE.LeaveGroupRequest(group_id=self.group.group_id, members=[identity])
            self._world.ask(self, ApiKey.LEAVE_GROUP, 5, lambda: request, lambda _: None)
        if for_good:
            self.die()
        else:
            self._forget()
            self._soon(500, self._join)

    def restart_with(self, protocols: tuple[str, ...]) -> None:
        """Replace this process by one of a new version."""
        self.protocols = protocols
        self._forget()
        self._soon(200, self._join)

    def _forget(self) -> None:
        self.turn += 1
        self.phase = Phase.JOINING
        self.member_id = ""
        self.generation = -1
        self.owned = ()

    # ------------------------------------------------------------------------------------------------ how it gets on

    def _again(self) -> None:
        self.phase = Phase.JOINING
        self._soon(_BACKOFF_MS, self._join)

    def _join(self) -> None:
        self.turn += 1
        self.phase = Phase.JOINING
        if not self.group.is_cooperative:
            self.owned = ()
        metadata = self._metadata()
        request = JOIN.JoinGroupRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocol_type="consumer",
            protocols=[JOIN.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols],
        )
        self._ask(ApiKey.JOIN_GROUP, self.join_version, request, self._on_join)

    def _metadata(self) -> bytes:
        """What the member tells the leader."""
        return self._world.subscription(self.group) + ",".join(map(str, self.owned)).encode()

    def _assigned(self, assignment: bytes) -> tuple[Any, ...]:
        """The partitions of an assignment."""
        listed = assignment.rpartition(b"|")[2]
        return tuple(map(int, listed.split(b","))) if listed else ()

    def _on_join(self, response: Any) -> None:
        if response is None:
            self._again()
            return
        code = response.error_code
        if code == ErrorCode.NONE:
            self.member_id = response.member_id
            self.generation = response.generation_id
            self._protocol_type = response.protocol_type
            self._protocol = response.protocol_name
            self._sync(response.members if response.leader == response.member_id and not response.skip_assignment else ())
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join()
        else:
            self._on_error(code)

    def _sync(self, members: Any) -> None:
        self.phase = Phase.SYNCING
        if members and self._world.may_repeat():
            # On another connection, with the assignment of another run of the assignor.
            self._world.connect_anew(self)
            self._soon(1, lambda: self._sync(members) if self.phase is Phase.SYNCING else None)
        says_protocol = self.join_version >= 7
        request = SYNC.SyncGroupRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            generation_id=self.generation,
            group_instance_id=self.instance_id,
            protocol_type=self._protocol_type if says_protocol else None,
            protocol_name=self._protocol if says_protocol else None,
            assignments=[
                SYNC.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in self._world.assign(self, members)
            ],
        )
        self._ask(ApiKey.SYNC_GROUP, 5 if says_protocol else 3, request, self._on_sync)

    def _on_sync(self, response: Any) -> None:
        if response is None:
            self._again()
        elif response.error_code == ErrorCode.NONE:
            self.phase = Phase.STABLE
            had = self.owned
            self.owned = self._assigned(bytes(response.assignment))
            if self.group.is_cooperative and not set(had) <= set(self.owned):
                self._join()
            elif self.owned:
                self._world.offsets.fetch(self, self.owned)
        else:
            self._on_error(response.error_code)

    def _tick(self) -> None:
        if self.phase is Phase.DEAD:
            return
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        if self.phase is not Phase.STABLE or self._is_stalled:
            return
        request = HEARTBEAT.HeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            generation_id=self.generation,
            group_instance_id=self.instance_id,
        )
        self._ask(ApiKey.HEARTBEAT, 4, request, self._on_heartbeat)
        self._commit()

    def _on_heartbeat(self, response: Any) -> None:
        if response is None or self.phase is not Phase.STABLE or response.error_code == ErrorCode.NONE:
            return
        code = response.error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._commit()
            self._join()
        elif code not in _RETRIABLE:
            self._on_error(code)

    def _commit(self) -> None:
        if self.owned:
            self._world.offsets.commit(self, self.owned, self._when_current(self._on_commit))

    def _on_commit(self, code: int) -> None:
        if self.phase is not Phase.STABLE or code == ErrorCode.NONE:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._join()
        elif code not in _RETRIABLE:
            self._on_error(code)

    def _on_error(self, code: int) -> None:
        if code in _LOST_PLACE:
            # The Java client keeps its member id if only the generation is wrong.
            self.member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            self.generation = -1
            self.owned = ()
            self._join()
        elif code in _RETRIABLE:
            self._again()
        else:
            self._world.note("%s ends with %s", self.client_id, ErrorCode(code).name)
            self.die()
            if code != ErrorCode.FENCED_INSTANCE_ID:
                self._world.restart_later(self)
