"""What the replicas of partitions say on disk, compared: one must not be told from another.

    log                         the same batches, byte for byte; segments may end elsewhere
    log start offset            the same
    high watermark              at the end of the log: the cluster had settled, and its brokers were stopped
    leader-epoch-checkpoint     each epoch of the batches, from its first one on; one without any may be at the log's end
    txnindex, snapshot          the same aborted transactions, and producers at the log's end

The last stable offset in a txnindex is left out: a follower of Kafka's computes it over all that one fetch has brought, and so
two of them differ.

Read by the formats, and not by odradek's log: what one broker gets wrong it should not be asked about.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from struct import Struct, pack

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import iter_batches

HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_METADATA = "__cluster_metadata"
# id, epoch, last sequence, last offset, last offset delta, timestamp, coordinator epoch, first offset of an open transaction
_PRODUCER = Struct(">qhiqiqiq")
_BEFORE_PRODUCERS = 10
# Version, producer id, first offset, marker's offset, last stable offset.
_ABORTED = Struct(">hqqqq")
_TABLE_HEAD = 2


@dataclass(frozen=True)
class Replica:
    """A partition's directory of one broker."""

    node_id: int
    directory: Path

    @cached_property
    def log(self) -> bytes:
        """The batches, up to the first that cannot be read."""
        return self._read[0]

    @property
    def damage(self) -> str:
        """Why what is behind ``log`` cannot be read; empty if nothing is."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[bytes, str]:
        data = b"".join(path.read_bytes() for path in sorted(self.directory.glob("*.log")))
        end = 0
        try:
            for position, header in iter_batches(data):
                end = position + header.size_bytes
        except MalformedMessage as error:
            return data[:end], error.reason
        return data[:end], ""

    @cached_property
    def batches(self) -> list[tuple[int, int, int]]:
        """(first offset, leader epoch, position) of each."""
        return [(header.base_offset, header.partition_leader_epoch, position) for position, header in iter_batches(self.log)]

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        last = None
        for _, header in iter_batches(self.log):
            last = header
        return 0 if last is None else last.last_offset + 1

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """(epoch, first offset) as the checkpoint has them, of those that have records."""
        rows = table(self.directory / LEADER_EPOCHS)
        return [(epoch, start) for epoch, start in ((int(row[0]), int(row[1])) for row in rows) if start < self.end_offset]

    @property
    def epochs_of_batches(self) -> list[tuple[int, int]]:
        """The same as the batches have them. Of what is in front of the log's start no more is told than the epoch there."""
        found: list[tuple[int, int]] = []
        for base_offset, epoch, _ in self.batches:
            if not found or found[-1][0] != epoch:
                found.append((epoch, base_offset))
        start = self.start_offset
        before = [(epoch, start) for epoch, first in found if first <= start][-1:] if start else []
        return before + [(epoch, first) for epoch, first in found if first > start or not start]

    @property
    def aborted(self) -> list[tuple[int, int, int]]:
        """(producer id, first offset, marker's offset) of the transaction indexes."""
        entries = b"".join(path.read_bytes() for path in sorted(self.directory.glob("*.txnindex")))
        return [fields[1:4] for fields in _ABORTED.iter_unpack(entries)]

    @property
    def producers(self) -> list[tuple[int, ...]] | None:
        """What the snapshot at the log's end has of each producer; None if there is none."""
        path = self.directory / f"{self.end_offset:020d}.snapshot"
        return sorted(_PRODUCER.iter_unpack(path.read_bytes()[_BEFORE_PRODUCERS:])) if path.exists() else None

    @property
    def start_offset(self) -> int:
        """Where the log begins for readers, as the broker has checkpointed it."""
        return self._checkpointed(LOG_STARTS) or 0

    @property
    def high_watermark(self) -> int | None:
        """As the broker has checkpointed it."""
        return self._checkpointed(HIGH_WATERMARKS)

    def _checkpointed(self, name: str) -> int | None:
        rows = table(self.directory.parent / name)
        return {f"{topic}-{partition}": int(offset) for topic, partition, offset in rows}.get(self.directory.name)


@dataclass
class Comparison:
    """What was compared, and what differs."""

    partitions: int = 0
    replicas: int = 0
    batches: int = 0
    log_bytes: int = 0
    epochs: int = 0
    aborted: int = 0
    producers: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.replicas} replicas of {self.partitions} partitions: {self.batches} batches in {self.log_bytes} bytes,"
            f" {self.epochs} leader epochs, {self.aborted} aborted transactions, {self.producers} producers;"
            f" differences {len(self.differences)}"
        )


def table(path: Path) -> list[list[str]]:
    """The rows of one of Kafka's checkpoint files."""
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()[_TABLE_HEAD:]] if path.exists() else []


def replicas_in(data: Mapping[int, Path]) -> dict[str, list[Replica]]:
    """By partition, of the brokers with these data directories."""
    found: dict[str, list[Replica]] = {}
    for node_id, directory in data.items():
        for path in sorted(directory.iterdir()):
            name = _DIRECTORY.fullmatch(path.name)
            if name is not None and path.is_dir() and name["topic"] != _METADATA:
                found.setdefault(path.name, []).append(Replica(node_id, path))
    return found


