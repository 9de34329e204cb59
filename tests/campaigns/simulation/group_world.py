"""What every history of groups has: a broker, its logs, and clients, under a virtual clock and from one source of randomness.

At each moment at which something is due all of it happens, then the loop of the broker turns once, then what may have changed is
checked. What is checked, and who the members are, is the world's that is made of this (``world``, ``consumer_groups.world``).
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.coordinator.runtime.hashing import partition_for
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation import requests
from tests.campaigns.simulation.chronicle import Chronicle
from tests.campaigns.simulation.logs import InjectedFault, SimulatedLog, SimulatedLogs
from tests.campaigns.simulation.plan import LONGEST_HOLD_MS, REBALANCE_TIMEOUTS_MS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.broker import SimulatedBroker
    from tests.campaigns.simulation.plan import GroupPlan

# By when a request is answered: a response may wait for the high watermark; a JoinGroup and a SyncGroup wait for others too.
_SLACK_MS = 2_000
_ANSWERED_WITHIN_MS = LONGEST_HOLD_MS + _SLACK_MS
_ANSWERED_BY_OTHERS_WITHIN_MS = _ANSWERED_WITHIN_MS + max(REBALANCE_TIMEOUTS_MS) + 3_000
WAITS_FOR_OTHERS = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_PARTITION = re.compile(r"partition (\d+)")
FULL_CHECK_EVERY = 25

SERVED = "members of the generation are served, and no others"


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


class GroupWorld(Chronicle):
    """``broker`` is made and started by the world that is made of this, and so are ``consumers``."""

    broker: SimulatedBroker

    def __init__(
        self,
        seed: int,
        draw: Callable[[Random], Any],
        make_log: Callable[[Any], SimulatedLog],
        show: Callable[[str], None] | None,
    ) -> None:
        super().__init__(seed, show)
        self.plan = draw(self.rng)
        self.logs = SimulatedLogs([make_log(self.plan) for _ in range(self.plan.shards)])
        self.consumers: list[Any] = []
        self.is_in_trouble = True
        self.is_at_rest = False
        self.tokens = 0
        self._is_turn_due = False
        self._calls: dict[bool, deque[Call]] = {True: deque(), False: deque()}
        self._delivered_until_ms: dict[object, float] = {}

    def _check_moment(self) -> None:
        """Check what may have changed in the moment that has passed. Raises Violation."""
        raise NotImplementedError

    def _objection(self, api_key: ApiKey, request: Any) -> str:
        """The reason against granting a request that is about to be delivered; empty where there is none."""
        raise NotImplementedError

    def _check_granted(self, call: Call, response: Any) -> None:
        """A request was granted that nothing was said against. Raises Violation."""
        raise NotImplementedError

    def _note_delivered(self, request: Any) -> None:
        """A request is about to be decided."""

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
        """What the loop is yet to do, it does at some moment soon."""
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
        """What is under way to the broker comes on another connection than what follows."""
        self._delivered_until_ms.pop(consumer, None)

    def _deliver(self, client_id: str, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        if not self.broker.is_up:
            self.later(1, lambda: answered(None))
            return
        waits_for_others = api_key in WAITS_FOR_OTHERS
        within_ms = _ANSWERED_BY_OTHERS_WITHIN_MS if waits_for_others else _ANSWERED_WITHIN_MS
        objection = self._objection(api_key, request)
        call = Call(api_key, client_id, request, self.clock.monotonic_ms() + within_ms, objection)
        self._calls[waits_for_others].append(call)
        self.note("%s asks %s v%s %s", client_id, api_key.name, version, requests.Brief(request))
        self._note_delivered(request)

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
        if call.api_key in WAITS_FOR_OTHERS and self.hosted(call.request.group_id) is None:
            raise Violation("who is told is told by a coordinator", f"{call.request}: {response}")
        if call.objection:
            raise Violation(SERVED, f"{call.objection}: {call.request}")
        self._check_granted(call, response)

    # ------------------------------------------------------------------------------------------------------- members

    def may_repeat(self) -> bool:
        """Whether a request is sent twice, this time."""
        return self.is_in_trouble and self.rng.random() < self.plan.repeat_share

    def alive(self, group: GroupPlan | None = None) -> list[Any]:
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
