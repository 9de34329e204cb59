"""An event loop whose time is virtual: it moves to what is due next when nothing is left to do now.

It runs what all processes of a simulated world do. Each process has a context (``contextvars``), and what runs in it belongs to
the process: its callbacks, tasks and timers wait while the process is paused. Connections are those of a simulated network, which
is asked by ``create_connection`` and ``create_server``, so that brokers and clients run as they are.

Nothing depends on the machine's time, and callbacks run in the order in which they were asked for. Left out: signals, threads,
subprocesses, descriptors.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.timing.timer import Timer

# More callbacks than anything takes that comes to an end, without time passing.
_MOST_WITHOUT_TIME = 200_000


class Process:
    """A process of the simulated world: ``host`` is where it runs. ``context`` is that of all that it does."""

    def __init__(self, loop: VirtualLoop, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_paused = False
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.context = copy_context()
        self.context.run(PROCESS.set, self)
        self._loop = loop
        self._held: list[Handle] = []

    def run(self, action: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``action`` as this process, from outside of any."""
        return self.context.run(action, *arguments)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin a task of this process."""
        task: asyncio.Task[Any] = self.context.run(self._loop.create_task, work)
        return task

    def hold(self, handle: Handle) -> None:
        """Keep it until the process goes on."""
        self._held.append(handle)

    def pause(self) -> None:
        """Do nothing until ``resume``; time goes on."""
        self.is_paused = True

    def resume(self) -> None:
        """Do what has become due meanwhile."""
        self.is_paused = False
        held, self._held = self._held, []
        self._loop.ready.extend(held)

    def cancel_tasks(self) -> None:
        """End all tasks: the process is gone."""
        for task in list(self.tasks):
            task.cancel()


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class Network(Protocol):
    """Where connections come from."""

    async def connect(self, make_protocol: Callable[[], asyncio.BufferedProtocol], host: str, port: int) -> tuple[Any, Any]:
        """A transport and its protocol. Raises OSError."""

    def listen(self, make_protocol: Callable[[], asyncio.BufferedProtocol], host: str, port: int) -> Any:
        """A server that does not accept connections yet. Raises OSError."""


class Handle:
    """A callback that may be cancelled."""

    __slots__ = ("args", "callback", "context")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...], context: Context) -> None:
        self.callback: Callable[..., Any] | None = callback
        self.args = args
        self.context = context

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def cancelled(self) -> bool:
        return self.callback is None


class _Attached:
    """A timer that the loop runs: its process, the context in which it was made, and the callback that is to run it next."""

    __slots__ = ("context", "handle", "process", "timer")

    def __init__(self, timer: Timer, process: Process | None, context: Context) -> None:
        self.timer = timer
        self.process = process
        self.context = context
        self.handle: Handle | None = None

    def disarm(self) -> None:
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None


class VirtualLoop(asyncio.AbstractEventLoop):
    """``now_ms`` is the time. ``failures`` are the errors that callbacks ended with."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.ready: deque[Handle] = deque()
        self.network: Network | None = None
        self.failures: list[tuple[str, BaseException]] = []
        self._scheduled: list[tuple[float, int, Handle]] = []
        self._count = 0
        self._timers: dict[Timer, _Attached] = {}
        self._is_closed = False
        # What belongs to no process.
        self._nobody = Context()

    # ------------------------------------------------------------------------------------------------------ running the world

    def run_until(self, is_over: Callable[[], bool], end_ms: float) -> bool:
        """Run until ``is_over``, which is asked whenever time has passed, or until ``end_ms``; whether it is over."""
        asyncio._set_running_loop(self)
        try:
            while True:
                self._run_ready()
                if self.failures:
                    raise self.failures[0][1]
                if is_over():
                    return True
                due_ms = self._next_ms()
                if due_ms > end_ms:
                    self.now_ms = end_ms
                    return False
                self.now_ms = max(self.now_ms, due_ms)
                self._run_due()
        finally:
            asyncio._set_running_loop(None)

    def _run_ready(self) -> None:
        ready = self.ready
        left = _MOST_WITHOUT_TIME
        while ready:
            handle = ready.popleft()
            callback = handle.callback
            if callback is None:
                continue
            process = handle.context.get(PROCESS)
            if process is not None and process.is_paused:
                process.hold(handle)
                continue
            left -= 1
            if not left:
                raise AssertionError(f"too much happens without time passing: {callback} of {process and process.name}")
            try:
                handle.context.run(callback, *handle.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  told when the turn is over
                self.failures.append(("a callback", error))

    def _next_ms(self) -> float:
        scheduled = self._scheduled
        while scheduled and scheduled[0][2].callback is None:
            heappop(scheduled)
        return scheduled[0][0] if scheduled else float("inf")

    def _run_due(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][0] <= self.now_ms:
            self.ready.append(heappop(scheduled)[2])

    def attach(self, timer: Timer) -> None:
        """Run ``timer`` as time passes, as what the present process does."""
        attached = self._timers[timer] = _Attached(timer, PROCESS.get(), copy_context())
        timer.on_earlier_deadline = partial(self._arm, attached)

    def detach(self, timer: Timer) -> None:
        """Run it no more."""
        self._forget(self._timers.pop(timer, None))

    def forget(self, process: Process) -> None:
        """Run no timer of ``process`` any more."""
        for attached in [attached for attached in self._timers.values() if attached.process is process]:
            self._forget(self._timers.pop(attached.timer))

    def _forget(self, attached: _Attached | None) -> None:
        if attached is not None:
            attached.timer.on_earlier_deadline = None
            attached.disarm()

    def _arm(self, attached: _Attached, deadline_ms: float) -> None:
        attached.disarm()
        handle = attached.handle = Handle(self._fire, (attached,), attached.context)
        heappush(self._scheduled, (deadline_ms, self._count, handle))
        self._count += 1

    def _fire(self, attached: _Attached) -> None:
        attached.handle = None
        attached.timer.advance()
        deadline_ms = attached.timer.next_deadline_ms()
        if deadline_ms is not None and attached.timer in self._timers:
            self._arm(attached, deadline_ms)

    def at_ms(self, when_ms: float, callback: Callable[..., Any], *args: Any) -> Handle:
        """Call back at a time, as no process."""
        handle = Handle(callback, args, self._nobody)
        heappush(self._scheduled, (when_ms, self._count, handle))
        self._count += 1
        return handle

    # -------------------------------------------------------------------------------------------------------- asyncio's interface

    def time(self) -> float:
        """In seconds."""
        return self.now_ms / 1000

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Handle:  # type: ignore[override]
        """Part of AbstractEventLoop."""
        handle = Handle(callback, args, context or copy_context())
        self.ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Any:
        return self.call_at(self.now_ms / 1000 + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Any:
        handle = Handle(callback, args, context or copy_context())
        heappush(self._scheduled, (when * 1000, self._count, handle))
        self._count += 1
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name or "", context=context)
        process = PROCESS.get()
        if process is not None:
            process.tasks[task] = None
            task.add_done_callback(lambda done: process.tasks.pop(done, None))
            if process.is_dead:
                task.cancel()
        return task

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        """Part of AbstractEventLoop."""
        assert self.network is not None
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        """Part of AbstractEventLoop."""
        assert self.network is not None
        return self.network.listen(protocol_factory, host, port)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Part of AbstractEventLoop. Tasks of processes that were killed are never asked how they ended."""

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._is_closed

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Part of AbstractEventLoop: what waits is dropped."""
        self._is_closed = True
        self.ready.clear()
        self._scheduled.clear()
        self._timers.clear()


class ProcessClock:
    """The clock of one machine. Part of ``Clock``: the loop runs its timers."""

    passes_by_itself = False

    def __init__(self, loop: VirtualLoop, wall_ms: int) -> None:
        self._loop = loop
        self._wall_ms = wall_ms

    def now_ms(self) -> int:
        return self._wall_ms + int(self._loop.now_ms)

    def monotonic_ms(self) -> float:
        return self._loop.now_ms

    def machine_ms(self, duration_ms: float) -> float:
        """Part of Clock: it is moved."""
        return float("inf")

    def attach(self, timer: Timer) -> None:
        self._loop.attach(timer)

    def detach(self, timer: Timer) -> None:
        self._loop.detach(timer)
