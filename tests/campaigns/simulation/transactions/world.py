"""One history: a broker, its disk, the producers of its transactional ids, under a virtual clock and from one source of chance.

At each moment at which something is due all of it happens, then the broker's loop turns, then what was written is checked. What
the broker answers arrives later: no client runs within the broker.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.controller.metadata.topic import TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.result import CoordinatorRecord, encode_record
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import KafkaError
from odradek.protocol.hashing import partition_for
from tests.campaigns.simulation.runner import Chronicle
from tests.campaigns.simulation.transactions.checks import check_replayed, check_stable_offset
from tests.campaigns.simulation.transactions.disk import Killed, SimulatedDisk
from tests.campaigns.simulation.transactions.fetcher import Fetcher
from tests.campaigns.simulation.transactions.ledger import COMPLETE_COMMIT, Ledger
from tests.campaigns.simulation.transactions.membership import TOPIC as MEMBERS_TOPIC
from tests.campaigns.simulation.transactions.membership import draw_membership, with_further_producers
from tests.campaigns.simulation.transactions.network import Network, draw_flight
from tests.campaigns.simulation.transactions.plan import draw
from tests.campaigns.simulation.transactions.producer import Process
from tests.campaigns.simulation.transactions.server import Server
from tests.campaigns.simulation.transactions.witness import Witness
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.replica.partition import Partition
    from tests.campaigns.simulation.transactions.ledger import SentTransaction
    from tests.campaigns.simulation.transactions.plan import ProducerPlan


def seed_epochs(world: World, server: Server) -> None:
    """Write them, before the coordinators are loaded."""
    now_ms = world.clock.now_ms()
    for plan in world.plan.producers:
        if plan.first_epoch is None:
            continue
        value = TransactionLogValue(
            server.controller.next_producer_id(),
            plan.first_epoch,
            plan.timeout_ms,
            COMPLETE_COMMIT,
            frozenset(),
            now_ms,
            now_ms,
        )
        world.witness.fates.seed(plan.transactional_id, value)
        record = CoordinatorRecord(TransactionLogKey(plan.transactional_id), value)
        partition = server.partitions.require(
            TRANSACTION_STATE_TOPIC, partition_for(plan.transactional_id, world.plan.transaction_shards)
        )
        partition.append_internal([encode_record(record)], now_ms)


class World(Chronicle):
    """A history of producers and their transactions."""

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show)
        self.membership = draw_membership(seed)
        self.flight = draw_flight(seed)
        self.plan = with_further_producers(draw(self.rng), self.membership)
        self.disk = SimulatedDisk()
        self.epochs: dict[tuple[str, int], int] = {}
        self.ledger = Ledger()
        self.witness = Witness(self.note, may_lag="hold a high watermark" in self.plan.faults)
        self.seed = seed
        self.fetcher = Fetcher(self)
        self.processes: list[Process] = []
        self.held: dict[tuple[str, int], int] = {}
        self.is_in_trouble = True
        self.is_last_round = False
        self.server: Server | None = None
        self.network = Network(self)
        self._without_timeout = {plan.transactional_id for plan in self.plan.producers if plan.is_two_phase}
        self._names: Counter[str] = Counter()
        self._owners: dict[tuple[int, int], Process] = {}
        self._is_turn_due = False
        self.start_broker(is_first=True)

    # ----------------------------------------------------------------------------------------------- time and events

    def later(self, delay_ms: float, step: Callable[[], None]) -> None:
        """In ``delay_ms``, at the next tick of the plan's."""
        self.at_tick(delay_ms, self.plan.tick_ms, step)

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        self._plan_turn()
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (due_ms := self.next_due_ms(None if self.server is None else self.server.timer)) <= end_ms:
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

    def _finish_moment(self) -> None:
        self.witness.check()
        if self.server is not None:
            self._plan_turn()
            for name in self.witness.touched:
                check_stable_offset(self, name)
            self.witness.touched.clear()
        self.network.check_answered()
        if self.fetcher.may_read():
            self.read_on(1 << 20)

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
        if event == "a transaction timed out" and fields["transactional_id"] in self._without_timeout:
            self.witness.violation = self.witness.violation or Violation("what has no timeout does not time out", f"{fields}")
        self.counts[f"log: {event}" if error is None else "log: errors"] += 1
        if error is None:
            return
        self.note("broker: %s: %r", event, error)
        if not isinstance(error, (KafkaError, OSError)):
            self.witness.violation = self.witness.violation or Violation("the broker makes no mistake", f"{event}: {error!r}")

    # ------------------------------------------------------------------------------------------------------ producers

    def note_acknowledged(self, sent: SentTransaction, values: list[bytes]) -> None:
        """A batch is acknowledged, wherever it is by now. Raises Violation where it is nowhere."""
        for value in values:
            places = self.witness.places.get(value)
            if places is None:
                raise Violation("what is acknowledged is in the log", f"{value!r} of {sent}")
            for place in places:
                sent.acknowledged[place].append(value)

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
        if is_first:
            for topic, count in self.plan.topics:
                server.create(topic, count)
            if self.membership is not None:
                server.create(MEMBERS_TOPIC, self.membership.partition_count)
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
        self.network.lose_answers()

    def stop_broker(self) -> None:
        """In good order."""
        if self.server is not None:
            self.note("the broker stops")
            self.server.close()
            self.server = None
            self.network.lose_answers()

    def read_on(self, max_bytes: int) -> None:
        """Somebody reads the committed records of all partitions, on from where they had come to; and compares."""
        try:
            partitions = [] if self.server is None else list(self.server.partitions)
            self.fetcher.read_on(partitions, max_bytes)
            for partition in partitions:
                reader = self.fetcher.readers.get((partition.topic_id, partition.index))
                if reader is not None:
                    reader.check(self.witness.partitions[partition.topic, partition.index])
        except Killed:
            # To look something up an index may be written.
            self._die_at_write()

    def check_ledger(self, *, is_over: bool) -> None:
        """Compare what was read with what was sent and told."""
        there = {(seen.topic_id, seen.name[1]) for seen in self.witness.partitions.values()}
        read = {
            incarnation: [value for _, value in reader.values]
            for incarnation, reader in self.fetcher.readers.items()
            if incarnation in there
        }
        self.ledger.check(read, self.witness.offsets.values(), is_over=is_over)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the logs say."""
        if self.server is not None:
            for topic, hosted in self.server.active():
                check_replayed(self, self.server, topic, hosted)
