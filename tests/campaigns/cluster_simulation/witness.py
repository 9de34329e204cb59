"""Looks into all brokers, again and again, as nobody in a real cluster can.

One broker leads a partition in an epoch. What one replica has below its high watermark, all others have there, now and later:
each batch below it is noted when the first replica has it there, and compared with what the others have. Whoever the controller
takes for in sync has all that its leader takes for replicated.

What clients have sent and been told: what the cluster must have in the end.

values        each is sent once, to one partition, by one producer or in one transaction
acknowledged  with acks=all: the place of each value that the cluster has said is safe
transactions  what became of each, as far as its producer was told
committed     the offsets of groups: what was acknowledged last, and what was asked for since
identities    the producer ids and epochs that were given out
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.record_batch import iter_batches
from tests.campaigns.cluster_simulation.machine import member_of
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.controller.metadata.image import MetadataImage
    from tests.campaigns.cluster_simulation.machine import Machine


Place = tuple[str, int]

ONCE = "producer ids and epochs are given once"
COMMITTED = "an acknowledged commit is found wherever the coordinator is"
MEMBER = "a member goes on whoever coordinates its group"
WATERMARK = "a high watermark that a client saw does not go back"


@dataclass(slots=True)
class Transaction:
    """``fate`` is what its producer knows: "open", "committed", "aborted" or "unknown". ``offset`` is committed within it."""

    name: str
    number: int
    values: dict[Place, list[bytes]] = field(default_factory=dict)
    fate: str = "open"
    offset: int | None = None


@dataclass(slots=True)
class GroupOffsets:
    """Of one partition of one group, with one committer: ``acknowledged`` is the last, ``asked`` all that was asked for."""

    acknowledged: int = -1
    asked: list[int] = field(default_factory=list)


class Ledger:
    """Of one world."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, Place], list[bytes]] = defaultdict(list)
        self.acknowledged: dict[Place, dict[int, bytes]] = defaultdict(dict)
        self.careless: set[bytes] = set()
        self.transactions: list[Transaction] = []
        self.offsets: dict[tuple[str, int], GroupOffsets] = defaultdict(GroupOffsets)
        self.watermarks: dict[Place, int] = defaultdict(int)
        self._identities: dict[tuple[int, int], str] = {}
        self._ids: dict[int, str] = {}

    def acknowledge(self, place: Place, base_offset: int, values: list[bytes]) -> None:
        """The cluster says that these are safe."""
        if base_offset >= 0:
            self.acknowledged[place].update(enumerate(values, base_offset))

    def given(self, producer_id: int, epoch: int, owner: str) -> None:
        """A producer was told its id and epoch; ``owner`` is its transactional id, or its own name. Raises Violation."""
        other = self._ids.setdefault(producer_id, owner)
        if other != owner:
            raise Violation(ONCE, f"producer id {producer_id} has {other} and {owner}")
        if (producer_id, epoch) in self._identities:
            raise Violation(ONCE, f"producer id {producer_id}, epoch {epoch}: {owner} has it twice")
        self._identities[producer_id, epoch] = owner

    def check_offset(self, group: str, index: int, found: int, least: int) -> None:
        """A group's offset is ``found``; ``least`` was acknowledged before it was asked for. Raises Violation."""
        known = self.offsets[group, index]
        if found < least or (found >= 0 and found not in known.asked):
            raise Violation(COMMITTED, f"{group} {index}: {found} is found, {least} was acknowledged, {known.asked} asked for")


LEADERS = "one broker leads a partition in an epoch"
AGREE = "logs agree up to the high watermark"
KEPT = "what is replicated is kept"
IN_SYNC = "who is in sync has what is replicated"
_READ_BYTES = 1 << 20
Key = tuple["UUID", int]


class Batch(NamedTuple):
    """What makes a batch that batch."""

    base_offset: int
    next_offset: int
    leader_epoch: int
    crc: int


