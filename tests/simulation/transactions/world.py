"""One history: a broker, its disk, the producers of its transactional ids, under a virtual clock and from one source of chance.

At each moment at which something is due all of it happens, then the broker's loop turns, then what was written is checked. What
the broker answers arrives later: no client runs within the broker.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.simulation.transactions import requests
from tests.simulation.transactions.checks import check_fetched, check_replayed, check_stable_offset
from tests.simulation.transactions.disk import Killed, SimulatedDisk
from tests.simulation.transactions.ledger import Ledger
from tests.simulation.transactions.plan import LONGEST_HOLD_MS, draw
from tests.simulation.transactions.producer import Process
from tests.simulation.transactions.reader import CommittedReader
from tests.simulation.transactions.seeding import seed_epochs
from tests.simulation.transactions.server import Server
from tests.simulation.transactions.witness import Witness
from tests.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.partitions import Partition
    from tests.simulation.transactions.ledger import Incarnation, SentTransaction
    from tests.simulation.transactions.plan import ProducerPlan

_LAST_EVENTS = 60
_ANSWERED_WITHIN_MS = LONGEST_HOLD_MS + 4_000
_FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
# What a repeated request may not do later than at once, where all of a producer's transactions have one epoch: there it would be
# taken for one of the next transaction (KIP-890 says more).
_REPEATED_AT_ONCE = frozenset({ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID})
# Between the question to the coordinator and its answer they end what was asked about.
_UNVERIFYING = frozenset({"delete a topic", "repeat an old marker"})


class Call:
    """A request that has reached the broker."""

    __slots__ = ("answered", "api_key", "deadline_ms", "is_answered", "who")

    def __init__(self, api_key: ApiKey, who: str, deadline_ms: float, answered: Callable[[Any], None]) -> None:
        self.api_key = api_key
        self.who = who
        self.deadline_ms = deadline_ms
        self.answered = answered
        self.is_answered = False


class World:
    """``events`` has what happened last: (virtual ms, format, arguments). ``counts`` what was asked, answered, and went wrong."""

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        self.rng = Random(seed)
        self.plan = draw(self.rng)
        self.clock = VirtualClock()
        self.disk = SimulatedDisk()
        self.epochs: dict[tuple[str, int], int] = {}
        self.ledger = Ledger()
        self.witness = Witness(self.note, may_lag="hold a high watermark" in self.plan.faults)
        self.readers: dict[Incarnation, CommittedReader] = {}
        self.processes: list[Process] = []
        self.held: dict[tuple[str, int], int] = {}
        self.counts: Counter[str] = Counter()
        self.events: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=_LAST_EVENTS)
        self.is_in_trouble = True
        self.is_last_round = False
        self.server: Server | None = None
        self._show = show
        self._timer = Timer(self.clock)
        self._calls: deque[Call] = deque()
        self._without_timeout = {plan.transactional_id for plan in self.plan.producers if plan.is_two_phase}
        self._names: Counter[str] = Counter()
        self._owners: dict[tuple[int, int], Process] = {}
        self._is_turn_due = False
        self.start_broker(is_first=True)

    # ----------------------------------------------------------------------------------------------- time and events

    def note(self, event: str, *details: object) -> None:
        """Something happens."""
        now_ms = int(self.clock.monotonic_ms())
        self.events.append((now_ms, event, details))
        if self._show is not None:
            self._show(f"{now_ms:>8} {event % details}")

    def last_events(self) -> list[str]:
        """The last of them, as lines."""
        return [f"{now_ms:>8} {event % details}" for now_ms, event, details in self.events]

    def later(self, delay_ms: float, step: Callable[[], None]) -> None:
        """In ``delay_ms``, rounded up so that several things happen at one moment."""
        tick_ms = self.plan.tick_ms
        due_ms = self.clock.monotonic_ms() + delay_ms
        self._timer.call_at(-(-due_ms // tick_ms) * tick_ms, step)

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self._plan_turn()
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (due_ms := self._next_due_ms()) <= end_ms:
            try:
                self.clock.advance(max(0, int(-(-(due_ms - self.clock.monotonic_ms()) // 1))))
                if self.server is not None and (not self._is_turn_due or self.rng.random() < 0.8):
                    self.server.loop.turn()
            except Violation:
                # What was written wrong comes first, not what came of it.
                self.witness.check()
                raise
            except Killed:
                self._die_at_write()
            self._finish_moment()
        self.clock.advance(int(end_ms - self.clock.monotonic_ms()))

    def _die_at_write(self) -> None:
        self.note("the broker dies at a write")
        self.counts["killed at a write"] += 1
        self.kill_broker()
        self.later(self.rng.choice((0, 50, 300)), self.start_broker)

    def _next_due_ms(self) -> float:
        timers = (self._timer, None if self.server is None else self.server.timer)
        deadlines = [timer.next_deadline_ms() for timer in timers if timer is not None]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=float("inf"))

    def _finish_moment(self) -> None:
        self.witness.check()
        if self.server is not None:
            self._plan_turn()
            for name in self.witness.touched:
                check_stable_offset(self, name)
            self.witness.touched.clear()
        while self._calls and self._calls[0].is_answered:
            self._calls.popleft()
        if self._calls and self._calls[0].deadline_ms < self.clock.monotonic_ms():
            call = self._calls[0]
            raise Violation("nobody waits for ever", f"{call.api_key.name} of {call.who} waits for an answer")

    def _plan_turn(self) -> None:
        """What the loop is yet to do, it does soon."""
        if self.server is not None and self.server.loop.soon and not self._is_turn_due:
            self._is_turn_due = True
            self.later(1, self._turn_is_due)

    def _turn_is_due(self) -> None:
        self._is_turn_due = False

    def note_line(self, event: str, fields: dict[str, Any]) -> None:
        """The broker logs something."""
        error = fields.get("exc_info")
        if event == "a transaction has timed out" and fields["transactional_id"] in self._without_timeout:
            self.witness.violation = self.witness.violation or Violation("what has no timeout does not time out", f"{fields}")
        self.counts[f"log: {event}" if error is None else "log: errors"] += 1
        if error is None:
            return
        self.note("broker: %s: %r", event, error)
        if not isinstance(error, (KafkaError, OSError)):
            self.witness.violation = self.witness.violation or Violation("the broker makes no mistake", f"{event}: {error!r}")

    # ------------------------------------------------------------------------------------------------------ requests

    def ask(
        self,
        process: Process | None,
        api_key: ApiKey,
        version: int,
        build: Callable[[], Any],
        answered: Callable[[Any], None],
    ) -> None:
        """Send a request; None answers where the broker is gone before it has, or the connection. It may arrive a second time."""
        who = "somebody" if process is None else process.name
        rng = self.rng
        plan = self.plan

        def latency_ms() -> int:
            return rng.randint(0, plan.longest_latency_ms) if plan.longest_latency_ms else 0

        self.later(latency_ms(), lambda: self._deliver(who, api_key, version, build(), answered))
        if process is not None and self.is_in_trouble and rng.random() < plan.repeat_share:
            at_once = process.client_version == 0 and api_key in _REPEATED_AT_ONCE
            if not at_once or not plan.longest_latency_ms:
                self.counts["requests repeated"] += 1
                delay_ms = 0 if at_once else rng.choice((0, 20, 200, 1_500))
                self.later(delay_ms, lambda: self._deliver(who, api_key, version, build(), lambda _: None))

    def _deliver(self, who: str, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> None:
        server = self.server
        if server is None:
            self.later(5, lambda: answered(None))
            return
        call = Call(api_key, who, self.clock.monotonic_ms() + _ANSWERED_WITHIN_MS, answered)
        self._calls.append(call)
        self.note("%s asks %s v%s %s", who, api_key.name, version, requests.Brief(request))

        is_asking = True

        def respond(response: Any) -> None:
            if call.is_answered:
                raise AssertionError(f"{api_key.name} of {who} is answered twice")
            call.is_answered = True
            if is_asking and api_key is ApiKey.OFFSET_FETCH:
                check_fetched(self, server, request, response)
            self.note("%s is answered %s %s", who, api_key.name, requests.Brief(response))
            digest = self._digest(api_key, response)
            is_lost = self.is_in_trouble and self.rng.random() < self.plan.loss_share
            self.counts["answers lost"] += is_lost
            self.later(self.rng.randint(0, self.plan.longest_latency_ms), lambda: answered(None if is_lost else digest))

        server.ask(api_key, version, request, respond)
        is_asking = False

    def _digest(self, api_key: ApiKey, response: Any) -> Any:
        """A response; of Produce, the error codes by partition."""
        if api_key is not ApiKey.PRODUCE:
            code = getattr(response, "error_code", None)
            if code is not None:
                self.counts[f"{api_key.name} {ErrorCode(code).name}"] += 1
            return response
        results = {}
        for topic in response.responses:
            for part in topic.partition_responses:
                results[topic.name, part.index] = part.error_code
                self.counts[f"PRODUCE {ErrorCode(part.error_code).name}"] += 1
        return results

    def note_acknowledged(self, sent: SentTransaction, values: list[bytes]) -> None:
        """A batch is acknowledged, wherever it is by now. Raises Violation where it is nowhere."""
        for value in values:
            places = self.witness.places.get(value)
            if places is None:
                raise Violation("what is acknowledged is in the log", f"{value!r} of {sent}")
            for place in places:
                sent.acknowledged[place].append(value)

    def check_refusal(self, process: Process, api_key: ApiKey, code: int) -> None:
        """A process is refused for good: somebody newer has to be there. Raises Violation."""
        self.counts[f"ended by {ErrorCode(code).name}"] += 1
        if code == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise Violation("the broker makes no mistake", f"{api_key.name} of {process} is answered {ErrorCode(code).name}")
        producer_id, epoch = process.identity
        # A batch that comes again after its transaction is asked about as if it began one, and others wait for it, as in Kafka.
        is_plain = not self.plan.repeat_share and "delete a topic" not in self.plan.faults
        if is_plain and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise Violation("who sends in order is taken in order", f"{api_key.name} of {process}")
        if api_key is ApiKey.PRODUCE and code == ErrorCode.INVALID_TXN_STATE and self.plan.faults.keys() & _UNVERIFYING:
            # What was verified before these says nothing of what is there now.
            return
        if code in _FENCED and not self.witness.fates.is_superseded(process.plan.transactional_id, producer_id, epoch):
            latest = self.witness.fates.latest.get(process.plan.transactional_id)
            raise Violation("who is fenced was superseded", f"{api_key.name} of {process}: {ErrorCode(code).name}, at {latest}")

    # ------------------------------------------------------------------------------------------------------ producers

    def start_process(self, plan: ProducerPlan) -> Process:
        """Another one of this transactional id."""
        self._names[plan.transactional_id] += 1
        client_version = 2 if self.rng.random() < plan.bumping_share else 0
        process = Process(self, plan, f"{plan.transactional_id}#{self._names[plan.transactional_id]}", client_version)
        self.note("%s starts, client version %s", process.name, client_version)
        self.processes.append(process)
        process.start()
        return process

    def note_identity(self, process: Process) -> None:
        """It was told its producer id and epoch. Raises Violation where somebody else was, too."""
        owner = self._owners.setdefault(process.identity, process)
        if owner is not process:
            raise Violation("producer id and epoch are one process's", f"{owner} and {process}")

    def process_ended(self, process: Process) -> None:
        """Somebody starts it anew, unless another one runs."""
        if self.is_in_trouble and not any(self.alive(process.plan)):
            self.later(self.rng.choice((10, 100, 500)), lambda: self._restart(process.plan))

    def _restart(self, plan: ProducerPlan) -> None:
        if self.is_in_trouble and not any(self.alive(plan)):
            self.start_process(plan)

    def alive(self, plan: ProducerPlan | None = None) -> list[Process]:
        """The processes that run."""
        return [each for each in self.processes if each.is_alive and (plan is None or each.plan is plan)]

    def wants_more(self, process: Process) -> bool:
        """Whether it makes another transaction."""
        return self.is_in_trouble or (self.is_last_round and not process.made)

    def wants_commit(self) -> bool:
        """Whether a transaction whose parts are all acknowledged is committed."""
        return self.is_last_round or self.rng.random() >= self.plan.abort_share

    def think_ms(self) -> int:
        """Between two steps."""
        return 1 if self.is_last_round else self.rng.randint(0, self.plan.think_ms)

    def draw_steps(self, process: Process) -> list[str]:
        """What a transaction consists of."""
        if self.is_last_round:
            return ["offsets", "produce", "produce"]
        if self.rng.random() < 0.2:
            return ["offsets"]
        return [self.rng.choice(("produce", "produce", "offsets")) for _ in range(self.rng.choice((1, 1, 2, 3)))]

    def draw_partitions(self) -> list[tuple[str, int]]:
        """Where a step of one writes to, or what it commits offsets of."""
        partitions = self.plan.partitions
        if self.is_last_round:
            return partitions
        return self.rng.sample(partitions, self.rng.randint(1, len(partitions)))

    # ------------------------------------------------------------------------------------------------------ the broker

    def _on_append(self, partition: Partition) -> None:
        held = self.held.get((partition.topic, partition.index))
        if held is not None:
            partition.high_watermark = held
        self.witness.observe(partition)

    def start_broker(self, *, is_first: bool = False) -> None:
        """Where it does not run."""
        if self.server is not None:
            return
        self.note("the broker starts")
        self.disk.disarm()
        self.held.clear()
        if self.plan.bumps_epochs_at_start:
            self.epochs = {name: epoch + 1 for name, epoch in self.epochs.items()}
        server = Server(self.plan, self.clock, self.disk, Random(self.rng.getrandbits(64)), self.epochs, self._on_append)
        self.server = server
        server.open()
        if is_first:
            for topic, count in self.plan.topics:
                server.create(topic, count)
        self.look_at_partitions()
        if is_first:
            seed_epochs(self, server)
        server.serve()
        for name in self.witness.partitions:
            check_stable_offset(self, name)

    def look_at_partitions(self) -> None:
        """Some may have come, or gone."""
        if self.server is not None:
            self.witness.forget_deleted(self.server.partitions)
            for partition in self.server.partitions:
                self.witness.observe(partition)

    def kill_broker(self) -> None:
        """Without a word. Who waits for an answer notices."""
        if self.server is None:
            return
        self.disk.is_dead = True
        self.server.vanish()
        self.server = None
        self._lose_answers()

    def stop_broker(self) -> None:
        """In good order."""
        if self.server is not None:
            self.note("the broker stops")
            self.server.close()
            self.server = None
            self._lose_answers()

    def _lose_answers(self) -> None:
        calls, self._calls = self._calls, deque()
        for call in calls:
            if not call.is_answered:
                call.is_answered = True
                self.later(self.rng.randint(1, 50), partial(call.answered, None))

    def read_on(self, max_bytes: int) -> None:
        """Somebody reads the committed records of all partitions, on from where they had come to; and compares."""
        try:
            for partition in () if self.server is None else self.server.partitions:
                if partition.log is not None and not partition.topic.startswith("__"):
                    reader = self.readers.setdefault((partition.topic_id, partition.index), CommittedReader())
                    reader.read_on(partition, max_bytes)
                    reader.check(self.witness.partitions[partition.topic, partition.index])
        except Killed:
            # To look something up an index may be written.
            self._die_at_write()

    def check_ledger(self, *, is_over: bool) -> None:
        """Compare what was read with what was sent and told."""
        there = {(seen.topic_id, seen.name[1]) for seen in self.witness.partitions.values()}
        read = {
            incarnation: [value for _, value in reader.values]
            for incarnation, reader in self.readers.items()
            if incarnation in there
        }
        self.ledger.check(read, self.witness.offsets.values(), is_over=is_over)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the logs say."""
        if self.server is not None:
            for topic, hosted in self.server.active():
                check_replayed(self, self.server, topic, hosted)
