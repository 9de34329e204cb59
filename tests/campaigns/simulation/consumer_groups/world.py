"""One history of groups of the consumer protocol: their members, of both protocols, their topics, and what is checked of them.

After the time of faults all is set right, and the history has to come to a good end (``ending``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.campaigns.simulation.broker import SimulatedBroker
from tests.campaigns.simulation.consumer_groups import checks
from tests.campaigns.simulation.consumer_groups.classic_member import ClassicMember, shares
from tests.campaigns.simulation.consumer_groups.history import ConsumerGroupHistory
from tests.campaigns.simulation.consumer_groups.member import ConsumerMember, Subscription
from tests.campaigns.simulation.consumer_groups.offsets import ConsumerOffsets
from tests.campaigns.simulation.consumer_groups.plan import draw
from tests.campaigns.simulation.consumer_groups.replayed import check_replayed
from tests.campaigns.simulation.consumer_groups.topics import Topics
from tests.campaigns.simulation.group_world import GroupWorld
from tests.campaigns.simulation.logs import SimulatedLog
from tests.campaigns.simulation.plan import REBALANCE_TIMEOUTS_MS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.consumer.groups import ConsumerGroupServices
    from tests.campaigns.simulation.consumer_groups.plan import GroupPlan, Plan
    from tests.campaigns.simulation.group_world import Call

COMMITTED = "who is told of an epoch is told what is committed"
KNOWN = "who is in a group is known there"
SHOWN = "groups are shown as they are"


class ConsumerWorld(GroupWorld):
    """``is_changed`` is set by whatever may have changed what is checked after each moment. The world is its administrator."""

    plan: Plan

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, draw, lambda plan: SimulatedLog(plan.max_batch_bytes, ConsumerGroupHistory()), show)
        self.is_changed = False
        self._refused_untruly: dict[int, frozenset[int]] = {}
        topics = {name: count for group in self.plan.groups for name, count in group.topics.items() if count}
        self._config = ConsumerGroupConfig(
            session_timeout_ms=self.plan.session_timeout_ms,
            heartbeat_interval_ms=self.plan.heartbeat_interval_ms,
            assignment_interval_ms=self.plan.assignment_interval_ms,
            migration_policy=self.plan.policy,
        )
        self.broker = SimulatedBroker(
            self.clock,
            self.logs,
            topics,
            GroupConfig(group_initial_rebalance_delay_ms=0),
            self.plan.load_buffer_bytes,
            self._on_broker_fault,
            self._services,
        )
        self.topics = Topics(self.broker.controller)
        self.broker.start()
        self.offsets = ConsumerOffsets(self)
        self.administrator = self

    def _services(self, services: ConsumerGroupServices) -> ConsumerGroupServices:
        return replace(services, config_of=lambda _: self._config, run_beside=self._run_beside)

    def _run_beside(self, work: Callable[[Callable[[], None]], Any], then: Callable[[Any], None]) -> None:
        """In a thread that takes a while, and of which nobody hears if the broker dies."""
        timer = self.broker.timer

        def finish() -> None:
            if self.broker.timer is timer:
                then(work(lambda: None))

        self.later(self.rng.choice((1, 20, 500)), finish)

    def new_token(self) -> int:
        """A number that is given once."""
        self.tokens += 1
        return self.tokens

    # --------------------------------------------------------------------------------------------------- invariants

    def _note_delivered(self, request: Any) -> None:
        self.is_changed = True

    def _check_moment(self) -> None:
        if not self.is_changed:
            return
        self.is_changed = False
        for plan in self.plan.groups:
            hosted = self.hosted(plan.group_id)
            group = None if hosted is None else hosted.shard.groups.find(plan.group_id)
            if hosted is None or group is None:
                continue
            checks.check_owners(group, self.alive(plan), self.topics)
            if isinstance(group, ConsumerGroup):
                checks.check_deadlines(hosted, group)
            elif isinstance(group, ClassicGroup):
                self.broker.notes[hosted.partition].checks.check_group(hosted, group)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the log says."""
        for hosted in self.broker.active():
            check_replayed(self.logs, hosted, has_failed=self.broker.notes[hosted.partition].has_failed)

    def _objection(self, api_key: ApiKey, request: Any) -> str:
        if api_key not in checks.CHECKED_APIS:
            return ""
        hosted = self.hosted(request.group_id)
        said = self.log_of(request.group_id).history.find(request.group_id)
        self._refused_untruly[id(request)] = checks.untrue_refusals(api_key, request, hosted, said)
        return checks.objection_to(api_key, request, hosted, self.topics)

    def objection_to_epoch(self, group_id: str, member_id: str | None, epoch: int) -> str:
        """What there is to be said against a member's fetching of offsets now."""
        hosted = self.hosted(group_id)
        if hosted is None or hosted._is_deciding:
            return ""
        return checks.objection_to_epoch(hosted.shard.groups.find(group_id), member_id, epoch)

    def _note_answer(self, call: Call, response: Any) -> None:
        self.is_changed = True
        untrue = self._refused_untruly.pop(id(call.request), frozenset())
        code = getattr(response, "error_code", ErrorCode.NONE)
        super()._note_answer(call, response)
        if code in untrue:
            raise Violation(KNOWN, f"{call.request} is answered {ErrorCode(code).name}")

    def _check_granted(self, call: Call, response: Any) -> None:
        if call.api_key is not ApiKey.CONSUMER_GROUP_HEARTBEAT or response.member_epoch <= 0:
            return
        group_id = call.request.group_id
        log = self.log_of(group_id)
        if not log.history.is_reached(group_id, response.member_id, response.member_epoch, log.high_watermark):
            raise Violation(COMMITTED, f"{response} to {call.request}")

    def describe(self, group: GroupPlan) -> None:
        """ConsumerGroupDescribe for one group."""
        request = ConsumerGroupDescribeRequest(group_ids=[group.group_id])
        self.ask(
            None, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, lambda: request, lambda each: self._check_described(each, group.group_id)
        )

    def _check_described(self, response: Any, group_id: str) -> None:
        hosted = self.hosted(group_id)
        if response is None or hosted is None or hosted.committed_offset < hosted.next_offset:
            return
        described = response.groups[0]
        group = hosted.shard.groups.find(group_id)
        is_there = isinstance(group, ConsumerGroup)
        if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return
        if is_there != (described.error_code == ErrorCode.NONE):
            raise Violation(SHOWN, f"{group_id} is {group}, and described as {described}")
        if isinstance(group, ConsumerGroup):
            shown = (
                described.group_epoch,
                described.assignment_epoch,
                {each.member_id: each.member_epoch for each in described.members},
            )
            there = (
                group.epoch.get(),
                group.assignment_epoch,
                {each.member_id: each.member_epoch for each in group.members.values()},
            )
            if shown != there or described.group_state != group.state:
                raise Violation(SHOWN, f"{group_id} is {there}, {group.state}, and described as {described}")

    # ------------------------------------------------------------------------------------------------------- members

    def assign(self, leader: ClassicMember, members: Any) -> list[tuple[str, bytes]]:
        """The assignment that a leader makes."""
        return shares(members, self.topics) if members else []

    def draw_subscription(self, group: GroupPlan) -> Subscription:
        """Topics of the group, by name or by a regular expression."""
        rng = self.rng
        names = tuple(group.topics)
        draw = rng.random()
        if draw < 0.3:
            return Subscription(
                frozenset(), rng.choice((f"{group.group_id}-.*", f"{group.group_id}-[ab]", f"{group.group_id}-[b-d]"))
            )
        return Subscription(frozenset(names[:2] if draw < 0.6 else rng.sample(names, rng.randint(1, len(names)))))

    def make_member(
        self,
        group: GroupPlan,
        name: str,
        instance_id: str | None,
        *,
        speaks_consumer: bool | None = None,
        subscription: Subscription | None = None,
    ) -> Any:
        """A process that is yet to be started."""
        rng = self.rng
        if speaks_consumer is None:
            speaks_consumer = rng.random() < group.consumer_share
        # A static member that comes back with another subscription gets what it had, if nobody else rebalances: as in Kafka.
        known = [each.subscription for each in self.consumers if each.client_id == name]
        subscription = subscription or (known[-1] if known else self.draw_subscription(group))
        timeout_ms = rng.choice(REBALANCE_TIMEOUTS_MS)
        if speaks_consumer:
            version = 1 if subscription.pattern else rng.choice((1, 1, 0))
            assignor = rng.choice((None, None, "uniform", "range"))
            return ConsumerMember(
                self, group, name, instance_id, subscription, version=version, rebalance_timeout_ms=timeout_ms, assignor=assignor
            )
        return ClassicMember(
            subscription,
            self,
            group,
            name,
            instance_id,
            ("cooperative-sticky",) if group.is_cooperative else ("range",),
            join_version=rng.choice((9, 9, 7, 5)),
            session_timeout_ms=rng.choice((6_000, 10_000)),
            rebalance_timeout_ms=timeout_ms,
        )

    def start_member(self, process: Any) -> None:
        """It runs from now on."""
        self.note("%s starts, for %s", process.client_id, process.subscription)
        self.consumers.append(process)
        process.start()

    def successor(self, process: Any, *, speaks_consumer: bool) -> Any:
        """The process that takes the place of one that ends."""
        return self.make_member(
            process.group,
            process.client_id,
            process.instance_id,
            speaks_consumer=speaks_consumer,
            subscription=process.subscription,
        )

    def restart_later(self, process: Any) -> None:
        """Somebody starts a process that ended anew, in a while, or never."""
        if self.is_in_trouble and self.rng.random() < 0.7:
            successor = self.successor(process, speaks_consumer=process.speaks_consumer)
            self.later(self.rng.expovariate(1 / 4_000), lambda: self.start_member(successor) if self.is_in_trouble else None)
