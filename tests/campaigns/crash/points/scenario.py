"""What is done before the kill and after the restart: a transaction, step by step.

It is over four partitions of two topics, and a group's offsets.

Topics are named so that their markers are written before and behind the group's: Debit-0, Debit-1, __consumer_offsets, credit-0,
credit-1. A segment of Debit is closed as soon as its records are a millisecond apart: batches to Debit-1 begin new ones, and so
do markers on Debit-0.
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
# From now, so that segments are closed where they are to be, and nowhere else, however long it takes to get there.
_EARLIER_MS, _LATER_MS = -86_400_000, 1_000


class Ending(Enum):
    """How the transaction ends, or would if nobody were killed."""

    COMMIT = "commit"
    ABORT = "abort"
    # Its timeout passes.
    TIMEOUT = "time out"
    # The transactional id's next instance asks for its producer id.
    TAKE_OVER = "take over"
    # The broker is told to stop; the transaction is committed when it is back.
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who does what. ``goes_on``: after the restart the same producer does; otherwise a new instance takes over."""

    kind: Kind
    ending: Ending
    goes_on: bool

    def __str__(self) -> str:
        return f"{self.ending.value} {self.kind.name} {'goes on' if self.goes_on else 'anew'}"


def _scenarios(*endings: Ending, goes_on: tuple[bool, ...] = (True, False)) -> tuple[Scenario, ...]:
    return tuple(Scenario(kind, ending, on) for ending in endings for kind in (TV1, TV2) for on in goes_on)


# Up to EndTxn there is no other way.
WRITES = _scenarios(Ending.COMMIT)
# What becomes of an abort does not depend on who goes on.
ABORTS = (Scenario(TV1, Ending.ABORT, False), Scenario(TV2, Ending.ABORT, True))
ENDS = WRITES + ABORTS
TIMEOUTS = _scenarios(Ending.TIMEOUT, goes_on=(True,))
TAKE_OVERS = _scenarios(Ending.TAKE_OVER, goes_on=(False,))
STOPS = _scenarios(Ending.STOP)


def of_kind(kind: Kind, scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in scenarios if scenario.kind is kind)


def values_of(tag: str) -> dict[Partition, list[bytes]]:
    """What a transaction of this name writes."""
    return {
        (topic, index): [b"%s %s-%d %d" % (tag.encode(), topic.encode(), index, number) for number in range(3)]
        for topic, index in PARTITIONS
    }


@dataclass
class Transaction:
    """A transaction of ``producer``, to be gone on with where an answer is missing: ``step`` is the one that has none."""

    producer: Producer
    tag: str
    offset: int
    step: str = ""
    _batches: dict[tuple[Partition, int], tuple[bytes, tuple[bytes, ...]]] = field(default_factory=dict)

    def write(self) -> list[Step]:
        """All but its end. The steps' names are told where one is not answered."""
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
        """Take the steps, from the one that has no answer on. Raises OSError when the broker is gone."""
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
    """What the producer does until the broker dies, and after that if it goes on.

    ``interrupt`` is what is done where nothing is asked of the broker: it is told to stop, or the timeout is waited for.
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
