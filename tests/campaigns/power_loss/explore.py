"""Power losses, and kills of the process, at each operation of a workload in turn.

The workload runs once. Its operations on the disk are then replayed one by one. For each state that the disk may be left in, a
broker is started and checked. From some states this is repeated with the operations of that start: the second loss of power
then hits a disk under recovery, or a broker that has just begun to serve, with its threads.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.logging import lines_to
from odradek.protocol.errors import KafkaError
from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.checks import Expectation, examine
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.ledger import Written
from tests.campaigns.power_loss.model import DiskModel
from tests.campaigns.power_loss.node import DATA, Unanswered
from tests.campaigns.power_loss.run import Run
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from random import Random

    from tests.campaigns.power_loss.disk import Operation
    from tests.campaigns.power_loss.ledger import Replay
    from tests.campaigns.power_loss.states import Left

# Of every so many states of one kind, one is also worked on with.
_WORKED_ON = 12
_SHOWN = 20
_DRAWN = 2
# The moments of a start at which the power is lost again, and the time that it has.
_AGAIN_AT = 6
_SERVING_MS = 4_000
_SEED = 2_000


class Finding(NamedTuple):
    """A violation, and the parameters that reproduce it."""

    where: str
    violation: Violation | Unanswered


class Tally:
    """``points`` counts the states tried by (fault, operation, loss); ``findings`` has the first violations."""

    def __init__(self) -> None:
        self.points: Counter[tuple[str, str, str]] = Counter()
        self.violations = 0
        self.findings: list[Finding] = []
        # The violation by which each seeded fault was found.
        self.faults: dict[str, str] = {}

    def add(self, other: Tally) -> None:
        self.points += other.points
        self.violations += other.violations
        self.faults |= other.faults
        self.findings += other.findings[: _SHOWN - len(self.findings)]

    def found(self, where: str, violation: Violation | Unanswered) -> None:
        self.violations += 1
        if len(self.findings) < _SHOWN:
            self.findings.append(Finding(where, violation))


class Exploration:
    """The exploration of one workload with one setting of ``log.flush.interval.messages``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        steps: Sequence[Callable[[Run], None]],
        *,
        flush_messages: int | None,
        every_bytes: int = 1,
        name: str = "",
        directories: tuple[str, ...] = (DATA,),
        threads: str | None = None,
    ) -> None:
        """``threads``: see Run."""
        self.tally = Tally()
        self._loop = loop
        self._flush_messages = flush_messages
        self._every_bytes = every_bytes
        self._name = name or f"log.flush.interval.messages={flush_messages}"
        self._run = Run(loop, flush_messages=flush_messages, directories=directories, threads=threads)
        try:
            self._run.go(steps)
        except (Violation, Unanswered) as error:
            self.tally.found(f"{self._name}, {self._run.steps[-1:]}", error)
        finally:
            self._run.node.vanish()
            self._run.disk.let_go()
        self._written = Written()
        self._written.take(self._run.disk.operations)
        self._seen: set[int] = set()
        self._checked: set[int] = set()
        self._boundaries = {position for position, _ in self._run.steps}

    @property
    def operations(self) -> list[Operation]:
        """The workload's."""
        return self._run.disk.operations

    def explore(self, share: range | None = None) -> Tally:
        """Try all states at all operations, or at those whose numbers are in ``share``."""
        model = DiskModel({}, [])
        replay = self._run.ledger.replay()
        for number, operation in enumerate(self.operations):
            is_asked = share is None or number in share
            if is_asked:
                replay.up_to(number)
                for left in states.within(model, operation, every_bytes=self._every_bytes):
                    self._try(left, number, operation, replay)
            model.apply(operation)
            told = replay.version
            replay.up_to(number + 1)
            # A sync that begins changes nothing.
            if not is_asked or (operation.kind == "sync_begin" and replay.version == told):
                continue
            for left in states.after(model, operation):
                self._try(left, number, operation, replay)
            if number + 1 in self._boundaries:
                for left in states.between(model):
                    self._try(left, number, operation, replay)
                self._try_twice(model, number, operation, replay)
        return self.tally

    def explore_by_chance(self, rng: Random, count: int) -> Tally:
        """Try ``count`` states at randomly drawn operations."""
        points = Counter(rng.randrange(len(self.operations)) for _ in range(count))
        for number, operation, model, replay in self._walk():
            for _ in range(points[number]):
                self._try(states.drawn(model, rng), number, operation, replay)
        return self.tally

    def explore_around(self, rng: Random, count: int, *, until_found: bool = False) -> Tally:
        """Try the states after ``count`` randomly drawn operations, and some after each that may have synced a checkpoint."""
        drawn = set(rng.sample(range(len(self.operations)), min(count, len(self.operations))))
        for number, operation, model, replay in self._walk():
            if until_found and self.tally.findings:
                break
            found: Iterable[Left] = ()
            if number in drawn:
                found = [*states.after(model, operation), *(states.drawn(model, rng) for _ in range(_DRAWN))]
            elif operation.kind == "sync_dir" and operation.path in self._run.directories:
                found = states.without_unsynced(model)
            for left in found:
                self._try(left, number, operation, replay)
        return self.tally

    def explore_starts(
        self,
        rng: Random,
        count: int,
        *,
        fault: Callable[[], AbstractContextManager[object]] = nullcontext,
        until_found: bool = False,
    ) -> Tally:
        """Lose the power, or the process, at ``count`` drawn operations, and again while the next process starts with threads.

        ``fault`` is in effect during that start.
        """
        drawn = set(rng.sample(range(len(self.operations)), min(count, len(self.operations))))
        for number, operation, model, replay in self._walk():
            if number in drawn and not (until_found and self.tally.findings):
                first = rng.choice([*list(states.after(model, operation))[:4], states.drawn(model, rng)])
                self._start_on(first, number, operation, replay, rng, fault)
        return self.tally

    def _walk(self) -> Iterator[tuple[int, Operation, DiskModel, Replay]]:
        """Each operation with its number, the disk after it, and what has been promised by then."""
        model = DiskModel({}, [])
        replay = self._run.ledger.replay()
        for number, operation in enumerate(self.operations):
            model.apply(operation)
            replay.up_to(number + 1)
            yield number, operation, model, replay

    def _start_on(
        self,
        left: Left,
        number: int,
        operation: Operation,
        replay: object,
        rng: Random,
        fault: Callable[[], AbstractContextManager[object]],
    ) -> None:
        files = {path: content for path, content in left.state.items() if content is not None}
        directories = [path for path, content in left.state.items() if content is None]
        run = Run(
            self._loop,
            flush_messages=self._flush_messages,
            disk=RecordingDisk(files, directories),
            now_ms=self._run.clock.now_ms(),
            seed=_SEED,
            directories=self._run.directories,
            threads=f"{rng.random()}",
        )
        try:
            with lines_to(run.lines.note), fault():
                run.node.start()
                run.node.load_coordinators()
                run.node.wait(_SERVING_MS)
        except (KafkaError, OSError, Violation, Unanswered) as error:
            self.tally.found(f"{self._where(left, number, operation)}, then a start", error)  # type: ignore[arg-type]
        finally:
            run.node.vanish()
            run.disk.let_go()
        self._lose_again(run, DiskModel(files, directories), left, number, replay, rng)

    def _lose_again(self, run: Run, model: DiskModel, first: Left, number: int, replay: object, rng: Random) -> None:
        operations = run.disk.operations
        drawn = set(rng.sample(range(len(operations)), min(_AGAIN_AT, len(operations))))
        written = deepcopy(self._written)
        written.take(operations)
        for later_number, later in enumerate(operations):
            model.apply(later)
            if later_number not in drawn:
                continue
            for again in (*list(states.after(model, later))[:4], states.drawn(model, rng)):
                left = again._replace(what=f"again, {again.what}", is_kill=first.is_kill and again.is_kill)
                expected = self._expectation(left, replay)
                expected.written, expected.now_ms, expected.checked = written, run.clock.now_ms(), set()
                self._try(left, number, later, replay, expected)

    def _try(
        self, left: Left, number: int, operation: Operation, replay: object, expected: Expectation | None = None
    ) -> Run | None:
        """Check one state, unless it was checked with the same promises before."""
        version = replay.version  # type: ignore[attr-defined]
        identity = hash((frozenset(left.state.items()), version, left.is_kill))
        if identity in self._seen:
            return None
        self._seen.add(identity)
        fault = "kill" if left.is_kill else "power loss"
        kind = fault, operation.kind, left.what
        self.tally.points[kind] += 1
        expected = expected or self._expectation(left, replay)
        goes_on = left.what != "torn" and self.tally.points[kind] % _WORKED_ON == 1
        try:
            return examine(self._loop, left.state, expected, goes_on=goes_on)
        except Violation as violation:
            self.tally.found(self._where(left, number, operation), violation)
            return None

    def _expectation(self, left: Left, replay: object) -> Expectation:
        return Expectation(
            replay.promises,  # type: ignore[attr-defined]
            self._written,
            after_power_loss=not left.is_kill,
            flush_messages=self._flush_messages,
            directories=self._run.directories,
            now_ms=self._run.clock.now_ms(),
            checked=self._checked,
        )

    def _where(self, left: Left, number: int, operation: Operation) -> str:
        step = [name for position, name in self._run.steps if position <= number][-1:]
        return f"{self._name}, operation {number} ({operation.kind} {operation.path}) of {step}, {left.what}"

    def _try_twice(self, model: DiskModel, number: int, operation: Operation, replay: object) -> None:
        """Leave the disk as after the loss of power, and interrupt the following start as well."""
        for left in list(states.after(model, operation))[:4]:
            expected = self._expectation(left, replay)
            try:
                first = examine(self._loop, left.state, expected, goes_on=False)
            except Violation as violation:
                self.tally.found(self._where(left, number, operation), violation)
                continue
            files = {path: content for path, content in left.state.items() if content is not None}
            second = DiskModel(files, [path for path, content in left.state.items() if content is None])
            for later in first.disk.operations:
                second.apply(later)
                for again in list(states.after(second, later))[:4]:
                    self._try(again._replace(what=f"again, {again.what}", is_kill=left.is_kill), number, later, replay)
