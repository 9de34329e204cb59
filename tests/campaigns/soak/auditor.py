"""The auditor repeatedly takes snapshots of the books, by clients of each make in turn.

It fetches the groups' committed offsets before and after each snapshot. An order below the earlier offsets has its receipt in
the snapshot, and an order with a receipt in the snapshot is below the later offsets: offsets and output agree. The next
snapshot contains this one, in the same places, and no last stable offset goes back.
"""

from __future__ import annotations

import threading
import time
from itertools import cycle
from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import BOOKS, MAKES, Partition
from tests.campaigns.soak.books import Books, require
from tests.campaigns.soak.readers import Line, open_reader
from tests.campaigns.soak.window import Window

if TYPE_CHECKING:
    from tests.broker_process import BrokerProcess
    from tests.campaigns.soak.feeder import Feeder

PAUSE_S = 0.5
# The transaction of a killed teller holds the last stable offsets back until it times out.
COMPLETION_TIMEOUT_S = 30.0
# Between kills, a group makes progress on each partition within this time.
STALL_TIMEOUT_S = 60.0


class Auditor:
    """Takes snapshots, in a thread once started; ``failure`` has the first violation."""

    def __init__(self, broker: BrokerProcess, feeder: Feeder) -> None:
        self.window = Window(broker)
        self.snapshots = 0
        # Snapshots that needed several reads, because a transaction's markers were written to some of its partitions only.
        self.completed = 0
        self.transfers_seen = 0
        self.failure: BaseException | None = None
        self._broker = broker
        self._feeder = feeder
        self._ends: dict[Partition, int] = dict.fromkeys(BOOKS, 0)
        self._lines: dict[Partition, list[Line]] = {partition: [] for partition in BOOKS}
        self._moved: dict[Partition, tuple[int, float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="auditor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the present snapshot."""
        self._stopping.set()
        self._thread.join()
        self.raise_failure()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def snapshot(self, make: str) -> Books:
        """Take a snapshot and check it; returns the books."""
        covered = self.window.committed()
        self._check_progress(covered)
        ends = self.window.last_stable_offsets(BOOKS)
        back = {at: (self._ends[at], end) for at, end in ends.items() if end < self._ends[at]}
        require(not back, f"last stable offsets went back (from, to): {back}")
        books = Books(self._feeder.orders)
        with open_reader(make, self._broker.address) as reader:
            books.add(reader.read_until(ends))
            deadline = time.monotonic() + COMPLETION_TIMEOUT_S
            looks = 1
            while missing := (books.incomplete(books.begun(ends)), books.not_carried_out(covered)):
                if not any(missing):
                    break
                require(
                    time.monotonic() < deadline,
                    f"to {make} a part is missing of transfers, or a receipt of orders below the committed offsets: {missing}",
                )
                books.add(reader.read_until(self.window.last_stable_offsets(BOOKS)))
                looks += 1
        self._compare(books, ends)
        books.balances(books.begun(ends))
        covered = self.window.committed()
        for at, offsets in books.carried_out.items():
            beyond = {offset for offset in offsets if offset >= covered[at]}
            require(not beyond, f"orders of {at} are carried out, and the committed offset is {covered[at]}: {beyond}")
        self.snapshots += 1
        self.completed += looks > 1
        self.transfers_seen = len(books.receipts)
        return books

    def _compare(self, books: Books, ends: dict[Partition, int]) -> None:
        """Compare with the snapshot before: its records must still be there."""
        for at, before in self._lines.items():
            now = [line for line in books.lines[at] if line.offset < self._ends[at]]
            changed = sorted(set(now) ^ set(before), key=str)
            require(not changed, f"below {self._ends[at]}, {at} is not what it was: {changed[:4]}")
            self._lines[at] = [line for line in books.lines[at] if line.offset < ends[at]]
        self._ends = ends

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
