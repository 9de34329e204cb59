"""A disk that fails (EIO) or is full (ENOSPC), at each operation of a workload in turn: once, or from then on.

The workload continues, and impossible operations are refused. After a disk was full for a while, everything must work again.
Then the broker is killed, or the power is lost, and the disk is repaired. Everything that was acknowledged in spite of the
fault must be there; after a failed sync nothing unsynced may have been acknowledged.
"""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.logging import lines_to
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.campaigns.power_loss import overlapping, workload
from tests.campaigns.power_loss.checks import Expectation, examine
from tests.campaigns.power_loss.clients import Producer, plain, produce
from tests.campaigns.power_loss.disk import Fault, Operation
from tests.campaigns.power_loss.explore import Tally
from tests.campaigns.power_loss.ledger import Written
from tests.campaigns.power_loss.log_checks import check_log
from tests.campaigns.power_loss.model import DiskModel
from tests.campaigns.power_loss.node import Unanswered
from tests.campaigns.power_loss.run import Run
from tests.campaigns.power_loss.states import after
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

STEPS: list[Callable[[Run], None]] = [
    workload.create_topics,
    workload.produce_a_little,
    workload.commit_offsets,
    workload.commit_a_transaction,
    workload.wait_for_checkpoints,
    workload.abort_a_transaction,
    workload.produce_idempotently,
    workload.produce_a_little,
    workload.wait_for_checkpoints,
]
# Operations that need free space.
_GROWING = ("append", "create", "make_dir")
# A temporarily full disk refuses this many of these operations.
_FULL_FOR = 12
_WORKED_ON = 8
_DRAWN_OPERATIONS = 900
_SERVES = "a disk that has room again serves"


class Trouble(NamedTuple):
    """``errno`` at an operation, from then on if ``is_lasting``, else once."""

    errno: int
    is_lasting: bool

    @property
    def name(self) -> str:
        return f"{errno.errorcode[self.errno]} {'lasting' if self.is_lasting else 'once'}"


TROUBLES = tuple(Trouble(code, is_lasting) for code in (errno.EIO, errno.ENOSPC) for is_lasting in (False, True))


class _Injector:
    """The disk's ``fault``. ``operation`` is the first one that failed."""

    def __init__(self, trouble: Trouble, number: int) -> None:
        self.operation: Operation | None = None
        self._trouble = trouble
        self._left = number
        self._failed = 0

    def __call__(self, operation: Operation) -> Fault | None:
        if self._trouble.errno == errno.ENOSPC and operation.kind not in _GROWING:
            return None
        if self._left:
            self._left -= 1
            return None
        if self._failed >= self._most:
            return None
        self._failed += 1
        self.operation = self.operation or operation
        return Fault(self._trouble.errno, len(operation.data) // 2)

    @property
    def _most(self) -> float:
        if not self._trouble.is_lasting:
            return 1
        return _FULL_FOR if self._trouble.errno == errno.ENOSPC else float("inf")


class _Attempt(NamedTuple):
    """``trouble`` at the operation with this ``number``, of those it may hit. ``threads``: see Run."""

    flush_messages: int | None
    trouble: Trouble
    number: int
    steps: Sequence[Callable[[Run], None]]
    threads: str | None = None

    def __str__(self) -> str:
        threads = "" if self.threads is None else f", threads {self.threads}"
        return f"log.flush.interval.messages={self.flush_messages}, {self.trouble.name} at operation {self.number}{threads}"


def explore_faults(
    loop: asyncio.AbstractEventLoop, flush_messages: int | None, troubles: Iterable[Trouble], share: range
) -> Tally:
    """Try each of ``troubles`` at each existing operation whose number is in ``share``."""
    tally = Tally()
    for trouble in troubles:
        for number in share:
            if not _try(loop, _Attempt(flush_messages, trouble, number, STEPS), tally):
                break
    return tally


def explore_faults_with_threads(loop: asyncio.AbstractEventLoop, flush_messages: int | None, seeds: Iterable[str]) -> Tally:
    """Try a drawn trouble at a drawn operation of each of these workloads with threads."""
    tally = Tally()
    for seed in seeds:
        rng = Random(f"{seed}-trouble")
        trouble, number = rng.choice(TROUBLES), rng.randrange(_DRAWN_OPERATIONS)
        _try(loop, _Attempt(flush_messages, trouble, number, overlapping.draw_steps(rng, 1), seed), tally)
    return tally


def _try(loop: asyncio.AbstractEventLoop, attempt: _Attempt, tally: Tally) -> bool:
    """Try one trouble; returns whether the workload has such an operation."""
    trouble, flush_messages = attempt.trouble, attempt.flush_messages
    injector = _Injector(trouble, attempt.number)
    run = Run(loop, flush_messages=flush_messages, threads=attempt.threads)
    try:
        with lines_to(run.lines.note):
            run.node.start()
            run.disk.fault = injector
            _work(run, attempt)
    except Violation as violation:
        tally.found(f"{attempt}, {injector.operation}", violation)
    finally:
        run.node.vanish()
        run.disk.let_go()
    if injector.operation is None:
        return False
    name = trouble.name if attempt.threads is None else f"{trouble.name}, with threads"
    tally.points[name, injector.operation.kind, "and going on"] += 1
    written = Written()
    written.take(run.disk.operations)
    model = DiskModel({}, [])
    for operation in run.disk.operations:
        model.apply(operation)
    for left in list(after(model, Operation("none", "")))[:4]:
        expected = Expectation(
            run.ledger.promises,
            written,
            after_power_loss=not left.is_kill,
            flush_messages=flush_messages,
            now_ms=run.clock.now_ms(),
            checked=set(),
        )
        tally.points[name, injector.operation.kind, f"then {left.what}"] += 1
        try:
            examine(loop, left.state, expected, goes_on=attempt.number % _WORKED_ON == 0)
        except Violation as violation:
            tally.found(f"{attempt}, {injector.operation}, then {left.what}", violation)
    return True


def _work(run: Run, attempt: _Attempt) -> None:
    """Run the steps, and check the served data at the end."""
    try:
        for step in attempt.steps:
            step(run)
        run.disk.fault = None
        for partition in run.node.partitions():
            if partition.log is not None and not partition.log.has_lost_sync:
                check_log(partition.log, None)
        if attempt.trouble.errno == errno.ENOSPC:
            _work_as_ever(run)
    except (KafkaError, OSError, Unanswered) as error:
        raise Violation("each request is answered", f"{type(error).__name__} {error}") from error


def _work_as_ever(run: Run) -> None:
    """Check that no effect of the fault is left."""
    # A partition that could not be created is offline until the next start.
    there = [partition for partition in run.node.partitions() if partition.log is not None]
    names = [(partition.topic, partition.index) for partition in there if not partition.topic.startswith("__")]
    if not names:
        return
    codes = run.do(produce(run, {name: plain(run, run.new_value(), key=b"k") for name in names}))
    producer = Producer(run, "afterwards")
    is_good = len(there) < len(run.node.partitions()) or (
        run.do(producer.begin())
        and run.do(producer.send({name: [run.new_value()] for name in names[:2]}))
        and run.do(producer.end(commit=True))
    )
    is_offline = [name for name, code in codes.items() if code != ErrorCode.NONE]
    if is_offline or not is_good:
        raise Violation(
            _SERVES, f"refused are {is_offline}, and transactions {'go on' if is_good else 'do not'}: {run.lines.texts()}"
        )
