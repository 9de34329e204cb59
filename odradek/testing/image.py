"""What a broker held at one moment, to start brokers from: the content of its disk, its clock, its configs.

In memory, an image shares the bytes with all disks that are made of it. On a disk it is a directory beside the broker's own, of
hard links, and so are the directories that are made of it; all of them are removed in the end.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from odradek.storage.stopped_copy import mark_stopped, write_out
from odradek.testing.disk import MemoryDisk
from odradek.testing.linked import LinkedFileSystem, link_tree, remove_content, remove_quietly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.server import Broker as BrokerCore
    from odradek.storage.filesystem import FileSystem
    from odradek.testing.steered_clock import SteeredClock

__tracebackhide__ = True

_CONTENT = "data"


class LinkedDirectory:
    """A directory of hard links, beside the one that it was made of. It is removed with this object, at the latest."""

    def __init__(self, beside: str, kind: str) -> None:
        """``kind`` is "snapshot" or "fork". Raises OSError."""
        place = Path(beside).absolute()
        self._holder = mkdtemp(prefix=f"{place.name}.{kind}-", dir=place.parent)
        self.path = f"{self._holder}/{_CONTENT}"
        self._remove = finalize(self, remove_quietly, self._holder)

    @property
    def is_removed(self) -> bool:
        """Whether it is gone."""
        return not self._remove.alive

    def remove(self) -> None:
        """Idempotent."""
        self._remove()


class Image(NamedTuple):
    """``origin`` is the directory that the broker had; None for one in memory."""

    content: MemoryDisk | LinkedDirectory
    origin: str | None
    clock: SteeredClock
    configs: Mapping[str, str]
    has_own_configs: bool

    @classmethod
    def of(
        cls, core: BrokerCore, disk: FileSystem, clock: SteeredClock, configs: Mapping[str, str], *, has_own_configs: bool = True
    ) -> Image:
        """Of a broker that runs, between two turns of its loop.

        Raises TypeError for a disk that is neither in memory nor one directory, OSError, KafkaError.
        """
        directories = core.log_manager.directories.all
        write_out(core.log_manager)
        content: MemoryDisk | LinkedDirectory
        origin = None
        if isinstance(disk, MemoryDisk):
            content = disk.fork()
            for directory in directories:
                mark_stopped(core.log_manager, directory, content, directory.path)
        elif isinstance(disk, LinkedFileSystem) and len(directories) == 1:
            # What the configs say weighs more than the directory that a broker is made with.
            origin = directories[0].path
            content = LinkedDirectory(origin, "snapshot")
            disk.link_to(origin, content.path)
            mark_stopped(core.log_manager, directories[0], LinkedFileSystem(), content.path)
        else:
            raise TypeError("there are snapshots of brokers in memory, and of those with one directory")
        return cls(content, origin, clock.copy(), configs, has_own_configs)

    def fits(self, core: BrokerCore, disk: FileSystem) -> bool:
        """Whether the broker ``core`` on ``disk`` can be brought back to this."""
        if isinstance(self.content, MemoryDisk):
            return isinstance(disk, MemoryDisk)
        return isinstance(disk, LinkedFileSystem) and len(core.log_manager.directories.all) == 1

    def bring_to(self, disk: FileSystem, directory: str) -> FileSystem:
        """Bring the disk of a broker that is stopped, and that fits, back to this; returns it. Raises OSError.

        What is in the ``directory`` that the broker has on a disk is removed.
        """
        if isinstance(self.content, MemoryDisk):
            return self.content.fork()
        remove_content(directory)
        link_tree(self.content.path, directory, is_new=False)
        return disk

    def fork_configs(self) -> dict[str, str]:
        """The configs of a broker beside the first: it listens on ports of its own, and has a directory of its own on a disk."""
        configs = dict(self.configs)
        if isinstance(self.content, LinkedDirectory):
            for name in ("log.dirs", "log.dir", "metadata.log.dir"):
                configs.pop(name, None)
        configs.pop("advertised.listeners", None)
        if "listeners" in configs:
            configs["listeners"] = re.sub(r":\d+(?=\s*(,|$))", ":0", configs["listeners"])
        return configs
