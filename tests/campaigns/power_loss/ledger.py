"""The responses of a workload, and the promises that follow: what must be there after a kill or a loss of power.

Promises follow from the responses that clients got, and from the settings that clients know: nothing is asked of the broker's own
offsets. With ``flush.messages`` of n, all but the last n - 1 of the acknowledged records survive a loss of power.

Facts are recorded with the number of operations that the disk had seen. ``Promises`` follow from all facts up to such a number:
acknowledged records must survive a kill, and ``synced`` ones a loss of power as well.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.protocol.record_batch import HEADER_SIZE, MAGIC, read_header
from odradek.protocol.texts import parse_uuid
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directories import parse_log_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.campaigns.power_loss.disk import Operation

PartitionKey = tuple[UUID, int]
Offsets = tuple[str, str, int]


class Ends(NamedTuple):
    """A partition's offsets: up to which records are acknowledged, and up to which they survive a loss of power."""

    acknowledged: int
    synced: int


@dataclass
class Transaction:
    """A transaction and the values it wrote. ``decision``: the requested end, "" before; ``is_told``: a response confirmed it."""

    values: set[bytes]
    decision: str = ""
    is_told: bool = False

    def copy(self) -> Transaction:
        return Transaction(set(self.values), self.decision, self.is_told)


@dataclass
class Commits:
    """A group's commits for one partition, in order; all before ``told`` were confirmed."""

    asked: list[int] = field(default_factory=list)
    told: int = 0


@dataclass
class Promises:
    """The promises at one moment. ``topics`` are the created topics, ``ending`` those whose deletion was requested."""

    ends: dict[PartitionKey, Ends] = field(default_factory=dict)
    topics: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    ending: set[UUID] = field(default_factory=set)
    deleted: set[UUID] = field(default_factory=set)
    # The names of topics whose deletion was requested.
    passing: set[str] = field(default_factory=set)
    commits: dict[Offsets, Commits] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    # The highest log start offset that DeleteRecords requested.
    starts_asked: dict[PartitionKey, int] = field(default_factory=dict)
    # The low watermarks with which DeleteRecords was answered.
    deleted_below: dict[PartitionKey, int] = field(default_factory=dict)
    # For compacted logs, by key, the acknowledged records: offset, and whether the record is a tombstone.
    keyed: dict[PartitionKey, dict[bytes, list[tuple[int, bool]]]] = field(default_factory=dict)


Fact = "Callable[[Promises], None]"
_METADATA_NAMES = (checkpoints.PARTITION_METADATA_FILE, checkpoints.PARTITION_METADATA_FILE + ".tmp")


class Ledger:
    """Facts in the order in which they were recorded."""

    def __init__(self) -> None:
        self.promises = Promises()
        self._facts: list[tuple[int, Callable[[Promises], None]]] = []

    def note(self, position: int, fact: Callable[[Promises], None]) -> None:
        """Record a fact after ``position`` operations."""
        self._facts.append((position, fact))
        fact(self.promises)

    def replay(self) -> Replay:
        """A replay from the beginning."""
        return Replay(self._facts)


class Replay:
    """The promises at consecutive moments."""

    def __init__(self, facts: list[tuple[int, Callable[[Promises], None]]]) -> None:
        self.promises = Promises()
        self.version = 0
        self._facts = facts

    def up_to(self, position: int) -> Promises:
        """The promises of all facts up to ``position`` operations; positions must ascend."""
        while self.version < len(self._facts) and self._facts[self.version][0] <= position:
            self._facts[self.version][1](self.promises)
            self.version += 1
        return self.promises


class Written:
    """All batches that were ever written to the disk, by partition and offset; several for one offset after failed writes."""

    def __init__(self) -> None:
        self.batches: dict[PartitionKey, dict[int, set[bytes]]] = {}
        self._topic_ids: dict[str, UUID] = {}

    def take(self, operations: Iterable[Operation]) -> None:
        """Add the batches in these operations."""
        for operation in operations:
            if operation.kind == "rename" and operation.path in self._topic_ids:
                self._topic_ids[operation.target] = self._topic_ids[operation.path]
            if operation.kind != "append":
                continue
            directory, _, name = operation.path.rpartition("/")
            if name in _METADATA_NAMES:
                text = operation.data.decode().rpartition(" ")[2].strip()
                # A partial write has no readable batch.
                with suppress(ValueError):
                    self._topic_ids[directory] = parse_uuid(text)
            elif name.endswith((".log", ".log.cleaned")) and directory in self._topic_ids:
                log_name = parse_log_name(directory.rpartition("/")[2])
                # A moving log is copied; its batches were written before.
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
