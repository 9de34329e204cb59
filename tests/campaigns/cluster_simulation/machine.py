"""A machine of the cluster: its disk, its clock, and the process of odradek that runs on it, one after the other.

A killed process leaves all that it has written. A machine that loses its power leaves what was synced, and a part of the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.broker.cluster.member import ClusterMember
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config.broker_config import load
from odradek.common.logging import _sink
from odradek.testing.disk import MemoryDisk
from odradek.testing.severed import SeverableFileSystem
from odradek.timing.background import InlineBackground, outcome_of
from tests.campaigns.cluster_simulation.loop import Process, ProcessClock
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future

    from odradek.broker.start.server import Broker
    from odradek.timing.background import Beside, LongWork
    from tests.campaigns.cluster_simulation.world import World


T = TypeVar("T")


# Starts the server of a process, and calls back with its broker when the logs are open.
Start = Callable[[SharedServer, Callable[["Broker"], None]], Awaitable[Any]]


def member_of(core: Broker) -> ClusterMember:
    """Return a broker's membership in the cluster."""
    assert isinstance(core.member, ClusterMember)
    return core.member


class LateBackground:
    """A ``Background`` of one process; ``longest_ms`` is how long a work takes at most."""

    def __init__(self, random: Random, longest_ms: float) -> None:
        self.longest_ms = longest_ms
        self._random = random
        self._under_way = 0
        self._is_abandoned = False
        self._inline = InlineBackground()

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        if self._is_abandoned:
            return
        self._under_way += 1
        delay_s = self._random.random() * self.longest_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, self._finish, work, then)

    def _finish(self, work: Callable[[], Any], then: Callable[[Future[Any]], object]) -> None:
        self._under_way -= 1
        if not self._is_abandoned:
            then(outcome_of(work))

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:
        return self._inline.run_long(work, then, name=name)

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:
        self._inline.for_each(action, items, name=name)

    async def settle(self) -> None:
        while self._under_way and not self._is_abandoned:  # noqa: ASYNC110  time is virtual: it costs nothing
            await asyncio.sleep(0.001)

    async def finish(self) -> None:
        await self.settle()

    def abandon(self) -> None:
        self._is_abandoned = True


# A disk that works, and one that is slow.
_DISK_MS = 2.0
_SLOW_DISK_MS = 400.0
# What a process may take to stop in good order before it is killed, as Kubernetes does.
_PATIENCE_MS = 6_000
# Lines that tell of what a fault has done.
_EXPECTED = (OSError, ConnectionError)


