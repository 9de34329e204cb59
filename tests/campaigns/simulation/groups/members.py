"""A group member of the classic protocol that behaves like the Java client: its requests, and its reaction to each error.

    no coordinator, or loading, or no response   retry after a while
    MEMBER_ID_REQUIRED                           retry with the member id in the response
    UNKNOWN_MEMBER_ID                            join again as a new member
    ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS    join again
    FENCED_INSTANCE_ID, any other                end; an operator may start it again

An eager member revokes its partitions before it joins again. A cooperative one keeps them and lists them in its JoinGroup. If
the assignment takes some from it, it revokes these and joins once more. The leader gives no partition to a member while another
one owns it. A member looks at the metadata of topics as it heartbeats: it joins again where its regular expression matches
others, and, as a leader, where a topic of the group has more partitions or is another.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions, read_subscription
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.coordinator.group.migration_bed import assignment, subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from tests.campaigns.simulation.groups.broker import Topics
    from tests.campaigns.simulation.groups.consumer_member import Subscription
    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

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


class Process:
    """One process of one member of ``group``: requests and their answers, which may come too late, and stalls.

    ``turn`` numbers its activities; answers that belong to an earlier turn are ignored.
    """

    def __init__(self, world: World, group: GroupPlan, client_id: str, instance_id: str | None) -> None:
        self.group = group
        self.client_id = client_id
        self.instance_id = instance_id
        self.turn = 0
        self._world = world
        self._is_stalled = False
        self._inbox: list[Callable[[], None]] = []

    def stall(self, duration_ms: int) -> None:
        """Do nothing for a while; responses wait until then."""
        if not self._is_stalled:
            self._is_stalled = True
            self._world.later(duration_ms, self.go_on)

    def go_on(self) -> None:
        """End the stall, if there is one."""
        self._is_stalled = False
        inbox, self._inbox = self._inbox, []
        for step in inbox:
            step()

    def _when_current(self, step: Callable[..., None]) -> Callable[..., None]:
        """``step``, unless the process is in another turn by then; delayed while it is stalled."""
        turn = self.turn

        def run(*arguments: Any) -> None:
            if self.turn != turn:
                return
            if self._is_stalled:
                self._inbox.append(lambda: run(*arguments))
            else:
                step(*arguments)

        return run

    def _soon(self, delay_ms: float, step: Callable[[], None]) -> None:
        self._world.later(delay_ms, self._when_current(step))

    def _ask(self, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        self._world.ask(self, api_key, version, lambda: request, self._when_current(answered))


class Phase(Enum):
    """The states of a member."""

    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()
    DEAD = auto()


class ClassicMember(Process):
    """``owned`` are pairs of a topic's name and a partition."""

    speaks_consumer = False

    def __init__(
        self,
        world: World,
        group: GroupPlan,
        client_id: str,
        instance_id: str | None,
        subscription_: Subscription,
        protocols: tuple[str, ...],
        *,
        join_version: int,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        super().__init__(world, group, client_id, instance_id)
        self.subscription = subscription_
        self.protocols = protocols
        self.join_version = join_version
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.phase = Phase.JOINING
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[tuple[str, int], ...] = ()
        self._protocol_type: str | None = None
        self._protocol: str | None = None
        self._ids: dict[str, UUID] = {}
        self._ids_as_told: dict[str, UUID] = {}
        self._joined_with: list[str] = []
        # Of a leader: the topics of the group as it knew them.
        self._known: dict[str, tuple[UUID | None, int]] = {}

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.phase is not Phase.DEAD

    @property
    def partitions(self) -> frozenset[tuple[UUID, int]]:
        """Its partitions, by the ids that the topics had when it was assigned."""
        return frozenset((self._ids[name], index) for name, index in self.owned if name in self._ids)

    @property
    def is_settled(self) -> bool:
        """True once it has reported everything, and owns its assignment."""
        return self.phase is Phase.STABLE and self._names() == self._joined_with

    def __str__(self) -> str:
        return f"{self.client_id}({self.member_id or '?'}, {self.generation}, {self.phase.name})"

    # ------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        """Join, and send heartbeats from then on."""
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        self.join()

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
            self._soon(500, self.join)

    def restart_with(self, protocols: tuple[str, ...]) -> None:
        """Replace this process by one of a new version."""
        self.protocols = protocols
        self._forget()
        self._soon(200, self.join)

    def subscribe(self, subscription_: Subscription) -> None:
        """Subscribe to other topics; seen at the next heartbeat."""
        self.subscription = subscription_

    def _forget(self) -> None:
        self.turn += 1
        self.phase = Phase.JOINING
        self.member_id = ""
        self.generation = -1
        self.owned = ()

    # ------------------------------------------------------------------------------------------------ how it gets on

    def _names(self) -> list[str]:
        topics = self._world.topics
        found = topics.matching(self.subscription.pattern) if self.subscription.pattern else self.subscription.names
        return sorted(found)

    def _look_at(self, name: str) -> tuple[UUID | None, int]:
        topics = self._world.topics
        return topics.ids.get(name), topics.count(name)

    def _when_current(self, step: Callable[..., None]) -> Callable[..., None]:
        """The same, and some answers are lost on their way."""

        def take(*answers: Any) -> None:
            step(*((None,) if answers and not isinstance(answers[0], int) and self._world.may_repeat() else answers))

        return super()._when_current(take)

    def _again(self) -> None:
        self.phase = Phase.JOINING
        self._soon(_BACKOFF_MS, self.join)

    def join(self) -> None:
        """Ask to be a member, as whoever it is."""
        self._known = {}
        self._joined_with = self._names()
        self.turn += 1
        self.phase = Phase.JOINING
        if not self.group.is_cooperative:
            self.owned = ()
        owned: dict[str, list[int]] = {}
        for name, index in self.owned:
            owned.setdefault(name, []).append(index)
        metadata = subscription(self._joined_with, owned)
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

    def _on_join(self, response: Any) -> None:
        if response is None:
            self._again()
            return
        code = response.error_code
        if code == ErrorCode.NONE:
            names = {name for member in response.members for name in read_subscription(bytes(member.metadata)).topics}
            if names:
                self._known = {name: self._look_at(name) for name in names}
            self.member_id = response.member_id
            self.generation = response.generation_id
            self._protocol_type = response.protocol_type
            self._protocol = response.protocol_name
            self._sync(response.members if response.leader == response.member_id and not response.skip_assignment else ())
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
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
                SYNC.SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                for member_id, share in (self._shares(members) if members else ())
            ],
        )
        ids: dict[str, UUID] = {}

        def build() -> Any:
            ids.update(self._world.topics.ids)
            return request

        def respond(response: Any) -> None:
            self._ids_as_told = ids
            self._on_sync(response)

        self._world.ask(self, ApiKey.SYNC_GROUP, 5 if says_protocol else 3, build, self._when_current(respond))

    def _shares(self, members: Any) -> list[tuple[str, bytes]]:
        """The assignment that a leader makes; no two are the same where none has to be read: what has user data is not upgraded.

        A partition that a member owns goes to nobody else before it has given it up.
        """
        topics: Topics = self._world.topics
        token = f"{self.member_id}#{self._world.new_assignment()}".encode() if self._world.plan.is_classic else None
        said = {member.member_id: read_subscription(bytes(member.metadata)) for member in members}
        owners: dict[tuple[str, int], set[str]] = {}
        for member_id, each in said.items():
            for name, indexes in each.owned:
                for index in indexes:
                    owners.setdefault((name, index), set()).add(member_id)
        given: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in said}
        withheld = self._world.withheld[self.group.group_id] = {}
        for name in sorted({name for each in said.values() for name in each.topics}):
            readers: Sequence[str] = sorted(member_id for member_id, each in said.items() if name in each.topics)
            for index in range(topics.count(name)):
                wanted = readers[index % len(readers)]
                others = owners.get((name, index), set()) - {wanted}
                if others:
                    withheld[name, index] = min(others)
                else:
                    given[wanted].setdefault(name, []).append(index)
        return [(member_id, assignment(share, token)) for member_id, share in given.items()]

    def _on_sync(self, response: Any) -> None:
        if response is None:
            self._again()
        elif response.error_code == ErrorCode.NONE:
            self.phase = Phase.STABLE
            had = self.owned
            self._ids = self._ids_as_told
            given = assigned_partitions(bytes(response.assignment))
            self.owned = tuple((name, index) for name, indexes in given for index in indexes)
            if self.group.is_cooperative and not set(had) <= set(self.owned):
                self.join()
            elif self.owned:
                self._world.offsets.fetch(self)
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
        has_changed = any(self._look_at(name) != known for name, known in self._known.items())
        if self.phase is Phase.STABLE and (has_changed or self._names() != self._joined_with):
            self.join()

    def _on_heartbeat(self, response: Any) -> None:
        if response is None or self.phase is not Phase.STABLE or response.error_code == ErrorCode.NONE:
            return
        code = response.error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._commit()
            self.join()
        elif code not in _RETRIABLE:
            self._on_error(code)

    def _commit(self) -> None:
        if self.owned:
            self._world.offsets.commit(self, self._when_current(self._on_commit))

    def _on_commit(self, code: int) -> None:
        if self.phase is not Phase.STABLE or code == ErrorCode.NONE:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code not in _RETRIABLE:
            self._on_error(code)

    def _on_error(self, code: int) -> None:
        if code in _LOST_PLACE:
            # The Java client keeps its member id if only the generation is wrong.
            self.member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            self.generation = -1
            self.owned = ()
            self.join()
        elif code in _RETRIABLE:
            self._again()
        else:
            self._world.note("%s ends with %s", self.client_id, ErrorCode(code).name)
            self.die()
            if code != ErrorCode.FENCED_INSTANCE_ID:
                self._world.restart_later(self)
