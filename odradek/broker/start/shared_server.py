"""The parts of a process that both a broker and a controller need. Making them touches nothing on disk.

Kafka's class is SharedServer.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.common.logging import log
from odradek.storage.directories.data_directory import RESERVE_BYTES
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.timing.driver import AsyncioDriver
from odradek.timing.slices import Slices
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


def _call_soon(callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(callback)


class SharedServer:
    """The configs, time, threads, random numbers and files of one process. Make it on the loop that serves.

    A broker without listeners needs no loop before its first request, if its clock does not pass by itself.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        background: Background | None = None,
        file_system: FileSystem | None = None,
        random: Random | None = None,
        call_soon: Callable[[Callable[[], None]], object] | None = None,
        on_failed: Callable[[str], object] | None = None,
    ) -> None:
        """``call_soon`` replaces the event loop's.

        ``on_failed`` is called with the reason if the broker or controller cannot go on. The process should then end as if it
        were killed.
        """
        self.config = config
        self.node_id: int = config["node.id"]
        self.clock: Clock = clock or SystemClock()
        self.background: Background = background or ThreadedBackground()
        self.file_system: FileSystem = file_system or RealFileSystem(RESERVE_BYTES)
        self.random = random or Random()  # noqa: S311  ids are no secrets
        self.timer = Timer(self.clock)
        self.call_soon: Callable[[Callable[[], None]], object] = call_soon or _call_soon
        self.slices = Slices(self.clock.monotonic_ms, self.call_soon)
        # None under a clock that does not pass by itself.
        self.timer_driver = AsyncioDriver(self.timer, asyncio.get_running_loop()) if self.clock.passes_by_itself else None
        self.on_failed = on_failed

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with this process's seed."""
        return UUID(int=self.random.getrandbits(128), version=4)

    def fail(self, reason: str) -> None:
        """Report that the broker or controller cannot go on."""
        log.warn("broker failed" if "broker" in self.config["process.roles"] else "controller failed", reason=reason)
        if self.on_failed is not None:
            self.on_failed(reason)

    async def finish(self) -> None:
        """Wait for the work in threads, and stop the timer. Nothing new may begin."""
        self.slices.close()
        self.timer.close()
        await self.background.finish()
        self.close()

    def close(self) -> None:
        """Stop the timer."""
        if self.timer_driver is not None:
            self.timer_driver.close()
        self.timer.close()

    def abandon(self) -> None:
        """Stop everything at once, like a killed process."""
        self.background.abandon()
        self.slices.close()
        self.close()
