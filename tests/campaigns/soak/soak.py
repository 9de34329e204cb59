"""A bank under fire: real clients move money in transactions while they and the broker are killed with -9.

Tellers (two processes each of librdkafka, kafka-python and aiokafka) read orders in consumer groups, and write the ledger,
receipts and their offsets in one transaction; some transactions are aborted on purpose. Tellers are killed in turn, or frozen
until they wake as zombies. The broker is killed every few seconds, but not before it has made progress. Meanwhile and at the
end

    money is conserved      in every snapshot that a read_committed reader of any make takes, see ``books``
    offsets agree with      an order is carried out exactly once, and the committed offsets agree, see ``auditor``
    output
    responses hold          a transaction confirmed as committed is readable, one confirmed as aborted is not
    nothing hangs           every partition of orders makes progress, and at the end every order is carried out, no transaction
                            is open, and the last stable offset of every partition is its high watermark

    python -m tests.campaigns.soak.soak --minutes 5
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess
from tests.campaigns.crash.support import seeded
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
from tests.campaigns.soak.books import Violation, require
from tests.campaigns.soak.feeder import Feeder, open_accounts
from tests.campaigns.soak.staff import Said, Staff

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SETTINGS = {
    "group.min.session.timeout.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
CREATE_TIMEOUT_S = 20.0
ORDERS_A_SECOND = 60
BROKER_KILL_INTERVAL_S = (5.0, 8.0)
HARM_INTERVAL_S = (2.0, 5.0)
TICK_S = 0.05
PROGRESS_TIMEOUT_S = 30.0
DRAIN_TIMEOUT_S = 90.0
QUIET_TIMEOUT_S = 30.0
TOLD_INTERVAL_S = 30.0


@dataclass(frozen=True, slots=True)
class Report:
    """The events of a run without violations."""

    transfers: int
    said: Said
    worker_kills: int
    freezes: int
    hangs: list[str]
    broker_kills: int
    snapshots: int
    completed: int

    def __str__(self) -> str:
        said = self.said
        lines = [
            f"transfers made                  {self.transfers}",
            f"transactions committed          {len(said.committed)} (answered so)",
            f"aborted on purpose              {len(said.aborted)}",
            f"aborted after a refusal         {said.refused.total()} {_counts(said.refused)}",
            f"worker kills survived           {self.worker_kills}",
            f"workers frozen, woken as zombie {self.freezes}",
            f"workers that gave up            {said.gave_up.total()} {_counts(said.gave_up)}",
            f"workers replaced for hanging    {len(self.hangs)} {', '.join(self.hangs)}",
            f"broker kills survived           {self.broker_kills}",
            f"snapshots checked               {self.snapshots} ({self.completed} in the middle of a transaction's markers)",
            "violations                      0",
        ]
        return "\n".join(line.rstrip() for line in lines)


class Soak:
    """One run, on a running broker, with the tellers' files in a ``directory`` of its own."""

    def __init__(self, broker: BrokerProcess, directory: Path, rng: random.Random) -> None:
        self._broker = broker
        self._rng = rng
        self._feeder = Feeder(broker.address, rng, ORDERS_A_SECOND)
        self._auditor = Auditor(broker, self._feeder)
        self._staff = Staff(broker.address, directory, rng)
        self._broker_kills = 0

    def run(self, duration_s: float, kill_interval_s: tuple[float, float] = BROKER_KILL_INTERVAL_S) -> Report:
        """Run for ``duration_s``, come to rest, and report. Raises Violation, or the error that occurred."""
        self._prepare()
        self._feeder.start()
        self._auditor.start()
        with self._staff:
            self._fight(duration_s, kill_interval_s)
            self._come_to_rest()
        self._check_end()
        # No teller depends on the broker's memory.
        self._broker.kill9()
        self._broker.start()
        said = self._check_end()
        auditor, staff = self._auditor, self._staff
        return Report(
            len(self._feeder.orders),
            said,
            staff.kills,
            staff.freezes,
            staff.hangs,
            self._broker_kills + 1,
            auditor.snapshots,
            auditor.completed,
        )

    def _prepare(self) -> None:
        topics = {LEDGER: LEDGER_PARTITIONS, RECEIPTS: RECEIPT_PARTITIONS}
        topics |= {orders_of(make): ORDER_PARTITIONS for make in MAKES}
        admin = AdminClient({"bootstrap.servers": self._broker.address, "log_level": 0})
        for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
            future.result(CREATE_TIMEOUT_S)
        open_accounts(self._broker.address)

    def _fight(self, duration_s: float, kill_interval_s: tuple[float, float]) -> None:
        """Kill, freeze and replace until the time is up."""
        started = told = time.monotonic()
        kill_at, harm_at = started + self._rng.uniform(*kill_interval_s), started + self._rng.uniform(*HARM_INTERVAL_S)
        seen_at_start = self._auditor.transfers_seen
        while (now := time.monotonic()) < started + duration_s:
            time.sleep(TICK_S)
            self._auditor.raise_failure()
            self._staff.tend()
            if now >= harm_at:
                self._staff.harm()
                harm_at = now + self._rng.uniform(*HARM_INTERVAL_S)
            if now >= kill_at and self._auditor.transfers_seen > seen_at_start:
                self._broker.kill9()
                self._broker.start()
                self._broker_kills += 1
                seen_at_start = self._auditor.transfers_seen
                kill_at = time.monotonic() + self._rng.uniform(*kill_interval_s)
            require(now < kill_at + PROGRESS_TIMEOUT_S, f"no transfer since kill {self._broker_kills} of the broker")
            if now > told + TOLD_INTERVAL_S:
                told = now
                print(f"{now - started:4.0f} s: {self._so_far()}", flush=True)

    def _so_far(self) -> str:
        staff, auditor = self._staff, self._auditor
        return (
            f"{auditor.transfers_seen} of {len(self._feeder.orders)} transfers seen, {auditor.snapshots} snapshots, "
            f"{self._broker_kills} kills of the broker, {staff.kills} of workers, {staff.freezes} frozen, {len(staff.hangs)} hung"
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
        window = self._auditor.window
        self._until(lambda: not window.open_transactions(), QUIET_TIMEOUT_S, "no transaction is open")
        partitions = window.partitions()
        self._until(
            lambda: window.last_stable_offsets(partitions) == window.high_watermarks(partitions),
            QUIET_TIMEOUT_S,
            "the last stable offset of every partition is its high watermark",
        )
        require(window.committed() == self._feeder.ends, "the committed offsets are not those behind the last orders")
        said = self._staff.said()
        for make in MAKES:
            books = self._auditor.snapshot(make)
            found = {number: ((each.topic, each.partition), each.offset) for number, each in books.receipts.items()}
            wrong = set(found.items()) ^ set(self._feeder.placed.items())
            require(not wrong, f"receipts and orders differ: {sorted(wrong)[:4]}")
            balances = self._feeder.balances(OPENING_BALANCE)
            require(books.balances(books.receipts) == balances, "accounts hold what they must not")
            lost = said.committed - books.attempts()
            require(not lost, f"committed, as the teller was told, and not there: {sorted(lost)[:4]}")
            risen = said.aborted & books.attempts()
            require(not risen, f"aborted, as the teller was told, and there: {sorted(risen)[:4]}")
        return said

    def _until(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            self._auditor.raise_failure()
            self._staff.tend()
            require(time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}; {self._so_far()}")
            time.sleep(TICK_S)


def _counts(counter: dict[str, int]) -> str:
    return f"({', '.join(f'{name} {count}' for name, count in sorted(counter.items()))})" if counter else ""


def main() -> None:
    """Run and report; status 1 after a violation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    minutes = parser.parse_args().minutes
    logging.disable()
    rng = seeded("bank")
    directory = Path(tempfile.mkdtemp(prefix="odradek-soak-"))
    print(f"what the broker and the workers leave, until all is well: {directory}", flush=True)
    try:
        with BrokerProcess(directory / "broker", settings=SETTINGS) as broker:
            report = Soak(broker, directory / "tellers", rng).run(minutes * 60)
    except Violation as error:
        print(f"violations 1: {error}")
        sys.exit(1)
    print(report)
    shutil.rmtree(directory)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
