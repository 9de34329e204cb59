"""The steps before the kill and after the restart: a transaction.

It writes to four partitions of two topics, and commits a group's offsets.

Topics are named so that their markers are written before and after the group's: Debit-0, Debit-1, __consumer_offsets, credit-0,
credit-1. A segment of Debit is closed when its records are a millisecond apart, so batches to Debit-1 begin new segments, and
so do markers on Debit-0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from tests.campaigns.crash.points.producer import TRANSACTION_TIMEOUT_MS, TV1, TV2, Kind, Partition, Producer

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = tuple[str, Callable[[], None]]

DEBIT, CREDIT = "Debit", "credit"
PARTITIONS: tuple[Partition, ...] = ((DEBIT, 0), (DEBIT, 1), (CREDIT, 0), (CREDIT, 1))
GROUP = "movers"
GROUP_PARTITION: Partition = (DEBIT, 0)
TRANSACTIONAL_ID, NEW_TRANSACTIONAL_ID = "mover", "newcomer"
AFTER_THE_END = "ApiVersions"
SHORT_TIMEOUT_MS = 300
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
}
# Relative to now, so that segments are closed exactly where intended, however long the steps take.
_EARLIER_MS, _LATER_MS = -86_400_000, 1_000


class Ending(Enum):
    """How the transaction ends, or would end without a kill."""

    COMMIT = "commit"
    ABORT = "abort"
    # Its timeout passes.
    TIMEOUT = "time out"
    # The transactional id's next instance asks for its producer id.
    TAKE_OVER = "take over"
    # The broker is told to stop; the transaction is committed after its restart.
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A client and an ending. ``goes_on``: the same producer continues after the restart; otherwise a new instance takes over."""

    kind: Kind
    ending: Ending
    goes_on: bool

    def __str__(self) -> str:
        return f"{self.ending.value} {self.kind.name} {'goes on' if self.goes_on else 'anew'}"


def _scenarios(*endings: Ending, goes_on: tuple[bool, ...] = (True, False)) -> tuple[Scenario, ...]:
    return tuple(Scenario(kind, ending, on) for ending in endings for kind in (TV1, TV2) for on in goes_on)


# Before EndTxn the ending makes no difference.
WRITES = _scenarios(Ending.COMMIT)
# The result of an abort does not depend on the instance that continues.
ABORTS = (Scenario(TV1, Ending.ABORT, False), Scenario(TV2, Ending.ABORT, True))
ENDS = WRITES + ABORTS
TIMEOUTS = _scenarios(Ending.TIMEOUT, goes_on=(True,))
TAKE_OVERS = _scenarios(Ending.TAKE_OVER, goes_on=(False,))
STOPS = _scenarios(Ending.STOP)


def of_kind(kind: Kind, scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in scenarios if scenario.kind is kind)


def values_of(tag: str) -> dict[Partition, list[bytes]]:
    """The values that a transaction of this name writes."""
    return {
        (topic, index): [b"%s %s-%d %d" % (tag.encode(), topic.encode(), index, number) for number in range(3)]
        for topic, index in PARTITIONS
    }


@dataclass
class Transaction:
    """A transaction of ``producer`` that can be continued after an unanswered request: ``step`` is the first unanswered step."""

    producer: Producer
    tag: str
    offset: int
    step: str = ""
    _batches: dict[tuple[Partition, int], tuple[bytes, tuple[bytes, ...]]] = field(default_factory=dict)

    def write(self) -> list[Step]:
        """All steps except the end. An unanswered step is reported by its name."""
        producer = self.producer
        steps: list[Step] = [
            ("the first Produce", lambda: self._produce(((DEBIT, 0), (CREDIT, 0)), 0)),
            ("the second Produce", lambda: self._produce(((DEBIT, 1), (CREDIT, 1)), 0)),
            ("the third Produce", lambda: self._produce(PARTITIONS, 1)),
            ("TxnOffsetCommit", lambda: producer.commit_offset(GROUP, GROUP_PARTITION, self.offset)),
        ]
        if producer.kind.adds_partitions:
            steps.insert(0, ("AddPartitionsToTxn", lambda: producer.add_partitions(PARTITIONS)))
            steps.insert(4, ("AddOffsetsToTxn", lambda: producer.add_offsets(GROUP)))
        return steps

    def end(self, *, is_commit: bool) -> Step:
        """Its end."""
        return ("EndTxn", lambda: self.producer.end(is_commit=is_commit))

    def run(self, steps: list[Step]) -> None:
        """Run the steps, from the first unanswered one on. Raises OSError when the broker is gone."""
        names = [name for name, _ in steps]
        for name, act in steps[names.index(self.step) if self.step else 0 :]:
            self.step = name
            act()
        self.step = ""

    def _produce(self, partitions: tuple[Partition, ...], number: int) -> None:
        now_ms = int(time.time() * 1000)
        for partition in partitions:
            if (partition, number) not in self._batches:
                values = values_of(self.tag)[partition]
                chosen = tuple(values[:2] if number == 0 else values[2:])
                shift_ms = _LATER_MS * (number + 1) if partition == (DEBIT, 1) else _EARLIER_MS
                self._batches[partition, number] = self.producer.batch(partition, chosen, now_ms + shift_ms), chosen
        self.producer.produce({partition: self._batches[partition, number] for partition in partitions})


def steps_of(scenario: Scenario, transaction: Transaction, interrupt: Callable[[], None]) -> list[Step]:
    """The producer's steps until the broker dies, and after that if it goes on.

    ``interrupt`` is called where the scenario sends no request: it tells the broker to stop, or waits for the timeout.
    """
    producer = transaction.producer
    timeout_ms = SHORT_TIMEOUT_MS if scenario.ending is Ending.TIMEOUT else TRANSACTION_TIMEOUT_MS
    steps = [("InitProducerId", lambda: producer.init(timeout_ms)), *transaction.write()]
    if scenario.ending is Ending.TIMEOUT:
        return [*steps, ("the wait for the timeout", interrupt)]
    if scenario.ending is Ending.TAKE_OVER:
        return [*steps, ("the next instance's InitProducerId", producer.successor().init)]
    if scenario.ending is Ending.STOP:
        return [*steps, ("the wait for the stop", interrupt), transaction.end(is_commit=True)]
    is_commit = scenario.ending is Ending.COMMIT
    return [*steps, transaction.end(is_commit=is_commit), (AFTER_THE_END, producer.ask_nothing)]
