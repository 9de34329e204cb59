"""A bank under fire: real clients move money in transactions while they and the broker are killed with -9.

Tellers (two processes each of librdkafka, kafka-python and aiokafka) read orders in consumer groups, and write the ledger,
receipts and their offsets in one transaction; some transactions are aborted on purpose. Tellers are killed in turn, or frozen
until they wake as zombies. The broker is killed every few seconds, but not before it has made progress. Meanwhile and at the
end

    money is conserved      in every snapshot that a read_committed reader of any make takes, see ``books``
    offsets agree with      an order is carried out exactly once, and the committed offsets agree, see ``auditor``
    output
    clients agree           every make reads every record of the books, and the same; all are read once more at the end, see
                            ``tape``
    responses hold          a transaction confirmed as committed is readable, one confirmed as aborted is not
    nothing hangs           every teller makes steps, see ``patience``, every partition of orders makes progress, and at the end
                            every order is carried out, no transaction is open, and the last stable offset of every partition
                            is its high watermark
    logs are compacted      the coordinators' segments, soon after they are closed, and at the end all of them, see ``segments``
    excuses are few         clients may fail where the broker is killed, but not often, see ``staff``

Segments are small, so that logs roll and the coordinators' are compacted; a run in which that did not happen has failed, too.
``--broker kafka`` runs the same bank on Apache Kafka: its table says how often clients fail there. Kafka 4.3.1 may take the
partitions of a transaction for deleted when it starts after a kill, and write no markers to them, so a violation does not end
that run: another bank is opened. ``--fault`` seeds a fault into odradek, and the run succeeds if the fault is found.

    python -m tests.campaigns.soak --minutes 5
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.soak.auditor import Auditor
from tests.campaigns.soak.bank import (
    LEDGER,
    LEDGER_PARTITIONS,
    MAKES,
    OPENING_BALANCE,
    ORDER_PARTITIONS,
    RECEIPT_PARTITIONS,
    RECEIPTS,
    orders_of,
)
from tests.campaigns.soak.books import require
from tests.campaigns.soak.feeder import Feeder, open_accounts
from tests.campaigns.soak.patience import ServedClock
from tests.campaigns.soak.report import BROKER, Costs, Report, Spent
from tests.campaigns.soak.segments import Segments
from tests.campaigns.soak.staff import Said, Staff

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from tests.broker_process import BrokerProcess
    from tests.campaigns.soak.books import Books
    from tests.campaigns.soak.kafka_broker import KafkaBroker
    from tests.campaigns.soak.settings import Pace

CREATE_TIMEOUT_S = 20.0
TICK_S = 0.05
DRAIN_TIMEOUT_S = 180.0
QUIET_TIMEOUT_S = 30.0
TOLD_INTERVAL_S = 30.0
# Reading them from the first offset takes a client in Python a second for every twenty thousand.
MOST_LINES_FOR_ALL_MAKES = 300_000


class Soak:
    """One run, on a running broker, with the tellers' files in a ``directory`` of its own."""

    def __init__(self, broker: BrokerProcess | KafkaBroker, directory: Path, rng: random.Random, pace: Pace) -> None:
        self._broker = broker
        self._rng = rng
        self._pace = pace
        self._feeder = Feeder(broker.address, pace.orders_a_second)
        self._auditor = Auditor(broker, self._feeder)
        self._clock = ServedClock()
        self._costs = Costs()
        self._staff = Staff(broker.address, directory, rng, pace, self._clock, self._costs)
        self._segments = Segments(broker.data_dir, self._clock)
        self._broker_kills = 0
        # Until the tellers come to rest.
        self._spent: Spent | None = None
        self._started_at = self._rest_at = time.monotonic()

    def run(self, duration_s: float) -> Report:
        """Run for ``duration_s``, come to rest, and report. Raises Violation, or the error that occurred."""
        try:
            return self._run(duration_s)
        finally:
            self._feeder.abandon()
            self._auditor.abandon()

    def _run(self, duration_s: float) -> Report:
        self._prepare()
        self._started_at = time.monotonic()
        self._feeder.start()
        self._auditor.start()
        with self._segments:
            with self._staff:
                self._fight(duration_s)
                self._rest_at, self._spent = time.monotonic(), self._costs.spent()
                self._come_to_rest()
            self._check_end()
            # No teller depends on the broker's memory.
            self._kill_broker()
            said = self._check_end()
        self._check_all_again(said)
        report = self.report()
        said.require_bounded(report.harms)
        return report

    def report(self) -> Report:
        """What has been so far."""
        auditor, staff, segments = self._auditor, self._staff, self._segments
        rest_at = self._rest_at if self._rest_at > self._started_at else time.monotonic()
        return Report(
            rest_at - self._started_at,
            self._feeder.count,
            staff.said(),
            staff.silences,
            staff.kills,
            staff.freezes,
            self._broker_kills,
            auditor.snapshots,
            auditor.completed,
            auditor.lines,
            segments.rolls,
            segments.compactions,
            self._spent or self._costs.spent(),
            self._clock,
        )

    def _prepare(self) -> None:
        topics = {LEDGER: LEDGER_PARTITIONS, RECEIPTS: RECEIPT_PARTITIONS}
        topics |= {orders_of(make): ORDER_PARTITIONS for make in MAKES}
        admin = AdminClient({"bootstrap.servers": self._broker.address, "log_level": 0})
        for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
            future.result(CREATE_TIMEOUT_S)
        open_accounts(self._broker.address)

    def _fight(self, duration_s: float) -> None:
        """Kill, freeze and replace until the time is up, and the broker has been killed if it is to be."""
        started = told = time.monotonic()
        pace, books = self._pace, self._auditor.books
        kill_at, harm_at = self._next(pace.broker_kill_interval_s), self._next(pace.harm_interval_s)
        killed_at, settled = started, 0
        while (now := time.monotonic()) < started + duration_s or (self._broker_kills == 0 and pace.broker_kill_interval_s):
            time.sleep(TICK_S)
            self._tend()
            if now >= harm_at:
                self._staff.harm()
                harm_at = self._next(pace.harm_interval_s)
            gets_on = books.settled > settled
            require(gets_on or now < killed_at + pace.progress_timeout_s, f"no transfer since broker kill {self._broker_kills}")
            if now >= kill_at and gets_on:
                self._kill_broker()
                killed_at, settled = time.monotonic(), books.settled
                kill_at = self._next(pace.broker_kill_interval_s)
            if now > told + TOLD_INTERVAL_S:
                told = now
                print(f"{now - started:4.0f} s: {self._so_far()}", flush=True)

    def _next(self, interval_s: tuple[float, float] | None) -> float:
        return float("inf") if interval_s is None else time.monotonic() + self._rng.uniform(*interval_s)

    def _kill_broker(self) -> None:
        self._costs.look(BROKER, self._broker.pid)
        with self._clock.away():
            self._broker.kill9()
            self._broker.start()
        self._broker_kills += 1
        self._staff.note_kill()

    def _tend(self) -> None:
        self._auditor.raise_failure()
        self._feeder.raise_failure()
        self._clock.look(self._broker.pid)
        self._costs.look(BROKER, self._broker.pid)
        self._segments.require_compacted(self._pace.compaction_timeout_s)
        self._staff.tend()

    def _so_far(self) -> str:
        staff, auditor, segments = self._staff, self._auditor, self._segments
        return (
            f"{auditor.books.settled} of {self._feeder.count} transfers seen, {auditor.snapshots} snapshots, "
            f"{self._broker_kills} kills of the broker, {staff.kills} of tellers, {staff.freezes} frozen, "
            f"{len(staff.hangs)} hung, {segments.rolls.total()} rolls, {segments.compactions.total()} compactions"
        )

    def _come_to_rest(self) -> None:
        """Wait until every order is carried out, then stop all tellers."""
        self._staff.thaw()
        self._feeder.stop()
        self._until(lambda: self._auditor.window.committed() == self._feeder.ends, DRAIN_TIMEOUT_S, "all orders are carried out")
        self._staff.stop()
        self._auditor.stop()

    def _check_end(self) -> Said:
        """With all clients stopped: no transaction is open, and every record is there."""
        auditor, books, window = self._auditor, self._auditor.books, self._auditor.window
        self._until(lambda: not window.open_transactions(), QUIET_TIMEOUT_S, "no transaction is open")
        partitions = window.partitions()
        self._until(
            lambda: window.last_stable_offsets(partitions) == window.high_watermarks(partitions),
            QUIET_TIMEOUT_S,
            "the last stable offset of every partition is its high watermark",
        )
        self._until(self._segments.are_compacted, QUIET_TIMEOUT_S, "all closed segments of the coordinators are compacted")
        require(window.committed() == self._feeder.ends, "the committed offsets are not those behind the last orders")
        for make in MAKES:
            auditor.snapshot(make)
        said = self._staff.said()
        self._check_books(books, said)
        return said

    def _check_all_again(self, said: Said) -> None:
        """Read the books from the first offset on."""
        makes = MAKES if self._auditor.lines <= MOST_LINES_FOR_ALL_MAKES else MAKES[:1]
        for make in makes:
            self._check_books(self._auditor.read_all_again(make), said)

    def _check_books(self, books: Books, said: Said) -> None:
        """The books are those of all orders, and agree with what tellers were told."""
        require(not books.begun, f"a part of transfers is missing: {sorted(books.begun)[:4]}")
        require(books.settled == self._feeder.count, f"{books.settled} of {self._feeder.count} orders are carried out")
        require(books.balances() == self._feeder.balances(OPENING_BALANCE), "accounts hold what they must not")
        lost = said.committed - books.attempts
        require(not lost, f"committed, as the teller was told, and not there: {sorted(lost)[:4]}")
        risen = said.aborted & books.attempts
        require(not risen, f"aborted, as the teller was told, and there: {sorted(risen)[:4]}")

    def _until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            self._tend()
            require(time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}; {self._so_far()}")
            time.sleep(TICK_S)