def compare(data: Mapping[int, Path]) -> Comparison:
    """All replicas in these data directories, whose brokers have been stopped."""
    found = Comparison()
    for partition, replicas in sorted(replicas_in(data).items()):
        found.partitions += 1
        found.replicas += len(replicas)
        for replica in replicas:
            found.batches += len(replica.batches)
            found.log_bytes += len(replica.log)
            found.epochs += len(replica.epochs)
            found.aborted += len(replica.aborted)
            found.producers += len(replica.producers or ())
            found.differences += [f"{partition} on {replica.node_id}: {what}" for what in _of_its_own(replica)]
        first, *others = replicas
        for other in others:
            found.differences += [f"{partition} on {first.node_id} and {other.node_id}: {what}" for what in _of_two(first, other)]
    return found


def _of_its_own(replica: Replica) -> Iterator[str]:
    if replica.damage:
        yield f"the log cannot be read from offset {replica.end_offset} on: {replica.damage}"
    if replica.epochs != replica.epochs_of_batches:
        yield f"the checkpoint has epochs {replica.epochs}, the log {replica.epochs_of_batches}"
    if (replica.high_watermark or 0) != replica.end_offset:
        yield f"the high watermark is {replica.high_watermark}, the log's end {replica.end_offset}"
    if replica.producers is None and replica.end_offset:
        yield f"there is no snapshot of producers at {replica.end_offset}"


def _of_two(one: Replica, other: Replica) -> Iterator[str]:
    if one.log != other.log:
        ends = f"{one.end_offset} and {other.end_offset}"
        yield f"the logs differ from offset {_first_difference(one, other)} on, and end at {ends}"
    if one.start_offset != other.start_offset:
        yield f"the logs begin at {one.start_offset} and {other.start_offset}"
    if one.aborted != other.aborted:
        apart = sorted(set(one.aborted) ^ set(other.aborted))
        yield f"the aborted transactions differ: {apart[:3]}"
    if None not in (one.producers, other.producers) and one.producers != other.producers:
        yield f"the producers differ: {_only_in(one, other)} and {_only_in(other, one)}"


def _only_in(one: Replica, other: Replica) -> list[tuple[int, ...]]:
    return [each for each in one.producers or () if each not in (other.producers or ())][:3]


def _first_difference(one: Replica, other: Replica) -> int:
    """The first offset of the first batch that is not the same in both."""
    length = min(len(one.log), len(other.log))
    at = next((at for at in range(length) if one.log[at] != other.log[at]), length)
    inside = [base_offset for base_offset, _, position in (one.batches or other.batches) if position <= at]
    return inside[-1] if inside else 0


_LAST_BYTE = -1


def _change_a_byte(replica: Replica) -> tuple[Path, bytes]:
    path = _last_segment(replica)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    return path, bytes(data)


def _lose_a_batch(replica: Replica) -> tuple[Path, bytes]:
    path = _last_segment(replica)
    last = replica.batches[_LAST_BYTE][2]
    data = path.read_bytes()
    return path, data[: len(data) - (len(replica.log) - last)]


def _lose_a_producer(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory / f"{replica.end_offset:020d}.snapshot"
    data = bytearray(path.read_bytes())
    data[_LAST_BYTE] ^= 1
    return path, bytes(data)


def _forget_an_epoch(replica: Replica) -> tuple[Path, bytes]:
    return replica.directory / LEADER_EPOCHS, b"0\n0\n"


def _forget_the_high_watermark(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory.parent / HIGH_WATERMARKS
    topic, partition = replica.directory.name.rsplit("-", 1)
    return path, path.read_bytes().replace(f"{topic} {partition} {replica.end_offset}\n".encode(), b"")


def _lose_an_aborted_transaction(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory / f"{0:020d}.txnindex"
    # One that is nowhere else takes the place of what is there.
    return path, pack(">hqqqq", 0, 1 << 40, 1, 2, 3)


FAULTS: dict[str, Callable[[Replica], tuple[Path, bytes]]] = {
    "a byte of the log is another": _change_a_byte,
    "the last batch is lost": _lose_a_batch,
    "a producer is in another state": _lose_a_producer,
    "an aborted transaction is another": _lose_an_aborted_transaction,
    "the leader epochs are lost": _forget_an_epoch,
    "the high watermark is lost": _forget_the_high_watermark,
}


@contextmanager
def planted(name: str, replica: Replica) -> Iterator[None]:
    """One of ``FAULTS``, until the end of the ``with`` block."""
    path, spoilt = FAULTS[name](replica)
    sound = path.read_bytes() if path.exists() else None
    assert spoilt != sound, name
    path.write_bytes(spoilt)
    try:
        yield
    finally:
        if sound is None:
            path.unlink()
        else:
            path.write_bytes(sound)


def _last_segment(replica: Replica) -> Path:
    return max(path for path in replica.directory.glob("*.log") if path.stat().st_size)
