"""Long disk work whose interleaving is decided by a seed: the same seed gives the same history.

In each turn of the loop the seed decides how many steps are made, and by which works. A work has two steps: it runs, and its
outcome is delivered. Long work has one more step for each checkpoint, rest and call of ``on_loop``. Long work runs on a
thread, because plain code cannot be suspended otherwise. The loop waits while that thread runs to its next step, so no two
threads ever run at the same time.

With ``is_fine`` every work runs on such a thread, and has a step for each call of ``pause``. A simulated disk calls ``pause``
around its operations, so the seed also decides the order of disk operations of threads and of the loop.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.timing.background import WorkAbandoned, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from odradek.timing.background import Beside

T = TypeVar("T")

# The probability of a further step in the same turn of the loop.
_STEP_CHANCE = 0.5


class SeededBackground:
    """A ``Background`` whose order a seed decides. ``call_soon`` replaces the running loop's."""

    def __init__(
        self,
        random: Random,
        call_soon: Callable[[Callable[[], None]], object] | None = None,
        *,
        is_fine: bool = False,
        step_chance: float = _STEP_CHANCE,
    ) -> None:
        """``step_chance``, below 1, is the probability of a further step in the same turn of the loop: how fast threads are."""
        self._random = random
        self._call_soon = call_soon
        self._is_fine = is_fine
        self._step_chance = step_chance
        self._works: list[_Work] = []
        self._is_scheduled = False
        self._is_abandoned = False

    @property
    def is_idle(self) -> bool:
        """Return whether no work is in progress, and every outcome is delivered."""
        return not self._works

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        """See Background."""
        self._add(_Strand(lambda _: work(), then, name) if self._is_fine else _ShortWork(work, then))

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> _Strand:
        """See Background."""
        strand = _Strand(work, then, name)
        self._add(strand)
        return strand

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:  # noqa: ARG002
        """Call ``action`` with each item, in an order that the seed decides."""
        drawn = list(items)
        self._random.shuffle(drawn)
        for item in drawn:
            action(item)

    async def settle(self) -> None:
        """See Background."""
        await self.finish()

    async def finish(self) -> None:
        """See Background."""
        while self._works:
            self._step()
            await asyncio.sleep(0)

    def pause(self) -> None:
        """Let others run. A work pauses until its next step; while the loop pauses, works make steps."""
        strand = _THREAD.strand
        if strand is not None:
            strand.checkpoint()
            return
        while self._random.random() < self._step_chance:
            ready = [work for work in self._works if work.can_go_on]
            if not ready:
                return
            self._random.choice(ready).step()

    def abandon(self) -> None:
        """See Background."""
        self._is_abandoned = True
        works, self._works = self._works, []
        for work in works:
            work.abandon()

    def _add(self, work: _Work) -> None:
        if not self._is_abandoned:
            self._works.append(work)
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            (self._call_soon or asyncio.get_running_loop().call_soon)(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        while self._works and self._random.random() < self._step_chance:
            self._step()
        if self._works:
            self._schedule()

    def _step(self) -> None:
        work = self._random.choice(self._works)
        if work.outcome is None:
            work.step()
        else:
            self._works.remove(work)
            work.then(work.outcome)


class _Work(ABC):
    def __init__(self, then: Callable[[Future[Any]], object]) -> None:
        self.then = then
        self.outcome: Future[Any] | None = None

    @property
    def can_go_on(self) -> bool:
        """Return whether the next step needs no action of the loop."""
        return self.outcome is None

    @abstractmethod
    def step(self) -> None:
        """Make the next step; ``outcome`` is set after the last one."""

    @abstractmethod
    def abandon(self) -> None:
        """Make no further steps."""


class _ShortWork(_Work):
    def __init__(self, work: Callable[[], Any], then: Callable[[Future[Any]], object]) -> None:
        super().__init__(then)
        self._work = work

    def step(self) -> None:
        self.outcome = outcome_of(self._work)

    def abandon(self) -> None:
        pass


class _Strand(_Work):
    """Long work on a thread that runs only within ``step``. It implements Beside and LongWork."""

    def __init__(self, work: Callable[[Any], Any], then: Callable[[Future[Any]], object], name: str) -> None:
        super().__init__(then)
        self.is_cancelled = False
        self._work = work
        self._may_run = threading.Semaphore(0)
        self._has_paused = threading.Semaphore(0)
        self._asked: Callable[[], Any] | None = None
        self._is_answering = False
        self._answer: Future[Any] | None = None
        self._ended: Future[Any] | None = None
        self._is_abandoned = False
        self._thread = threading.Thread(target=copy_context().run, args=(self._main,), name=name, daemon=True)

    @property
    def can_go_on(self) -> bool:
        return self.outcome is None and self._asked is None and not self._is_answering

    def cancel(self) -> None:
        self.is_cancelled = True

    def step(self) -> None:
        if self._asked is not None:
            asked, self._asked = self._asked, None
            self._is_answering = True
            self._answer = outcome_of(asked)
            self._is_answering = False
            return
        self._resume()
        if self._ended is not None:
            self._thread.join()
            self.outcome = self._ended
            failure = self.outcome.exception()
            if failure is not None and not isinstance(failure, Exception):
                raise failure

    def abandon(self) -> None:
        self._is_abandoned = True
        if self._thread.is_alive():
            self._resume()
            self._thread.join()

    def on_loop(self, action: Callable[[], T]) -> T:
        self._asked = action
        self._pause()
        answer = self._answer
        if answer is None:
            raise RuntimeError("resumed without an answer")
        result: T = answer.result()
        return result

    def checkpoint(self) -> None:
        self._pause()

    def rest(self, duration_ms: float) -> None:  # noqa: ARG002  only the clock lets time pass
        self._pause()

    def _resume(self) -> None:
        """Let the thread run to its next pause, or to its end. Called by the loop."""
        if not self._thread.is_alive():
            self._thread.start()
        self._may_run.release()
        self._has_paused.acquire()

    def _pause(self) -> None:
        """Pause until the next step. Called by the work's thread."""
        if not self._is_abandoned:
            self._has_paused.release()
            self._may_run.acquire()
        if self._is_abandoned:
            raise WorkAbandoned

    def _main(self) -> None:
        _THREAD.strand = self
        self._may_run.acquire()
        ended: Future[Any] = Future()
        try:
            ended.set_result(self._work(self))
        except BaseException as error:  # noqa: BLE001  raised where the outcome is read
            ended.set_exception(error)
        self._ended = ended
        self._has_paused.release()


class _Thread(threading.local):
    """The work of the present thread; None on the loop's thread."""

    strand: _Strand | None = None


_THREAD = _Thread()
