"""A broker in this process, without listeners: asked by a message or by bytes, stopped, killed, and restarted on its disk.

Its time is the machine's, or that of a ``VirtualClock``, which stands still until it is moved. Its long disk work runs in
threads, at once on the loop ("inline"), or in steps whose order the seed draws ("seeded"). With a virtual clock, a disk in
memory, no threads and a seed, the same requests leave the same bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self
from weakref import WeakSet

from odradek.broker.start.server import Broker as BrokerCore
from odradek.broker.start.server import BrokerOptions
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config.broker_config import load
from odradek.common.context import ANONYMOUS
from odradek.common.logging import lines_to
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.storage.filesystem import RealFileSystem
from odradek.testing.asking import Answer, Unanswered, ask_core, ask_core_bytes
from odradek.testing.disk import MemoryDisk
from odradek.testing.misuse import CompletedCall, checked_choice, checked_directory
from odradek.testing.severed import SeverableFileSystem
from odradek.timing.background import Background, InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.seeded_background import SeededBackground
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from odradek.broker.network.gate import Gate
    from odradek.broker.telemetry.received import Push
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.protocol.api_keys import ApiKey
    from odradek.storage.filesystem import FileSystem
    from odradek.timing.clock import Clock

__tracebackhide__ = True

MEMORY_DIRECTORY = "/data"
_KEPT_LINES = 10_000
KEPT_PUSHES = 1_000
# The field of a log line that has an exception (``common.logging``).
_EXCEPTION = "exc_info"
# Turns of the loop for all work that needs no time to pass. Loading a coordinator takes fewer.
_TURNS = 1_000
_TURNS_A_STEP = 3
_STEP_MS = 1


class NotRunning(RuntimeError):
    """A broker that does not run was asked for something."""


class LogLine(NamedTuple):
    """A line of the broker's log; ``level`` is "info", "warning" or "error", ``at_ms`` the broker's time."""

    level: str
    event: str
    fields: Mapping[str, object]
    at_ms: int = 0

    def __str__(self) -> str:
        fields = {name: value for name, value in self.fields.items() if name != _EXCEPTION}
        error = self.fields.get(_EXCEPTION)
        text = " ".join([f"{self.level}: {self.event}", *(f"{name}={value}" for name, value in fields.items())])
        return f"{text}\n{''.join(format_exception(error))}".rstrip() if isinstance(error, BaseException) else text


class InProcessBroker:
    """One broker across restarts.

    ``core`` is the running process, ``lines`` are the last lines of its log. ``disk`` holds its data: a ``MemoryDisk``, unless
    a directory or another file system is given.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        configs: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        background: Literal["threads", "inline", "seeded"] | None = None,
        file_system: FileSystem | None = None,
        seed: int | None = None,
        on_line: Callable[[LogLine], object] | None = None,
    ) -> None:
        """Make the broker. ``background`` defaults to "seeded" with a virtual clock, otherwise to "threads"."""
        self.clock: Clock = clock or SystemClock()
        self.disk: FileSystem = file_system or (MemoryDisk() if directory is None else RealFileSystem())
        self.lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        if background is not None:
            checked_choice("background", background, ("threads", "inline", "seeded"))
        self._directory = checked_directory(directory) or MEMORY_DIRECTORY
        self._configs = dict(configs or {})
        self._background = background or ("threads" if self.clock.passes_by_itself else "seeded")
        self._random = Random() if seed is None else Random(seed)  # noqa: S311  ids are no secrets
        self._on_line = on_line
        self._core: BrokerCore | None = None
        self._severable = SeverableFileSystem(self.disk)
        self._open_answers: WeakSet[Answer] = WeakSet()
        self._gates: list[Gate] = []
        # Pushes of client metrics, in order, across restarts.
        self.client_pushes: deque[Push] = deque(maxlen=KEPT_PUSHES)

    @property
    def core(self) -> BrokerCore:
        """Return the running process. Raises RuntimeError if there is none."""
        if self._core is None:
            raise NotRunning("the broker is not running: call start() first")
        return self._core

    @property
    def is_running(self) -> bool:
        """Return whether the broker was started, and neither stopped nor killed since."""
        return self._core is not None

    async def start(self) -> None:
        """Start a process on the content of the disk. Raises the errors of ``Broker.start`` of ``odradek.broker.start``."""
        self.start_now()

    def start_now(self) -> None:
        """Do the same from within a callback of the running loop."""
        if self._core is not None:
            raise RuntimeError("the broker is already running")
        self._severable = SeverableFileSystem(self.disk)
        with lines_to(self._note):
            try:
                self._core = BrokerCore.start(self._shared_server(self._config()), self._options())
            except BaseException:
                self._severable.sever()
                raise

    async def stop(self) -> None:
        """Stop in good order: answer waiting requests, flush, mark the stop as clean. Needs no time to pass."""
        core, self._core = self.core, None
        with lines_to(self._note):
            await core.stop()
            # Completed answers are sent in this turn.
            await asyncio.sleep(0)
        self._forget_answers()

    def kill(self) -> CompletedCall:
        """End the process as kill -9 does: the disk keeps the written bytes, requests are not answered."""
        core, self._core = self.core, None
        self._severable.sever()
        with lines_to(_nobody):
            self._abandon(core)
        self._forget_answers()
        return CompletedCall()

    def lose_power(self, *, keep_some: bool = False) -> CompletedCall:
        """Lose power: a disk in memory keeps the synced bytes only; with ``keep_some``, also a drawn part of the rest."""
        disk = self.disk
        if not isinstance(disk, MemoryDisk):
            raise TypeError("only a broker in memory can lose power: make it without a directory")
        self.kill()
        self.disk = disk.after_power_loss(self._new_random() if keep_some else None)
        return CompletedCall()

    def add_gate(self, gate: Gate, *, first: bool = False) -> None:
        """Have ``gate`` asked about each request, also after restarts; as the last gate, or as the ``first``."""
        self._gates.insert(0 if first else len(self._gates), gate)
        if self._core is not None:
            self._core.dispatcher.add_gate(gate, first=first)

    def remove_gate(self, gate: Gate) -> None:
        """Remove ``gate``."""
        self._gates = [each for each in self._gates if each is not gate]
        if self._core is not None:
            self._core.dispatcher.remove_gate(gate)

    def noting(self) -> AbstractContextManager[None]:
        """Return a context manager that sends log output to ``lines``."""
        return lines_to(self._note)

    def send(
        self,
        api_key: ApiKey,
        request: Any,
        version: int,
        *,
        client_id: str | None = "client",
        principal: str = ANONYMOUS,
    ) -> Answer:
        """Put a request, a message of ``odradek.protocol.messages``. Return its answer, which may have to wait.

        ``principal`` is the client's principal for an authorizer.
        """
        with lines_to(self._note):
            return self._opened(ask_core(self.core, api_key, version, client_id, request, principal))

    def send_bytes(self, frame: bytes, *, principal: str = ANONYMOUS) -> Answer:
        """Put a frame. Frame and response come without their length; the response is None if none is due."""
        with lines_to(self._note):
            return self._opened(ask_core_bytes(self.core, frame, principal))

    async def ask(
        self,
        api_key: ApiKey,
        request: Any,
        version: int,
        *,
        client_id: str | None = "client",
        principal: str = ANONYMOUS,
        within_ms: int = 0,
    ) -> Any:
        """Return the response to a request. Raises Unanswered if there is none ``within_ms`` of the broker's clock.

        A virtual clock is moved as far as needed.
        """
        return await self.wait(self.send(api_key, request, version, client_id=client_id, principal=principal), within_ms)

    async def ask_bytes(self, frame: bytes, *, principal: str = ANONYMOUS, within_ms: int = 0) -> bytes | None:
        """Return the response to a frame, both without their length. See ``ask``."""
        response: bytes | None = await self.wait(self.send_bytes(frame, principal=principal), within_ms)
        return response

    async def wait(self, answer: Answer, within_ms: int = 0) -> Any:
        """Return the response of ``answer``. See ``ask``."""
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            try:
                async with asyncio.timeout(within_ms / 1000 if within_ms else None):
                    return await answer
            except TimeoutError as error:
                raise Unanswered(f"no answer within {within_ms} ms") from error
        await self._turn(lambda: answer.done, _TURNS)
        end_ms = clock.monotonic_ms() + within_ms
        while not answer.done and clock.monotonic_ms() < end_ms:
            self._move(clock, _STEP_MS)
            await self._turn(lambda: answer.done, _TURNS_A_STEP)
        if not answer.done and self._core is not None:
            await self._core.background.finish()
            await self._turn(lambda: answer.done, _TURNS)
        if not answer.done:
            raise Unanswered(f"no answer within {within_ms} ms")
        return answer.response

    async def advance(self, duration_ms: int) -> None:
        """Let time pass on a virtual clock: deadline by deadline, with turns of the loop after each."""
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("only a VirtualClock can be advanced: use SocketlessBroker(clock=VirtualClock())")
        end_ms = clock.monotonic_ms() + duration_ms
        while (left_ms := end_ms - clock.monotonic_ms()) > 0:
            due_ms = None if self._core is None else self._core.timer.next_deadline_ms()
            step_ms = left_ms if due_ms is None else min(left_ms, max(due_ms - clock.monotonic_ms(), _STEP_MS))
            self._move(clock, int(step_ms))
            await self._turn(lambda: False, _TURNS_A_STEP)

    async def settle(self) -> None:
        """Let the broker do all work that needs no time to pass, including its coordinators' loading and its disk work."""
        await self._turn(self._has_loaded, _TURNS)
        await self.core.background.finish()
        await self._turn(lambda: False, _TURNS_A_STEP)

    def _abandon(self, core: BrokerCore) -> None:
        core.abandon()

    def _config(self, **settings: str) -> BrokerConfig:
        return load(overrides={"log.dirs": self._directory, **self._configs, **settings})

    def _shared_server(self, config: BrokerConfig) -> SharedServer:
        """Begin a new process."""
        return SharedServer(
            config,
            clock=self.clock,
            background=self._new_background(),
            file_system=self._severable,
            random=self._new_random(),
        )

    def _options(self) -> BrokerOptions:
        return BrokerOptions(gates=tuple(self._gates), on_client_push=self.client_pushes.append)

    def _has_loaded(self) -> bool:
        core = self.core
        return all(
            topic not in core.controller.image.topics or (coordinator.has_runtime and not coordinator.runtime.is_loading)
            for topic, coordinator in (
                (CONSUMER_OFFSETS_TOPIC, core.groups),
                (TRANSACTION_STATE_TOPIC, core.transactions),
                (SHARE_GROUP_STATE_TOPIC, core.shares),
            )
        )

    def _move(self, clock: VirtualClock, duration_ms: int) -> None:
        with lines_to(self._note):
            clock.advance(duration_ms)

    async def _turn(self, is_over: Callable[[], bool], turns: int) -> None:
        """Run turns of the loop until ``is_over``, at most ``turns``. No time passes, but due timers fire."""
        clock = self.clock
        for _ in range(turns):
            if is_over():
                return
            await asyncio.sleep(0)
            if isinstance(clock, VirtualClock):
                self._move(clock, 0)

    def _opened(self, answer: Answer) -> Answer:
        if not answer.done:
            self._open_answers.add(answer)
        return answer

    def _forget_answers(self) -> None:
        for answer in list(self._open_answers):
            answer.fail(ConnectionResetError("the broker has ended"))
        self._open_answers.clear()

    def _new_random(self) -> Random:
        return Random(self._random.getrandbits(64))  # noqa: S311  ids are no secrets

    def _new_background(self) -> Background:
        match self._background:
            case "inline":
                return InlineBackground()
            case "seeded":
                return SeededBackground(self._new_random())
            case _:
                return ThreadedBackground()

    def _note(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        line = LogLine(level, event, fields, self.clock.now_ms())
        self.lines.append(line)
        if self._on_line is not None:
            self._on_line(line)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.is_running:
            await self.stop()


def _nobody(level: str, event: str, fields: Mapping[str, object]) -> None:
    """Drop the log lines of a killed process."""
