"""One history of groups: a broker, its logs, and clients, under a virtual clock and from one source of randomness.

At each moment at which something is due all of it happens, then the loop of the broker turns once, then what may have changed is
checked. After the time of faults all is set right, and the history has to come to a good end (``ending``). The groups are of the
classic protocol, or they have members of both, as the plan says.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.groups import ConsumerGroupConfig
from odradek.coordinator.group.streams.groups import StreamsGroupConfig
from odradek.coordinator.runtime.result import CoordinatorRecord, encode_record
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for
from tests.campaigns.simulation.groups import checks
from tests.campaigns.simulation.groups.administrator import Administrator
from tests.campaigns.simulation.groups.broker import SimulatedBroker
from tests.campaigns.simulation.groups.consumer_member import ConsumerMember, Subscription
from tests.campaigns.simulation.groups.history import GroupHistory, check_sync
from tests.campaigns.simulation.groups.logs import InjectedFault, SimulatedLog, SimulatedLogs
from tests.campaigns.simulation.groups.members import ClassicMember
from tests.campaigns.simulation.groups.offsets import Offsets
from tests.campaigns.simulation.groups.plan import LONGEST_HOLD_MS, REBALANCE_TIMEOUTS_MS, SESSION_TIMEOUTS_MS
from tests.campaigns.simulation.groups.replayed import check_replayed
from tests.campaigns.simulation.runner import Brief, Chronicle
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.coordinator.group.consumer.groups import ConsumerGroupServices
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.groups.plan import GroupPlan, Plan

# By when a request is answered: a response may wait for the high watermark; a JoinGroup and a SyncGroup wait for others too.
_SLACK_MS = 2_000
_ANSWERED_WITHIN_MS = LONGEST_HOLD_MS + _SLACK_MS
_ANSWERED_BY_OTHERS_WITHIN_MS = _ANSWERED_WITHIN_MS + max(REBALANCE_TIMEOUTS_MS) + 3_000
_WAITS_FOR_OTHERS = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_MODERN_HEARTBEATS = frozenset({ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT})
_PARTITION = re.compile(r"partition (\d+)")
_FULL_CHECK_EVERY = 25

SERVED = "members of the generation are served, and no others"
COMMITTED = "who is told of an epoch is told what is committed"
KNOWN = "who is in a group is known there"


class Call:
    """A request that was delivered to the broker, and what there was to be said against granting it."""

    __slots__ = ("api_key", "client_id", "deadline_ms", "is_answered", "objection", "request")

    def __init__(self, api_key: ApiKey, client_id: str, request: Any, deadline_ms: float, objection: str) -> None:
        self.api_key = api_key
        self.client_id = client_id
        self.request = request
        self.deadline_ms = deadline_ms
        self.objection = objection
        self.is_answered = False


class World(Chronicle):
    """A history of consumer groups."""

    def __init__(self, seed: int, draw: Callable[[Random], Plan], show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show)
        self.plan = plan = draw(self.rng)
        self.logs = SimulatedLogs([SimulatedLog(plan.max_batch_bytes, GroupHistory()) for _ in range(plan.shards)])
        self.consumers: list[Any] = []
        self.is_in_trouble = True
        self.is_at_rest = False
        self._tokens = self._assignments = self._moments = 0
        # By group, partitions that its last leader gave to nobody, each with the member that had not given it up.
        self.withheld: dict[str, dict[tuple[str, int], str]] = {}
        self._touched: dict[str, None] = {}
        self._partitions = {each.group_id: partition_for(each.group_id, plan.shards) for each in plan.groups}
        self._is_turn_due = False
        self._calls: dict[bool, deque[Call]] = {True: deque(), False: deque()}
        self._delivered_until_ms: dict[object, float] = {}
        self._refused_untruly: dict[int, frozenset[int]] = {}
        self._seed_logs()
        self.streams_config = StreamsGroupConfig()
        self._config = ConsumerGroupConfig(
            session_timeout_ms=plan.session_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_interval_ms,
            assignment_interval_ms=plan.assignment_interval_ms,
            migration_policy=plan.policy,
        )
        self.broker = SimulatedBroker(
            self.clock,
            self.logs,
            {name: count for group in plan.groups for name, count in group.topics.items() if count},
            GroupConfig(group_initial_rebalance_delay_ms=plan.initial_rebalance_delay_ms, group_max_size=plan.group_max_size),
            plan.load_buffer_bytes,
            self._on_broker_fault,
            self._services,
            lambda _: self.streams_config,
        )
        self.topics = self.broker.topics
        self.broker.start()
        self.offsets = Offsets(self)
        self.administrator = self._make_administrator()

    def _make_administrator(self) -> Administrator:
        return Administrator(self)

    def _seed_logs(self) -> None:
        for group in self.plan.groups:
            if group.generation is not None:
                value = GroupMetadataValue("consumer", group.generation, None, None, self.clock.now_ms())
                record = CoordinatorRecord(GroupMetadataKey(group.group_id), value)
                self.log_of(group.group_id).append([encode_record(record)], self.clock.now_ms())

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
        self._tokens += 1
        return self._tokens

    def new_assignment(self) -> int:
        """The same, of a leader's assignment."""
        self._assignments += 1
        return self._assignments

    # --------------------------------------------------------------------------------------------------- invariants

    def _check_moment(self) -> None:
        """Check what may have changed in the moment that has passed. Raises Violation."""
        self._moments += 1
        is_full = not self.plan.is_large or self._moments % _FULL_CHECK_EVERY == 0
        if is_full:
            for hosted in self.broker.active():
                self.broker.notes[hosted.partition].checks.check(hosted)
        for plan in self.plan.groups:
            hosted = self.hosted(plan.group_id) if is_full or plan.group_id in self._touched else None
            group = None if hosted is None else hosted.shard.groups.find(plan.group_id)
            if hosted is not None and group is not None:
                self._check_group(plan, hosted, group)
        self._touched.clear()

    def _check_group(self, plan: GroupPlan, hosted: HostedShard[GroupShard], group: Any) -> None:
        notes = self.broker.notes[hosted.partition]
        checks.check_owners(group, self.alive(plan), self.topics)
        if isinstance(group, ConsumerGroup):
            checks.check_deadlines(hosted, group)
        elif isinstance(group, ClassicGroup):
            notes.checks.check_group(hosted, group)
            # A JoinGroup that came with a failed append is answered with the error, and is part of the rebalance, as in Kafka.
            if self.plan.is_classic and not notes.has_failed:
                notes.told.check_group(group)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the log says."""
        for hosted in self.broker.active():
            has_failed = self.broker.notes[hosted.partition].has_failed
            check_replayed(self.logs, hosted, has_failed=has_failed, is_classic=self.plan.is_classic)

    def _objection(self, api_key: ApiKey, request: Any) -> str:
        """The reason against granting a request that is about to be delivered; empty where there is none."""
        if api_key not in checks.CHECKED_APIS:
            return ""
        hosted = self.hosted(request.group_id)
        said = self.log_of(request.group_id).history.find(request.group_id)
        self._refused_untruly[id(request)] = checks.untrue_refusals(api_key, request, hosted, said)
        return checks.objection_to(api_key, request, hosted, self.topics)

    def objection_to_epoch(self, group_id: str, member_id: str | None, epoch: int) -> str:
        """Reasons against a member's OffsetFetch now."""
        hosted = self.hosted(group_id)
        if hosted is None or hosted._is_deciding:
            return ""
        return checks.objection_to_epoch(hosted.shard.groups.find(group_id), member_id, epoch, hosted.committed_offset)

    def _check_granted(self, call: Call, response: Any) -> None:
        """A request was granted that nothing was said against. Raises Violation."""
        group_id = getattr(call.request, "group_id", "")
        if call.api_key is ApiKey.JOIN_GROUP and self.plan.is_classic:
            notes = self.broker.notes[self.partition_of(group_id)]
            group = notes.shard.classic.find(group_id)
            # Between the decision and the answer the member may have left, or the group.
            if group is not None and response.member_id in group.members:
                notes.told.note_join(group, response)
        elif call.api_key is ApiKey.SYNC_GROUP:
            shard = self.broker.notes[self.partition_of(group_id)].shard
            if not isinstance(shard.groups.find(group_id), ConsumerGroup):
                member = group_id, call.request.generation_id, call.request.member_id
                check_sync(self.log_of(group_id), *member, bytes(response.assignment))
        elif call.api_key in _MODERN_HEARTBEATS and response.member_epoch > 0:
            log = self.log_of(group_id)
            if not log.history.is_reached(group_id, response.member_id, response.member_epoch, log.high_watermark):
                raise Violation(COMMITTED, f"{response} to {call.request}")

    # ----------------------------------------------------------------------------------------------- time and events

    def later(self, delay_ms: float, step: Callable[[], None]) -> None:
        """In ``delay_ms``, at the next tick of the plan's."""
        self.at_tick(delay_ms, self.plan.tick_ms, step)

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self._plan_turn()
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (due_ms := self.next_due_ms(self.broker.timer)) <= end_ms:
            self.clock.advance(max(0, int(-(-(due_ms - self.clock.monotonic_ms()) // 1))))
            self._finish_moment()
        self.clock.advance(int(end_ms - self.clock.monotonic_ms()))

    def _finish_moment(self) -> None:
        if self.logs.soon and self.rng.random() < 0.85:
            self.logs.turn()
        self._plan_turn()
        self._check_answers()
        self._check_moment()

    def _plan_turn(self) -> None:
        """Have the loop do what is due, at some moment soon."""
        if self.logs.soon and not self._is_turn_due:
            self._is_turn_due = True
            self.later(self.rng.choice((1, 1, 20, 200)), self._turn_is_due)

    def _turn_is_due(self) -> None:
        self._is_turn_due = False

    def _check_answers(self) -> None:
        now_ms = self.clock.monotonic_ms()
        for calls in self._calls.values():
            while calls and calls[0].is_answered:
                calls.popleft()
            if calls and calls[0].deadline_ms < now_ms:
                call = calls[0]
                what = f"{call.api_key.name} of {call.client_id} waits for an answer: {call.request}"
                raise Violation("nobody waits for ever", what)

    def _on_broker_fault(self, event: str, error: Exception) -> None:
        if isinstance(error, Violation):
            raise error
        if not isinstance(error, InjectedFault):
            raise Violation("the coordinator makes no mistake", f"{event}: {error!r}") from error
        self.note("fault: %s: %s", event, error.code.name)
        partition = _PARTITION.search(event)
        if partition is not None:
            self.broker.notes[int(partition[1])].has_failed = True

    # ------------------------------------------------------------------------------------------------------ requests

    def partition_of(self, group_id: str) -> int:
        """The partition of __consumer_offsets that coordinates a group."""
        return self._partitions[group_id]

    def hosted(self, group_id: str) -> HostedShard[GroupShard] | None:
        """The shard that coordinates a group, where it is loaded."""
        return self.broker.active_shard(self.partition_of(group_id))

    def log_of(self, group_id: str) -> SimulatedLog:
        """The log that it is written to."""
        return self.logs.logs[self.partition_of(group_id)]

    def ask(
        self,
        consumer: Any,
        api_key: ApiKey,
        version: int,
        build: Callable[[], Any],
        answered: Callable[[Any], None],
    ) -> None:
        """Send a request, built when it arrives; on one connection they arrive in order. None answers where nobody is there."""
        now_ms = self.clock.monotonic_ms()
        longest_ms = self.plan.longest_latency_ms
        arrives_ms = now_ms + (self.rng.randint(0, longest_ms) if longest_ms and self.rng.random() < 0.5 else 0)
        client_id = "admin"
        if consumer is not None:
            client_id = consumer.client_id
            arrives_ms = max(arrives_ms, self._delivered_until_ms.get(consumer, 0))
            self._delivered_until_ms[consumer] = arrives_ms
        if arrives_ms > now_ms:
            self._timer.call_at(arrives_ms, lambda: self._deliver(client_id, api_key, version, build(), answered))
        else:
            self._deliver(client_id, api_key, version, build(), answered)

    def connect_anew(self, consumer: Any) -> None:
        """Send later requests on another connection than those under way."""
        self._delivered_until_ms.pop(consumer, None)

    def _deliver(self, client_id: str, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        if not self.broker.is_up:
            self.later(1, lambda: answered(None))
            return
        waits_for_others = api_key in _WAITS_FOR_OTHERS
        within_ms = _ANSWERED_BY_OTHERS_WITHIN_MS if waits_for_others else _ANSWERED_WITHIN_MS
        objection = self._objection(api_key, request)
        call = Call(api_key, client_id, request, self.clock.monotonic_ms() + within_ms, objection)
        self._calls[waits_for_others].append(call)
        self.note("%s asks %s v%s %s", client_id, api_key.name, version, Brief(request))
        if (group_id := getattr(request, "group_id", None)) is not None:
            self._touched[group_id] = None

        def respond(response: Any) -> None:
            call.is_answered = True
            self._note_answer(call, response)
            answered(response)

        self.broker.ask(api_key, version, client_id, request, respond)

    def _note_answer(self, call: Call, response: Any) -> None:
        untrue = self._refused_untruly.pop(id(call.request), frozenset())
        error_code = getattr(response, "error_code", None)
        if call.api_key is ApiKey.OFFSET_COMMIT:
            error_code = response.topics[0].partitions[0].error_code
        name = call.api_key.name if error_code is None else f"{call.api_key.name} {ErrorCode(error_code).name}"
        self.counts[name] += 1
        self.note("%s is answered %s %s", call.client_id, name, Brief(response))
        if error_code in untrue:
            raise Violation(KNOWN, f"{call.request} is answered {ErrorCode(error_code).name}")
        if error_code != ErrorCode.NONE:
            return
        if call.api_key in _WAITS_FOR_OTHERS and self.hosted(call.request.group_id) is None:
            raise Violation("who is told is told by a coordinator", f"{call.request}: {response}")
        if call.objection:
            raise Violation(SERVED, f"{call.objection}: {call.request}")
        self._check_granted(call, response)

    # ------------------------------------------------------------------------------------------------------- members

    def may_repeat(self) -> bool:
        """True if a request is sent twice, this time."""
        return self.is_in_trouble and self.rng.random() < self.plan.repeat_share

    def alive(self, group: GroupPlan | None = None) -> list[Any]:
        """The members that run, of one group or of all."""
        return [each for each in self.consumers if each.is_alive and (group is None or each.group is group)]

    def draw_subscription(self, group: GroupPlan) -> Subscription:
        """Topics of the group, by name or by a regular expression."""
        rng = self.rng
        names = tuple(group.topics)
        if self.plan.is_classic:
            return Subscription(frozenset(names))
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
        if speaks_consumer is None and not self.plan.is_classic:
            speaks_consumer = rng.random() < group.consumer_share
        # A static member that comes back with another subscription gets what it had, if nobody else rebalances: as in Kafka.
        known = [each.subscription for each in self.consumers if each.client_id == name]
        subscription = subscription or (known[-1] if known else self.draw_subscription(group))
        timeout_ms = rng.choice(REBALANCE_TIMEOUTS_MS)
        if self.plan.is_classic:
            return self._make_classic_member(group, name, instance_id, subscription, timeout_ms)
        if speaks_consumer:
            version = 1 if subscription.pattern else rng.choice((1, 1, 0))
            assignor = rng.choice((None, None, "uniform", "range"))
            return ConsumerMember(
                self, group, name, instance_id, subscription, version=version, rebalance_timeout_ms=timeout_ms, assignor=assignor
            )
        return ClassicMember(
            self,
            group,
            name,
            instance_id,
            subscription,
            ("cooperative-sticky",) if group.is_cooperative else ("range",),
            join_version=rng.choice((9, 9, 7, 5)),
            session_timeout_ms=rng.choice((6_000, 10_000)),
            rebalance_timeout_ms=timeout_ms,
        )

    def _make_classic_member(
        self, group: GroupPlan, name: str, instance_id: str | None, subscription: Subscription, timeout_ms: int
    ) -> ClassicMember:
        """Of one of several clients, which may have no protocol in common with the others."""
        rng = self.rng
        protocols = ("cooperative-sticky",) if group.is_cooperative else rng.choice((("range", "sticky"), ("sticky", "range")))
        return ClassicMember(
            self,
            group,
            name,
            instance_id,
            subscription,
            ("homemade",) if rng.random() < 0.03 else protocols,
            join_version=rng.choice((9, 9, 7, 5)) if instance_id is not None else rng.choice((9, 9, 9, 5, 3)),
            session_timeout_ms=rng.choice(SESSION_TIMEOUTS_MS),
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

    # ------------------------------------------------------------------------------------------------------ the broker

    def kill_broker(self) -> None:
        """Without a word. Who is connected notices."""
        self.note("the broker is killed")
        self.broker.kill()
        self._is_turn_due = False
        for calls in self._calls.values():
            calls.clear()
        for consumer in self.alive():
            self.later(self.rng.randint(1, 200), consumer.lose_connection)

    def start_broker(self) -> None:
        """Again, where it does not run."""
        if not self.broker.is_up:
            self.note("the broker starts")
            self.broker.start()
