"""A broker on a disk of ours: the real one, under a virtual clock, asked by calls of its handlers instead of through sockets.

It has no listeners.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.broker.api import load_handler
from odradek.broker.start.server import Broker
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load
from odradek.common.context import RequestContext, Session
from odradek.coordinator.runtime.states import ShardState
from odradek.timing.background import InlineBackground
from odradek.timing.seeded_background import SeededBackground
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.replica.partition import Partition
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.protocol.api_keys import ApiKey
    from odradek.storage.filesystem import FileSystem
    from odradek.timing.background import Background
    from odradek.timing.clock import VirtualClock
    from odradek.timing.reply import Reply

DATA = "/data"
TWO_DIRECTORIES = (DATA, "/more")
SEGMENT_BYTES = 700
INDEX_INTERVAL_BYTES = 100
TRANSACTION_TIMEOUT_MS = 1_000
CHECKPOINT_INTERVAL_MS = 3_000
_ABORT_INTERVAL_MS = 500
_STEP_MS = 100
_MOST_TURNS = 2_000
# Threads take a step in a turn by chance: a slow one in one of ten.
_TURNS_A_STEP = 10


@cache
def _config(flush_messages: int | None, directories: tuple[str, ...], *, has_threads: bool) -> BrokerConfig:
    settings = {
        "log.dirs": ",".join(directories),
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(_ABORT_INTERVAL_MS),
        "log.flush.scheduler.interval.ms": "500",
        "log.flush.offset.checkpoint.interval.ms": str(CHECKPOINT_INTERVAL_MS),
        "log.flush.start.offset.checkpoint.interval.ms": str(CHECKPOINT_INTERVAL_MS),
        "log.segment.delete.delay.ms": "1000",
        "log.initial.task.delay.ms": "0",
        "log.flush.interval.ms": str(2**62),
    }
    if has_threads:
        # So that they overlap with much else.
        settings |= {"log.flush.scheduler.interval.ms": "20", "metadata.log.max.record.bytes.between.snapshots": "1000"}
    if flush_messages is not None:
        settings["log.flush.interval.messages"] = str(flush_messages)
    return load(overrides=settings)


class Lines:
    """The broker's log: ``events`` are (level, event, fields)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Mapping[str, Any]]] = []

    def note(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        """What ``lines_to`` calls."""
        self.events.append((level, event, fields))

    def texts(self) -> list[str]:
        """What a person would read of warnings and errors."""
        return [f"{event} {fields}" for level, event, fields in self.events if level != "info"]


class Unanswered(Exception):
    """A request that is not answered, however long one waits."""


class Question(NamedTuple):
    """A request of a client."""

    api_key: ApiKey
    version: int
    request: Any


class Node:
    """One process of the broker, with ``directories`` for its logs.

    ``flush_messages`` is ``log.flush.interval.messages``, None for the default, which is never.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        file_system: FileSystem,
        clock: VirtualClock,
        *,
        flush_messages: int | None,
        seed: int,
        directories: tuple[str, ...] = (DATA,),
        background: Background | None = None,
    ) -> None:
        """``seed`` is what no other process on this disk has had: ids are drawn by it."""
        self._config = _config(flush_messages, directories, has_threads=background is not None)
        self.background = background or InlineBackground()
        self._file_system = file_system
        self._seed = seed
        self.clock = clock
        self.loop = self._loop = loop
        self.is_running = False
        # What was raised on the loop, where nobody catches it.
        self._raised: list[BaseException] = []
        loop.set_exception_handler(self._note_raised)

    def start(self) -> None:
        """Raises what ``Broker.start`` does."""
        self.call(self._start)
        self.is_running = True
        self.tune()

    def _start(self) -> None:
        shared = SharedServer(
            self._config,
            clock=self.clock,
            background=self.background,
            file_system=self._file_system,
            random=Random(self._seed),
        )
        self.broker = Broker.start(shared)

    def tune(self) -> None:
        """Give topics segments and indexes that are smaller than any that configs allow."""
        for partition in self.broker.partitions:
            log = partition.log
            if log is not None and log.config.segment_bytes > SEGMENT_BYTES:
                log.config = replace(log.config, segment_bytes=SEGMENT_BYTES, index_interval_bytes=INDEX_INTERVAL_BYTES)

    def _note_raised(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._raised.append(context.get("exception") or RuntimeError(context["message"]))

    def stop(self) -> None:
        """In good order."""
        self.is_running = False
        self._loop.run_until_complete(self.broker.stop())
        self.turn()

    def vanish(self) -> None:
        """The process is gone: what it still had to do is not done. Each start is followed by this or by ``stop``."""
        if self.is_running:
            # A start that failed has undone itself.
            broker = self.broker
            broker.timer.close()
            broker.transactions._is_closed = broker.groups._is_closed = True
        self.is_running = False
        self.background.abandon()
        self._loop._ready.clear()  # type: ignore[attr-defined]

    def turn(self) -> None:
        """Let the loop do what it is to do soon. Raises what was raised there."""
        self._loop.run_until_complete(asyncio.sleep(0))
        if self._raised:
            raise self._raised.pop(0)

    def settle(self) -> None:
        """Wait until no work in threads is under way. Raises Unanswered."""
        background = self.background
        for _ in range(_MOST_TURNS * _TURNS_A_STEP):
            if not isinstance(background, SeededBackground) or background.is_idle:
                return
            self.turn()
        raise Unanswered("the work in threads does not end")

    def wait(self, duration_ms: int) -> None:
        """Let time pass, and the loop turn on the way."""
        while duration_ms > 0:
            self.call(self.clock.advance, min(duration_ms, _STEP_MS))
            duration_ms -= _STEP_MS
            self.turn()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do what takes a loop that runs."""
        return self._loop.run_until_complete(_call(function, *arguments))

    def handle(self, question: Question) -> Any | Reply[Any]:
        """The response, or one that has to wait. To be called where the loop runs."""
        context = RequestContext(question.api_key, question.version, 0, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
        return load_handler(question.api_key)(self.broker, context, question.request)

    def wait_until(self, is_over: Callable[[], bool], what: str) -> None:
        """Let the loop turn, and time pass. Raises Unanswered."""
        for _ in range(_MOST_TURNS):
            if is_over():
                return
            self.turn()
            if not is_over():
                self.wait(1)
        raise Unanswered(f"{what} is not answered")

    def load_coordinators(self) -> None:
        """Wait until those that there are have been loaded. Raises Violation where one cannot be."""
        broker = self.broker
        for coordinator in (broker.transactions, broker.groups):
            topic = coordinator._about.topic
            if not broker.partitions.of_topic(topic):
                continue
            for _ in range(_MOST_TURNS):
                states = self.call(lambda host: host.runtime.states(), coordinator)
                if ShardState.LOADING not in states.values():
                    break
                self.turn()
            for partition in broker.partitions.of_topic(topic).values():
                state = states.get(partition.index)
                if partition.log is not None and state is not ShardState.ACTIVE:
                    raise Violation("coordinators load what there is", f"{topic}-{partition.index} is {state}")

    def partitions(self) -> list[Partition]:
        """All there are."""
        return list(self.broker.partitions)


async def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Where there is a loop that runs."""
    return function(*arguments)
