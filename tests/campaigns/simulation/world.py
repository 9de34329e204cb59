"""One history: a broker, its logs, and the members of its groups, under a virtual clock and from one source of randomness.

At each moment at which something is due all of it happens, then the loop of the broker turns once, then what may have changed is
checked. After the time of faults all is set right, and the history has to come to a good end (``ending``).
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.runtime.hashing import partition_for
from odradek.coordinator.runtime.record import CoordinatorRecord, encode_record
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation import requests
from tests.campaigns.simulation.administrator import Administrator
from tests.campaigns.simulation.broker import REPORTS, SimulatedBroker
from tests.campaigns.simulation.chronicle import Chronicle
from tests.campaigns.simulation.consumer import Consumer
from tests.campaigns.simulation.logs import InjectedFault, SimulatedLog, SimulatedLogs
from tests.campaigns.simulation.objections import CHECKED_APIS, objection_to
from tests.campaigns.simulation.offset_requests import OffsetRequests
from tests.campaigns.simulation.plan import LONGEST_HOLD_MS, REBALANCE_TIMEOUTS_MS, SESSION_TIMEOUTS_MS, draw
from tests.campaigns.simulation.replayed import check_replayed
from tests.campaigns.simulation.told import check_sync
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.broker import ShardNotes
    from tests.campaigns.simulation.plan import GroupPlan

# By when a request is answered: a response may wait for the high watermark; a JoinGroup and a SyncGroup wait for others too.
_SLACK_MS = 2_000
_ANSWERED_WITHIN_MS = LONGEST_HOLD_MS + _SLACK_MS
_ANSWERED_BY_OTHERS_WITHIN_MS = _ANSWERED_WITHIN_MS + max(REBALANCE_TIMEOUTS_MS) + 3_000
_WAITS_FOR_OTHERS = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_PARTITION = re.compile(r"partition (\d+)")
_FULL_CHECK_EVERY = 25


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

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show)
        self.plan = draw(self.rng)
        self.logs = SimulatedLogs([SimulatedLog(self.plan.max_batch_bytes) for _ in range(self.plan.shards)])
        self.consumers: list[Consumer] = []
        self.is_in_trouble = True
        self.is_at_rest = False
        self._moments = 0
        self._is_large = self.plan.is_large
        self.tokens = 0
        self._is_turn_due = False
        self._touched: dict[str, None] = {}
        self._calls: dict[bool, deque[Call]] = {True: deque(), False: deque()}
        self._delivered_until_ms: dict[Consumer, float] = {}
        self._seed_logs()
        self.broker = SimulatedBroker(
            self.clock,
            self.logs,
            self.plan.groups,
            GroupConfig(
                group_initial_rebalance_delay_ms=self.plan.initial_rebalance_delay_ms, group_max_size=self.plan.group_max_size
            ),
            self.plan.load_buffer_bytes,
            self._on_broker_fault,
        )
        self.broker.start()
        self.offsets = OffsetRequests(self)
        self.administrator = Administrator(self)

    def _seed_logs(self) -> None:
        for group in self.plan.groups:
            if group.generation is not None:
                value = GroupMetadataValue("consumer", group.generation, None, None, self.clock.now_ms())
                record = CoordinatorRecord(GroupMetadataKey(group.group_id), value)
                self.log_of(group.group_id).append([encode_record(record)], self.clock.now_ms())

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
        self._moments += 1
        self._check_answers()
        if not self._is_large or self._moments % _FULL_CHECK_EVERY == 0:
            for hosted in self.broker.active():
                notes = self.broker.notes[hosted.partition]
                notes.checks.check(hosted)
                for group in hosted.shard.groups.live.values():
                    self._check_joined(notes, group)
        else:
            self._check_touched()
        self._touched.clear()

    def _plan_turn(self) -> None:
        """What the loop is yet to do, it does at some moment soon."""
        if self.logs.soon and not self._is_turn_due:
            self._is_turn_due = True
            self.later(self.rng.choice((1, 1, 20, 200)), self._turn_is_due)

    def _turn_is_due(self) -> None:
        self._is_turn_due = False

    # --------------------------------------------------------------------------------------------------- invariants

    def _check_answers(self) -> None:
        now_ms = self.clock.monotonic_ms()
        for calls in self._calls.values():
            while calls and calls[0].is_answered:
                calls.popleft()
            if calls and calls[0].deadline_ms < now_ms:
                call = calls[0]
                what = f"{call.api_key.name} of {call.client_id} waits for an answer: {call.request}"
                raise Violation("nobody waits for ever", what)

    def _check_touched(self) -> None:
        for group_id in self._touched:
            hosted = self.hosted(group_id)
            group = None if hosted is None else hosted.shard.groups.live.get(group_id)
            if hosted is not None and group is not None:
                notes = self.broker.notes[hosted.partition]
                notes.checks.check_group(hosted, group)
                self._check_joined(notes, group)

    def _check_joined(self, notes: ShardNotes, group: ClassicGroup) -> None:
        # A JoinGroup that came with an append that failed is answered with the error, and is part of the rebalance, as in Kafka.
        if not notes.has_failed:
            notes.told.check_group(group)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the log says."""
        for hosted in self.broker.active():
            self.check_shard_replayed(hosted)

    def check_shard_replayed(self, hosted: HostedShard[GroupShard]) -> None:
        """The same for one shard."""
        check_replayed(self.logs, hosted, REPORTS, has_failed=self.broker.notes[hosted.partition].has_failed)

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
        """Where a group is coordinated."""
        return partition_for(group_id, self.plan.shards)

    def hosted(self, group_id: str) -> HostedShard[GroupShard] | None:
        """The shard that coordinates a group, where it is loaded."""
        return self.broker.active_shard(self.partition_of(group_id))

    def log_of(self, group_id: str) -> SimulatedLog:
        """Where it is written."""
        return self.logs.logs[self.partition_of(group_id)]

    def ask(
        self,
        consumer: Consumer | None,
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

    def connect_anew(self, consumer: Consumer) -> None:
        """What is under way to the broker comes on another connection than what follows."""
        self._delivered_until_ms.pop(consumer, None)

    def _deliver(self, client_id: str, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        if not self.broker.is_up:
            self.later(1, lambda: answered(None))
            return
        waits_for_others = api_key in _WAITS_FOR_OTHERS
        within_ms = _ANSWERED_BY_OTHERS_WITHIN_MS if waits_for_others else _ANSWERED_WITHIN_MS
        objection = ""
        if api_key in CHECKED_APIS:
            objection = objection_to(api_key, request, self.hosted(request.group_id))
        call = Call(api_key, client_id, request, self.clock.monotonic_ms() + within_ms, objection)
        self._calls[waits_for_others].append(call)
        self.note("%s asks %s v%s %s", client_id, api_key.name, version, requests.Brief(request))
        group_id = getattr(request, "group_id", None)
        if group_id is not None:
            self._touched[group_id] = None

        def respond(response: Any) -> None:
            call.is_answered = True
            self._note_answer(call, response)
            answered(response)

        self.broker.ask(api_key, version, client_id, request, respond)

    def _note_answer(self, call: Call, response: Any) -> None:
        error_code = getattr(response, "error_code", None)
        if call.api_key is ApiKey.OFFSET_COMMIT:
            error_code = response.topics[0].partitions[0].error_code
        name = call.api_key.name if error_code is None else f"{call.api_key.name} {ErrorCode(error_code).name}"
        self.counts[name] += 1
        self.note("%s is answered %s %s", call.client_id, name, requests.Brief(response))
        if error_code != ErrorCode.NONE:
            return
        if call.api_key in _WAITS_FOR_OTHERS and self.hosted(call.request.group_id) is None:
            raise Violation("who is told is told by a coordinator", f"{call.request}: {response}")
        if call.objection:
            raise Violation("members of the generation are served, and no others", f"{call.objection}: {call.request}")
        if call.api_key is ApiKey.JOIN_GROUP:
            self._check_join(call.request.group_id, response)
        elif call.api_key is ApiKey.SYNC_GROUP:
            self._check_sync(call.request, bytes(response.assignment))

    def _check_join(self, group_id: str, response: Any) -> None:
        notes = self.broker.notes[self.partition_of(group_id)]
        group = notes.shard.groups.live.get(group_id)
        # Between the decision and the answer the member may have left, or the group.
        if group is not None and response.member_id in group.members:
            notes.told.note_join(group, response)

    def _check_sync(self, request: Any, assignment: bytes) -> None:
        where = (request.group_id, request.generation_id, request.member_id)
        check_sync(self.logs.logs[self.partition_of(request.group_id)], *where, assignment)

    # ------------------------------------------------------------------------------------------------------- members

    def subscription(self, group: GroupPlan) -> bytes:
        """What a member says of itself, up to what it owns."""
        return requests.subscription(group.group_id)

    def assign(self, leader: Consumer, members: Any) -> list[tuple[str, bytes]]:
        """The assignment that a leader makes; no two are the same."""
        if not members:
            return []
        self.tokens += 1
        return requests.assignment(f"{leader.member_id}#{self.tokens}", leader.group, members)

    def make_member(self, group: GroupPlan, name: str, instance_id: str | None) -> Consumer:
        """A process that is yet to be started."""
        rng = self.rng
        protocols = ("cooperative-sticky",) if group.is_cooperative else rng.choice((("range", "sticky"), ("sticky", "range")))
        if rng.random() < 0.03:
            protocols = ("homemade",)
        return Consumer(
            self,
            group,
            name,
            instance_id,
            protocols,
            join_version=rng.choice((9, 9, 7, 5)) if instance_id is not None else rng.choice((9, 9, 9, 5, 3)),
            session_timeout_ms=rng.choice(SESSION_TIMEOUTS_MS),
            rebalance_timeout_ms=rng.choice(REBALANCE_TIMEOUTS_MS),
        )

    def start_member(self, consumer: Consumer) -> None:
        """It runs from now on."""
        self.note("%s starts", consumer.client_id)
        self.consumers.append(consumer)
        consumer.start()

    def may_repeat(self) -> bool:
        """Whether a request is sent twice, this time."""
        return self.is_in_trouble and self.rng.random() < self.plan.repeat_share

    def restart_later(self, consumer: Consumer) -> None:
        """Somebody starts a process that ended anew, in a while, or never."""
        if self.is_in_trouble and self.rng.random() < 0.7:
            successor = self.make_member(consumer.group, consumer.client_id, consumer.instance_id)
            self.later(self.rng.expovariate(1 / 4_000), lambda: self.start_member(successor) if self.is_in_trouble else None)

    def alive(self, group: GroupPlan | None = None) -> list[Consumer]:
        """The members that run, of one group or of all."""
        return [each for each in self.consumers if each.is_alive and (group is None or each.group is group)]

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
