"""What a workload was told: from this follows what must be there when the broker comes again, after a kill or a loss of power.

Facts are noted with the number of operations that the disk had seen by then. ``Promises`` are those of all facts up to such a
number: what was acknowledged must survive a kill, and what is ``synced`` a loss of power as well.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, read_header
from odradek.storage import checkpoints
from odradek.storage.directory_scan import parse_log_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.campaigns.power_loss.disk import Operation

PartitionKey = tuple[UUID, int]
Offsets = tuple[str, str, int]


class Ends(NamedTuple):
    """A partition's: up to where it is acknowledged, and up to where that outlives the machine."""

    acknowledged: int
    synced: int
    log_start: int


@dataclass
class Transaction:
    """One, with the values it wrote. ``decision``: "", then what was asked for; ``is_told``: the answer was that it is so."""

    values: set[bytes]
    decision: str = ""
    is_told: bool = False

    def copy(self) -> Transaction:
        return Transaction(set(self.values), self.decision, self.is_told)


@dataclass
class Commits:
    """The offsets committed for one partition by one group, in order; all before ``told`` are known to have been."""

    asked: list[int] = field(default_factory=list)
    told: int = 0


@dataclass
class Promises:
    """As of one moment. ``topics`` are those that were created, ``ending`` those that somebody has asked to delete."""

    ends: dict[PartitionKey, Ends] = field(default_factory=dict)
    topics: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    ending: set[UUID] = field(default_factory=set)
    deleted: set[UUID] = field(default_factory=set)
    # The names of the topics that somebody has asked to delete.
    passing: set[str] = field(default_factory=set)
    commits: dict[Offsets, Commits] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    # The highest offset that DeleteRecords was asked to let a log start at.
    starts_asked: dict[PartitionKey, int] = field(default_factory=dict)
    # Of compacted logs, by key, the records of it that were acknowledged: offset, and whether it deletes.
    keyed: dict[PartitionKey, dict[bytes, list[tuple[int, bool]]]] = field(default_factory=dict)


Fact = "Callable[[Promises], None]"
_METADATA_NAMES = (checkpoints.PARTITION_METADATA_FILE, checkpoints.PARTITION_METADATA_FILE + ".tmp")


class Ledger:
    """Facts in the order in which they were learnt."""

    def __init__(self) -> None:
        self.promises = Promises()
        self._facts: list[tuple[int, Callable[[Promises], None]]] = []

    def note(self, position: int, fact: Callable[[Promises], None]) -> None:
        """A fact is learnt after ``position`` operations."""
        self._facts.append((position, fact))
        fact(self.promises)

    def replay(self) -> Replay:
        """The same from the beginning."""
        return Replay(self._facts)


class Replay:
    """The promises as they were, one moment after the other."""

    def __init__(self, facts: list[tuple[int, Callable[[Promises], None]]]) -> None:
        self.promises = Promises()
        self.version = 0
        self._facts = facts

    def up_to(self, position: int) -> Promises:
        """Those of everything learnt with at most ``position`` operations done; positions do not go back."""
        while self.version < len(self._facts) and self._facts[self.version][0] <= position:
            self._facts[self.version][1](self.promises)
            self.version += 1
        return self.promises


class Written:
    """All batches that were ever handed to the disk, by partition and offset: several of one offset, where one failed."""

    def __init__(self) -> None:
        self.batches: dict[PartitionKey, dict[int, set[bytes]]] = {}
        self._topic_ids: dict[str, UUID] = {}

    def take(self, operations: Iterable[Operation]) -> None:
        """Look at what a disk was told to do."""
        for operation in operations:
            if operation.kind == "rename" and operation.path in self._topic_ids:
                self._topic_ids[operation.target] = self._topic_ids[operation.path]
            if operation.kind != "append":
                continue
            directory, _, name = operation.path.rpartition("/")
            if name in _METADATA_NAMES:
                text = operation.data.decode().rpartition(" ")[2].strip()
                # Of one that was not written to its end nothing is known.
                with suppress(ValueError):
                    self._topic_ids[directory] = checkpoints.parse_uuid(text)
            elif name.endswith((".log", ".cleaned")) and directory in self._topic_ids:
                log_name = parse_log_name(directory.rpartition("/")[2])
                # What is copied to where a log moves was written before.
                if log_name is not None:
                    self._take_batches((self._topic_ids[directory], log_name[1]), operation.data)

    def _take_batches(self, key: PartitionKey, data: bytes) -> None:
        batches = self.batches.setdefault(key, {})
        position = 0
        while position + HEADER_SIZE <= len(data):
            header = read_header(data, position)
            end = position + header.size_bytes
            if header.magic != MAGIC or end > len(data):
                return
            batches.setdefault(header.base_offset, set()).add(data[position:end])
            position = end
