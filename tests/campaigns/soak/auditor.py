"""The auditor repeatedly takes snapshots of the books, by clients of each make in turn.

A snapshot has all records below the last stable offsets fetched before. Each make reads on from its own last snapshot, and must
read the very lines that the others have read, see ``tape``. The auditor fetches the groups' committed offsets before and after
each snapshot. An order below the earlier offsets has its receipt in the books, and an order with a receipt in the books is below
the later offsets: offsets and output agree. No last stable offset goes back.
"""

from __future__ import annotations

import threading
import time
from itertools import count, cycle
from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import BOOKS, MAKES, Partition
from tests.campaigns.soak.books import Books, Digests, Tape, require
from tests.campaigns.soak.feeder import Window
from tests.campaigns.soak.readers import open_reader

if TYPE_CHECKING:
    from tests.broker_process import BrokerProcess
    from tests.campaigns.soak.feeder import Feeder
    from tests.campaigns.soak.kafka_broker import KafkaBroker
    from tests.campaigns.soak.readers import Reader

PAUSE_S = 0.5
# The transaction of a killed teller holds the last stable offsets back until it times out.
COMPLETION_TIMEOUT_S = 90.0
# A group makes progress on each partition within this time. On a busy machine a teller is killed before it comes to each of them.
STALL_TIMEOUT_S = 180.0


class Auditor:
    """Takes snapshots, in a thread once started; ``failure`` has the first violation."""

    def __init__(self, broker: BrokerProcess | KafkaBroker, feeder: Feeder) -> None:
        self.window = Window(broker)
        self.books = Books()
        self.snapshots = 0
        # Snapshots that needed several reads, because a transaction's markers were written to some of its partitions only.
        self.completed = 0
        self.failure: BaseException | None = None
        self._broker = broker
        self._feeder = feeder
        self._tapes = {partition: Tape(MAKES) for partition in BOOKS}
        self._ends: dict[Partition, int] = dict.fromkeys(BOOKS, 0)
        self._moved: dict[Partition, tuple[int, float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="auditor", daemon=True)

    @property
    def lines(self) -> int:
        """The records of the books so far."""
        return sum(tape.digests.lines for tape in self._tapes.values())

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the present snapshot."""
        self.abandon()
        self.raise_failure()

    def abandon(self) -> None:
        """End after the present snapshot, whatever it finds; nothing if it has ended."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def snapshot(self, make: str) -> None:
        """Read on with ``make``, and check the books."""
        covered = self.window.committed()
        self._check_progress(covered)
        ends = self.window.last_stable_offsets(BOOKS)
        back = {at: (self._ends[at], end) for at, end in ends.items() if end < self._ends[at]}
        require(not back, f"last stable offsets went back (from, to): {back}")
        self._ends = ends
        books = self.books
        begin = {partition: tape.positions[make] for partition, tape in self._tapes.items()}
        with open_reader(make, self._broker.address, begin) as reader:
            self._read(make, reader, ends)
            looks = 1
            if self._missing(covered):
                looks += self._read_missing(make, reader, covered)
        books.balances()
        covered = self.window.committed()
        ahead = books.ahead(covered)
        require(not ahead, f"orders are carried out at or behind the committed offsets {covered}: {ahead}")
        self._feeder.carried_out = books.settled
        self.snapshots += 1
        self.completed += looks > 1

    def read_all_again(self, make: str) -> Books:
        """The books from the first offset on, which must be those that were read line by line."""
        books = Books()
        digests = {partition: Digests() for partition in BOOKS}
        ends = self.window.last_stable_offsets(BOOKS)
        with open_reader(make, self._broker.address, dict.fromkeys(BOOKS, 0)) as reader:
            for line in reader.read_until(ends):
                books.add(line)
                digests[line.partition].add(line)
        for partition, tape in self._tapes.items():
            tape.digests.require_same(digests[partition], f"{partition} is not what it was when {make} reads it again")
        return books

    def _missing(self, covered: dict[Partition, int]) -> list[object]:
        """The transfers without a part, and the orders below committed offsets without a receipt."""
        missing = (self.books.incomplete(self._ends), self.books.not_carried_out(covered))
        return [each for each in missing if each]

    def _read_missing(self, make: str, reader: Reader, covered: dict[Partition, int]) -> int:
        """Read on until nothing is missing; the number of looks.

        All of it was decided on, and written, before it was missed: it is below these high watermarks.
        """
        high_watermarks = self.window.high_watermarks(BOOKS)
        deadline = time.monotonic() + COMPLETION_TIMEOUT_S
        for looks in count(1):
            ends = self.window.last_stable_offsets(BOOKS)
            self._read(make, reader, ends)
            missing = self._missing(covered)
            if not missing:
                return looks
            behind = {at: (end, high_watermarks[at]) for at, end in ends.items() if end < high_watermarks[at]}
            require(behind, f"to {make} a part is missing of transfers, or a receipt of orders that are committed: {missing}")
            require(time.monotonic() < deadline, f"transactions remain open at (last stable offset, high watermark): {behind}")
        raise AssertionError

    def _read(self, make: str, reader: Reader, ends: dict[Partition, int]) -> None:
        for line in reader.read_until(ends):
            if self._tapes[line.partition].take(make, line):
                self.books.add(line)
        for partition, tape in self._tapes.items():
            tape.pass_by(make, ends[partition])

    def _check_progress(self, covered: dict[Partition, int]) -> None:
        now = time.monotonic()
        for at, offset in covered.items():
            if self._moved.get(at, (-1, now))[0] != offset or offset >= self._feeder.ends[at]:
                self._moved[at] = offset, now
            since_s = now - self._moved[at][1]
            require(since_s < STALL_TIMEOUT_S, f"nothing of {at} is carried out for {since_s:.0f} s, at offset {offset}")

    def _run(self) -> None:
        try:
            for make in cycle(MAKES):
                if self._stopping.wait(PAUSE_S):
                    return
                self.snapshot(make)
        except BaseException as error:  # noqa: BLE001  whatever it is, the run has to end of it
            self.failure = error