class Machine:
    """A machine of the cluster, its disk, and the process that runs on it.

    ``process`` is None while none runs. ``starts`` counts the processes. ``server`` is the process's server once it has started,
    and ``core`` its broker once the logs are open.
    """

    def __init__(self, world: World, node_id: int, host: str, configs: Mapping[str, str], start: Start) -> None:
        self.world = world
        self.node_id = node_id
        self.host = host
        self.starts = 0
        self.server: Any = None
        self.core: Broker | None = None
        self.process: Process | None = None
        self.is_serving = False
        self.is_stopping = False
        self.is_slow = False
        self._configs = {"log.dirs": "/data", "node.id": str(node_id), **configs}
        self._start_server = start
        self._disk = MemoryDisk()
        self._disk.make_dirs("/data")
        self._disk.sync_dir("/")
        self._severable: SeverableFileSystem | None = None
        self._background: LateBackground | None = None
        self._clock = ProcessClock(world.loop, 1_700_000_000_000 + world.rng.randint(-500, 500))

    @property
    def name(self) -> str:
        """For people."""
        return self.host

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        return self.process is not None

    # ---------------------------------------------------------------------------------------------------------- the process

    def start(self) -> None:
        """Start a process on what the disk holds."""
        if self.is_up:
            return
        world = self.world
        self.starts += 1
        world.network.dark.discard(self.host)
        world.note("%s starts", self.name)
        process = self.process = Process(world.loop, f"{self.host}#{self.starts}", self.host)
        process.run(_sink.set, self._line(process))
        self._severable = SeverableFileSystem(self._disk)
        random = Random(world.rng.getrandbits(64))
        self._background = LateBackground(random, _SLOW_DISK_MS if self.is_slow else _DISK_MS)
        process.spawn(self._run(process, self._background, random))

    async def _run(self, process: Process, background: LateBackground, random: Random) -> None:
        def opened(core: Broker) -> None:
            self.core = core

        shared = SharedServer(
            load(overrides=self._configs),
            clock=self._clock,
            background=background,
            file_system=self._severable,
            random=random,
            on_failed=self._failed,
        )
        try:
            server = await self._start_server(shared, opened)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
            if not process.is_dead:
                self.world.complain(Violation("a broker that starts comes to serve", f"{self.name}: {error!r}"))
            return
        if process.is_dead:
            server.abandon()
        else:
            self.server = server
            self.is_serving = True
            self.world.note("%s serves", self.name)

    def _failed(self, reason: str) -> None:
        self.world.complain(Violation("a broker goes on", f"{self.name}: {reason}"))

    def _line(self, process: Process) -> Callable[[str, str, Mapping[str, object]], None]:
        def line(level: str, event: str, fields: Mapping[str, object]) -> None:
            if process.is_dead:
                return
            self.world.counts[f"log: {event}"] += 1
            self.world.note("%s: %s %s", self.name, event, {name: str(value)[:100] for name, value in fields.items()})
            error = fields.get("exc_info")
            if level == "error" and not isinstance(error, _EXPECTED):
                self.world.complain(Violation("a broker makes no mistake", f"{self.name}: {event}: {error!r} {dict(fields)}"))

        return line

    # --------------------------------------------------------------------------------------------------------------- its end

    def kill(self) -> None:
        """End the process as kill -9 does."""
        if self.is_up:
            self.world.note("%s is killed", self.name)
            self._end(is_told=True)

    def lose_power(self) -> None:
        """End the machine."""
        if self.is_up:
            self.world.note("%s loses its power", self.name)
            self._end(is_told=False)
            self.world.network.dark.add(self.host)
            self._disk = self._disk.after_power_loss(Random(self.world.rng.getrandbits(64)))

    def stop(self) -> None:
        """End the process in good order; if that takes too long, it is killed."""
        process = self.process
        if self.server is None or process is None or self.is_stopping:
            return
        self.world.note("%s is to stop", self.name)
        self.is_stopping = True
        process.spawn(self._stop(process))
        self.world.later(_PATIENCE_MS, lambda: self._lose_patience(process))

    async def _stop(self, process: Process) -> None:
        await self.server.stop()
        if not process.is_dead:
            self.world.note("%s has stopped", self.name)
            self.world.counts["stopped in good order"] += 1
            self._end(is_told=True)

    def _lose_patience(self, process: Process) -> None:
        if process.is_dead:
            return
        if self.world.may_end(self, loses=False):
            self.kill()
        else:
            self.world.later(_PATIENCE_MS, lambda: self._lose_patience(process))

    def _end(self, *, is_told: bool) -> None:
        process, running, severable = self.process, self.server or self.core, self._severable
        assert process is not None
        assert severable is not None
        self.process = self.server = self.core = self._severable = self._background = None
        self.is_serving = self.is_stopping = False
        process.is_dead = True
        severable.sever()
        self.world.network.end(process, is_told=is_told)
        # A process whose logs are not open yet ends with its tasks.
        if running is not None:
            process.run(running.abandon)
        process.cancel_tasks()
        self.world.loop.forget(process)
        process.resume()

    # ------------------------------------------------------------------------------------------------------------ its troubles

    def pause(self) -> None:
        """Freeze the process."""
        if self.process is not None and not self.process.is_paused:
            self.world.note("%s is paused", self.name)
            self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self.process is not None and self.process.is_paused:
            self.world.note("%s goes on", self.name)
            self.process.resume()
            self.world.network.resume(self.process)

    def slow_down(self, *, is_slow: bool) -> None:
        """Have its disk take its time, or not."""
        self.is_slow = is_slow
        if self._background is not None:
            self._background.longest_ms = _SLOW_DISK_MS if is_slow else _DISK_MS
