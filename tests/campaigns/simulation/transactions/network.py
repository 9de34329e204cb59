"""The network between clients and the broker: requests and responses are delayed, some requests repeated, some responses lost.

A response arrives later than it is given, so that no client code runs within the broker.

A producer's connection, with several requests in flight.

Requests arrive in the order in which they are sent. As at the broker's own connections, one begins when those before it have been
answered, or are decided and wait for their responses only, and responses leave in order. A connection that is cut brings no
answer any more; what was sent may still arrive.

Several batches in flight to each partition, on one connection, as clients with an idempotent producer have them.

At most five are in flight to a partition. One that is refused, or whose connection is cut, is sent again once those before it are
acknowledged. Until then OUT_OF_ORDER_SEQUENCE_NUMBER is no error: a batch before it is missing. Once a batch has failed nothing
more is sent, and the step is over when nothing is in flight.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.runner import Brief
from tests.campaigns.simulation.transactions.checks import check_fetched
from tests.campaigns.simulation.transactions.plan import LONGEST_HOLD_MS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.transactions.producer import Process
    from tests.campaigns.simulation.transactions.requests import Partition
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World


_SHARE = 0.35
_MOST_IN_FLIGHT = 5
_BACKOFF_MS = 20


@dataclass(frozen=True, slots=True)
class FlightPlan:
    """The batches that a step of a transaction sends to a partition, and the share of the answers that are cut off."""

    most_batches: int
    cut_share: float


def draw_flight(seed: int) -> FlightPlan | None:
    """The plan of some histories. Drawn apart, so that those of other seeds stay what they are."""
    rng = Random(f"in flight {seed}")
    if rng.random() >= _SHARE:
        return None
    return FlightPlan(most_batches=rng.choice((2, 4, 8)), cut_share=rng.choice((0.0, 0.03, 0.15)))


class Batch:
    """One batch, and whether it was ever sent, and is now."""

    __slots__ = ("is_in_flight", "sequence", "values", "was_sent")

    def __init__(self, sequence: int, values: list[bytes]) -> None:
        self.sequence = sequence
        self.values = values
        self.was_sent = False
        self.is_in_flight = False


class Pipelines:
    """One step of a transaction: what it sends, to each of its partitions in order."""

    def __init__(
        self,
        connect: Callable[[Callable[[], None]], Connection],
        ask: Callable[[Connection, Partition, Batch, Callable[[int], None]], None],
        later: Callable[[float, Callable[[], None]], None],
        acknowledged: Callable[[Batch], None],
        is_final: Callable[[int], bool],
        done: Callable[[int], None],
    ) -> None:
        """``is_final``: an error is not to be tried again. ``done`` is called with the first such error, or 0."""
        self._connect = connect
        self._ask = ask
        self._later = later
        self._acknowledged = acknowledged
        self._is_final = is_final
        self._done = done
        self._connection: Connection | None = None
        self._left: dict[Partition, list[Batch]] = {}
        self._error = 0
        self._is_over = False

    def add(self, partition: Partition, batch: Batch) -> None:
        """Before the start."""
        self._left.setdefault(partition, []).append(batch)

    def start(self) -> None:
        """Send what may be sent."""
        for partition in self._left:
            self._send(partition)

    def _send(self, partition: Partition) -> None:
        batches = self._left[partition]
        for place, batch in enumerate(batches[:_MOST_IN_FLIGHT]):
            if self._error or (batch.was_sent and not batch.is_in_flight and place):
                break
            if not batch.is_in_flight:
                batch.was_sent = batch.is_in_flight = True
                self._send_one(partition, batch)

    def _send_one(self, partition: Partition, batch: Batch) -> None:
        if self._connection is None:
            self._connection = self._connect(self._cut)
        self._ask(self._connection, partition, batch, lambda code: self._answered(partition, batch, code))

    def _cut(self) -> None:
        self._connection = None
        for partition, batches in self._left.items():
            for batch in batches:
                if batch.is_in_flight:
                    self._failed(partition, batch, ErrorCode.NETWORK_EXCEPTION)
        self._look()

    def _answered(self, partition: Partition, batch: Batch, code: int) -> None:
        batches = self._left[partition]
        if code == ErrorCode.NONE:
            batches.remove(batch)
            self._acknowledged(batch)
            self._send(partition)
        else:
            self._failed(partition, batch, code)
        self._look()

    def _failed(self, partition: Partition, batch: Batch, code: int) -> None:
        batch.is_in_flight = False
        is_behind = code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch is not self._left[partition][0]
        if not is_behind and self._is_final(code):
            self._error = self._error or code
        self._later(_BACKOFF_MS, lambda: self._send(partition))

    def _look(self) -> None:
        """End the step if nothing of it is left."""
        is_idle = not any(batch.is_in_flight for batches in self._left.values() for batch in batches)
        if not self._is_over and is_idle and (self._error or not any(self._left.values())):
            self._is_over = True
            self._done(self._error)


class _Place:
    """The place of a response among the others; ``give`` is set when it is there."""

    __slots__ = ("give",)

    def __init__(self) -> None:
        self.give: Callable[[], None] | None = None


class Connection:
    """One, to one process of the broker. ``on_cut`` is called once."""

    def __init__(self, server: Server | None, on_cut: Callable[[], None]) -> None:
        self.server = server
        self.is_cut = False
        # No earlier than this the next request arrives, and the next answer does.
        self.arrives_ms = 0.0
        self.answers_ms = 0.0
        self._on_cut = on_cut
        self._arrived: deque[Callable[[_Place], bool]] = deque()
        self._places: deque[_Place] = deque()
        self._undecided: _Place | None = None

    def cut(self) -> None:
        """The client notices now. Idempotent."""
        if not self.is_cut:
            self.is_cut = True
            self._on_cut()

    def arrive(self, begin: Callable[[Callable[[Any], None]], bool], give: Callable[[Any], None]) -> None:
        """A request: ``begin`` is told whom to answer, and returns whether it is decided; ``give`` sends the response."""

        def begin_in_place(place: _Place) -> bool:
            def answered(response: Any) -> None:
                place.give = lambda: give(response)
                if self._undecided is place:
                    self._undecided = None
                self._go_on()

            return begin(answered)

        self._arrived.append(begin_in_place)
        self._go_on()

    def _go_on(self) -> None:
        while self._places and self._places[0].give is not None:
            give = self._places.popleft().give
            if give is not None:
                give()
        while self._arrived and self._undecided is None:
            begin = self._arrived.popleft()
            place = self._undecided = _Place()
            self._places.append(place)
            if begin(place) and self._undecided is place:
                self._undecided = None


_ANSWERED_WITHIN_MS = LONGEST_HOLD_MS + 4_000
# What a repeated request may not do later than at once, where all of a producer's transactions have one epoch: there it would be
# taken for one of the next transaction (KIP-890 says more).
_REPEATED_AT_ONCE = frozenset({ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID})


class Call:
    """A request that has reached the broker."""

    __slots__ = ("answered", "api_key", "deadline_ms", "is_answered", "who")

    def __init__(self, api_key: ApiKey, who: str, deadline_ms: float, answered: Callable[[Any], None]) -> None:
        self.api_key = api_key
        self.who = who
        self.deadline_ms = deadline_ms
        self.answered = answered
        self.is_answered = False


class Network:
    """The network of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls: deque[Call] = deque()

    def ask(
        self,
        process: Process | None,
        api_key: ApiKey,
        version: int,
        build: Callable[[], Any],
        answered: Callable[[Any], None],
    ) -> None:
        """Send a request; the response is None if the broker or the connection goes first. The request may arrive twice."""
        who = "somebody" if process is None else process.name
        rng = self._world.rng
        plan = self._world.plan

        def latency_ms() -> int:
            return rng.randint(0, plan.longest_latency_ms) if plan.longest_latency_ms else 0

        self._world.later(latency_ms(), lambda: self._deliver(who, api_key, version, build(), answered))
        if process is not None and self._world.is_in_trouble and rng.random() < plan.repeat_share:
            at_once = process.client_version == 0 and api_key in _REPEATED_AT_ONCE
            if not at_once or not plan.longest_latency_ms:
                self._world.counts["requests repeated"] += 1
                delay_ms = 0 if at_once else rng.choice((0, 20, 200, 1_500))
                self._world.later(delay_ms, lambda: self._deliver(who, api_key, version, build(), lambda _: None))

    def produce_on(
        self,
        connection: Connection,
        process: Process,
        version: int,
        request: Any,
        answered: Callable[[dict[Partition, int]], None],
    ) -> None:
        """Send one of several requests that are in flight; it has no response if the connection is cut."""
        world = self._world
        plan = world.plan
        latency_ms = world.rng.randint(0, plan.longest_latency_ms) if plan.longest_latency_ms else 0
        now_ms = world.clock.monotonic_ms()
        connection.arrives_ms = max(now_ms + latency_ms, connection.arrives_ms)

        def begin(answer: Callable[[Any], None]) -> bool:
            return self._begin(process.name, ApiKey.PRODUCE, version, request, answer, lambda _: connection.cut())

        def give(digest: dict[Partition, int]) -> None:
            now_ms = world.clock.monotonic_ms()
            is_cut = world.is_in_trouble and world.flight is not None and world.rng.random() < world.flight.cut_share
            world.counts["connections cut"] += is_cut
            connection.answers_ms = max(now_ms + world.rng.randint(0, plan.longest_latency_ms), connection.answers_ms)
            delay_ms = connection.answers_ms - now_ms
            world.later(delay_ms, connection.cut if is_cut else lambda: None if connection.is_cut else answered(digest))

        def arrive() -> None:
            if world.server is not None and world.server is connection.server:
                connection.arrive(begin, give)
            else:
                world.later(5, connection.cut)

        world.later(connection.arrives_ms - now_ms, arrive)

    def _deliver(self, who: str, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        world = self._world
        if world.server is None:
            world.later(5, lambda: answered(None))
            return

        def give(digest: Any) -> None:
            is_lost = world.is_in_trouble and world.rng.random() < world.plan.loss_share
            world.counts["answers lost"] += is_lost
            world.later(world.rng.randint(0, world.plan.longest_latency_ms), lambda: answered(None if is_lost else digest))

        self._begin(who, api_key, version, request, give, answered)

    def _begin(
        self,
        who: str,
        api_key: ApiKey,
        version: int,
        request: Any,
        give: Callable[[Any], None],
        lost: Callable[[Any], None],
    ) -> bool:
        """Have the broker handle a request; ``lost`` is told where the broker goes first. Returns whether it is decided."""
        world = self._world
        server = world.server
        if server is None:
            raise AssertionError("the broker is down")
        call = Call(api_key, who, world.clock.monotonic_ms() + _ANSWERED_WITHIN_MS, lost)
        self._calls.append(call)
        world.note("%s asks %s v%s %s", who, api_key.name, version, Brief(request))
        is_asking = True

        def respond(response: Any) -> None:
            if call.is_answered:
                raise AssertionError(f"{api_key.name} of {who} is answered twice")
            call.is_answered = True
            if is_asking and api_key is ApiKey.OFFSET_FETCH:
                check_fetched(world, server, request, response)
            world.note("%s is answered %s %s", who, api_key.name, Brief(response))
            give(self._digest(api_key, response))

        is_decided = server.ask(api_key, version, request, respond)
        is_asking = False
        return is_decided

    def _digest(self, api_key: ApiKey, response: Any) -> Any:
        """A response; for Produce, the error codes by partition."""
        if api_key is not ApiKey.PRODUCE:
            code = getattr(response, "error_code", None)
            if code is not None:
                self._world.counts[f"{api_key.name} {ErrorCode(code).name}"] += 1
            return response
        results = {}
        for topic in response.responses:
            for part in topic.partition_responses:
                results[topic.name, part.index] = part.error_code
                self._world.counts[f"PRODUCE {ErrorCode(part.error_code).name}"] += 1
        return results

    def lose_answers(self) -> None:
        """The broker is gone, and waiting clients are disconnected."""
        calls, self._calls = self._calls, deque()
        for call in calls:
            if not call.is_answered:
                call.is_answered = True
                self._world.later(self._world.rng.randint(1, 50), partial(call.answered, None))

    def check_answered(self) -> None:
        """Raise Violation if a client has waited for too long."""
        while self._calls and self._calls[0].is_answered:
            self._calls.popleft()
        if self._calls and self._calls[0].deadline_ms < self._world.clock.monotonic_ms():
            call = self._calls[0]
            raise Violation("nobody waits for ever", f"{call.api_key.name} of {call.who} waits for an answer")