class _Seen:
    """How far a replica's log was compared: so many batches."""

    __slots__ = ("count", "offset", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.offset = 0
        self.count = 0


class Witness:
    """Of one world."""

    def __init__(self) -> None:
        self.committed: dict[Key, list[Batch]] = {}
        self.leaders: dict[tuple[UUID, int, int], int] = {}
        self._seen: dict[tuple[int, Key], _Seen] = {}

    def look(self, machines: list[Machine], image: MetadataImage | None) -> None:
        """Compare what the machines' brokers have; ``image`` is the controller's, if it is up. Raises Violation."""
        for machine in machines:
            core = machine.core
            if core is not None:
                for partition in core.partitions:
                    self._look_at(machine.node_id, partition)
        if image is not None:
            _look_at_in_sync(machines, image)

    def newest_epoch(self, partition: Partition) -> int:
        """The newest epoch in which somebody was seen to lead a partition, -1 for none."""
        key = partition.topic_id, partition.index
        return max((epoch for (*led, epoch) in self.leaders if tuple(led) == key), default=-1)

    def _look_at(self, node_id: int, partition: Partition) -> None:
        if partition.log is None:
            return
        key = partition.topic_id, partition.index
        if partition.leader is not None and partition.leader.followers is not None:
            leader = self.leaders.setdefault((*key, partition.leader_epoch), node_id)
            if leader != node_id:
                what = f"{partition.topic}-{partition.index}, epoch {partition.leader_epoch}: {leader} and {node_id}"
                raise Violation(LEADERS, what)
        seen = self._seen.get((node_id, key))
        if seen is None or seen.partition is not partition:
            seen = self._seen[node_id, key] = _Seen(partition)
        if partition.high_watermark > seen.offset:
            self._compare(node_id, partition, seen, self.committed.setdefault(key, []))

    def _compare(self, node_id: int, partition: Partition, seen: _Seen, committed: list[Batch]) -> None:
        log = partition.log
        assert log is not None
        end = min(partition.high_watermark, log.log_end_offset)
        while seen.offset < end:
            piece = log.read(seen.offset, _READ_BYTES, upper_offset=end, min_one_batch=True)
            data = bytes(piece.read())
            for _, header in iter_batches(data):
                batch = Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, header.crc)
                if seen.count == len(committed):
                    committed.append(batch)
                elif committed[seen.count] != batch:
                    what = f"{partition.topic}-{partition.index}: {node_id} has {batch}, others had {committed[seen.count]}"
                    raise Violation(AGREE, what)
                seen.count += 1
                seen.offset = header.next_offset
            if not data:
                raise Violation(AGREE, f"{partition.topic}-{partition.index}: {node_id} has nothing at {seen.offset}")

    def check_kept(self, machines: list[Machine]) -> None:
        """All replicas have all that was ever replicated. Raises Violation."""
        for machine in machines:
            core = machine.core
            for partition in () if core is None else core.partitions:
                log = partition.log
                committed = self.committed.get((partition.topic_id, partition.index))
                if log is not None and committed and log.log_end_offset < committed[-1].next_offset:
                    name = f"{partition.topic}-{partition.index}"
                    raise Violation(KEPT, f"{name}: {machine.node_id} ends at {log.log_end_offset}, not {committed[-1]}")


def _look_at_in_sync(machines: list[Machine], image: MetadataImage) -> None:
    """Compare the ends of replicas with the high watermarks of their leaders. Raises Violation."""
    known: dict[int, Partitions] = {}
    for machine in machines:
        core = machine.core
        registered = image.kept.brokers.get(machine.node_id)
        # Another process of it may have lost something, which the controller does not know yet.
        if core is None or registered is None:
            continue
        if registered.broker_epoch == member_of(core).lifecycle.broker_epoch:
            known[machine.node_id] = core.partitions
    for topic in image.topics.values():
        for index, record in topic.partitions.items():
            leader = known[record.leader].get(topic.name, index) if record.leader in known else None
            if leader is None or leader.leader is None or leader.leader_epoch != record.leader_epoch:
                continue
            for node_id in record.isr:
                replica = known[node_id].get(topic.name, index) if node_id in known else None
                if replica is None or replica.log is None or replica.topic_id != leader.topic_id:
                    continue
                if replica.log.log_end_offset < leader.high_watermark:
                    what = f"{topic.name}-{index}: {node_id} ends at {replica.log.log_end_offset}, not {leader.high_watermark}"
                    raise Violation(IN_SYNC, what)
