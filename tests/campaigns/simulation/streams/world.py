"""One history of streams groups: the world of consumer groups, with members that run the tasks of applications."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from odradek.coordinator.group.consumer.member import LEAVE_EPOCH
from odradek.coordinator.group.streams.configured_topology import Status
from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.group.streams.groups import StreamsGroupConfig
from odradek.protocol.api_keys import ApiKey
from tests.campaigns.simulation.groups.plan import REBALANCE_TIMEOUTS_MS
from tests.campaigns.simulation.groups.world import World
from tests.campaigns.simulation.streams import checks
from tests.campaigns.simulation.streams.administrator import StreamsAdministrator
from tests.campaigns.simulation.streams.applications import APPLICATIONS
from tests.campaigns.simulation.streams.member import StreamsMember
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.groups.administrator import Administrator
    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import Call
    from tests.campaigns.simulation.streams.applications import Application
    from tests.campaigns.simulation.streams.plan import StreamsGroupPlan, StreamsPlan

SHUTDOWN = "all members hear of a shutdown"
_CHECKED_APIS = frozenset({ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT})


class StreamsWorld(World):
    """A history of streams groups. ``applications`` are those that run now, by group id."""

    plan: StreamsPlan

    def __init__(self, seed: int, draw: Callable[[Random], Any], show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, draw, show)
        plan = self.plan
        self.applications: dict[str, Application] = {}
        for group in plan.groups:
            self.deploy(group, cast("StreamsGroupPlan", group).application)
        self.streams_config = StreamsGroupConfig(
            session_timeout_ms=plan.session_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_interval_ms,
            assignment_interval_ms=plan.assignment_interval_ms,
            initial_rebalance_delay_ms=plan.initial_rebalance_delay_ms,
            num_standby_replicas=plan.standby_tasks,
        )
        self._processes: dict[str, str] = {}
        self._checked: dict[str, object] = {}
        # By group id: the shard in which a member has asked for a shutdown, and how often the group has forgotten that, as in
        # Kafka: it was not there, or lost its last member. By request, both at the time of its arrival.
        self._shutdowns: dict[str, GroupShard] = {}
        self._forgotten: Counter[str] = Counter()
        self._at_arrival: dict[int, tuple[GroupShard | None, int]] = {}

    def _make_administrator(self) -> Administrator:
        return StreamsAdministrator(self)

    def deploy(self, group: GroupPlan, number: int) -> None:
        """Let members that start from now on run the application of this number."""
        make = APPLICATIONS[number % len(APPLICATIONS)]
        self.applications[group.group_id] = make(group.group_id, cast("StreamsGroupPlan", group).topology_epoch)

    # ------------------------------------------------------------------------------------------------------- members

    def draw_subscription(self, group: GroupPlan) -> Any:
        """The group's application."""
        return self.applications[group.group_id]

    def make_member(
        self,
        group: GroupPlan,
        name: str,
        instance_id: str | None,
        *,
        speaks_consumer: bool | None = None,
        subscription: Any = None,
    ) -> StreamsMember:
        """A thread that is yet to be started. One that is started anew is in the process that it was in."""
        rng = self.rng
        process = self._processes.get(name)
        if process is None:
            count = cast("StreamsGroupPlan", group).processes
            process = self._processes[name] = f"process{rng.randrange(count)}@{group.group_id}"
        return StreamsMember(
            self,
            group,
            name,
            instance_id,
            subscription or self.applications[group.group_id],
            process_id=process,
            version=rng.choice((0, 1)),
            rebalance_timeout_ms=rng.choice(REBALANCE_TIMEOUTS_MS),
        )

    def successor(self, process: Any, *, speaks_consumer: bool = True) -> StreamsMember:
        """The thread that takes the place of one that ends, of the application that is deployed by then."""
        return self.make_member(process.group, process.client_id, process.instance_id)

    # -------------------------------------------------------------------------------------------------------- checks

    def _check_group(self, plan: GroupPlan, hosted: HostedShard[GroupShard], group: Any) -> None:
        if not isinstance(group, StreamsGroup):
            return
        members = dict(group.members.items())
        checks.check_deadlines(hosted, group, members)
        alive = self.alive(plan)
        checked = hosted.shard, [*members.values()], [(each.member_id, each.held) for each in alive]
        # Most moments change neither.
        if self._checked.get(plan.group_id) != checked:
            self._checked[plan.group_id] = checked
            checks.check_owners(group, alive)
            checks.check_roles(group, members.values())

    def _objection(self, api_key: ApiKey, request: Any) -> str:
        if api_key not in _CHECKED_APIS:
            return ""
        hosted = self.hosted(request.group_id)
        said = self.log_of(request.group_id).history.find(request.group_id)
        self._refused_untruly[id(request)] = checks.untrue_refusals(api_key, request, hosted, said)
        if api_key is ApiKey.STREAMS_GROUP_HEARTBEAT:
            found = None if hosted is None else hosted.shard.groups.find(request.group_id)
            if hosted is not None and checks.forgets_shutdown(found, request):
                self._shutdowns.pop(request.group_id, None)
                self._forgotten[request.group_id] += 1
            self._at_arrival[id(request)] = self._shutdowns.get(request.group_id), self._forgotten[request.group_id]
            is_last_to_leave = request.member_epoch == LEAVE_EPOCH and isinstance(found, StreamsGroup) and len(found.members) == 1
            if not isinstance(found, StreamsGroup) or is_last_to_leave:
                self._forgotten[request.group_id] += 1
        return checks.objection_to(api_key, request, hosted, said, self.topics)

    def objection_to_epoch(self, group_id: str, member_id: str | None, epoch: int) -> str:
        """Reasons against a member's OffsetFetch now."""
        hosted = self.hosted(group_id)
        if hosted is None or hosted._is_deciding:
            return ""
        return checks.objection_to_epoch(hosted.shard.groups.find(group_id), member_id, epoch, hosted.committed_offset)

    def _note_answer(self, call: Call, response: Any) -> None:
        asked, forgotten = self._at_arrival.pop(id(call.request), (None, -1))
        super()._note_answer(call, response)
        if call.api_key is not ApiKey.STREAMS_GROUP_HEARTBEAT or response.error_code:
            return
        group_id = call.request.group_id
        notes = self.broker.notes[self.partition_of(group_id)]
        if call.request.shutdown_application and self._forgotten[group_id] == forgotten:
            self._shutdowns.setdefault(group_id, notes.shard)
        codes = {each.status_code for each in response.status}
        is_to_be_told = asked is notes.shard and self._shutdowns.get(group_id) is asked and not notes.has_failed
        if is_to_be_told and call.request.member_epoch >= 0 and Status.SHUTDOWN_APPLICATION not in codes:
            raise Violation(SHUTDOWN, f"{call.request} is answered {response}")
