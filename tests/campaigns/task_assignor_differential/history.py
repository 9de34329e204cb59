"""Histories of streams groups, drawn from a seed: processes start and end, their members come, leave and come back with state on
disk; the topology gets subtopologies and partitions, and loses them. Each step is a group that needs an assignment. Its members
have what the step before assigned, or a part of it.
"""

from collections.abc import Iterator, Mapping
from random import Random
from uuid import UUID

from odradek.coordinator.group.assignor.spec import text_order
from odradek.coordinator.group.assignor.sticky_task_assignor import assign_sticky
from odradek.coordinator.group.assignor.streams_interface import (
    StreamsGroupAssignment,
    StreamsGroupSpec,
    StreamsMemberSpec,
    Tasks,
)
from tests.campaigns.task_assignor_differential.kafkas import Subtopology, Topology

STEPS = 10
# In UTF-16 the last of these is before the one ahead of it.
_LETTERS = "abz09_\u00e9\uffee\U0001f600"
_PREFIX = 6
_DIGITS = 7
_RADIX = 31
_WORD = 1 << 32


def java_hash(text: str) -> int:
    """``String.hashCode`` of Java, unsigned."""
    found = 0
    units = text.encode("utf-16-be")
    for place in range(0, len(units), 2):
        found = (found * _RADIX + int.from_bytes(units[place : place + 2])) % _WORD
    return found


def ordered_ids(random: Random, ranks: Mapping[str, int]) -> dict[str, str]:
    """New ids for these keys, in the order of the keys, whose hash in Java is the rank.

    A hash table that has such ids iterates over them by rank.
    """
    prefixes: set[str] = set()
    while len(prefixes) < len(ranks):
        prefixes.add("".join(random.choices(_LETTERS, k=_PREFIX)))
    zeros = "0" * _DIGITS
    found = {}
    for (key, rank), prefix in zip(sorted(ranks.items()), sorted(prefixes, key=text_order), strict=True):
        left = (rank - java_hash(prefix + zeros)) % _WORD
        digits = []
        for _ in range(_DIGITS):
            left, digit = divmod(left, _RADIX)
            digits.append(chr(ord("0") + digit))
        found[key] = prefix + "".join(reversed(digits))
    return found


def renamed(random: Random, group: StreamsGroupSpec) -> StreamsGroupSpec:
    """The group with new ids of members and processes, such that Kafka's hash tables have both in the order of the ids."""
    process_ids = sorted({member.process_id for member in group.members.values()})
    processes = ordered_ids(random, {process_id: rank for rank, process_id in enumerate(process_ids)})
    ranks = {}
    for process_id in process_ids:
        of_process = sorted(each for each, member in group.members.items() if member.process_id == process_id)
        ranks.update({member_id: rank for rank, member_id in enumerate(of_process)})
    members = ordered_ids(random, ranks)
    return StreamsGroupSpec(
        members={
            members[member_id]: StreamsMemberSpec(
                process_id=processes[member.process_id],
                active_tasks=member.active_tasks,
                standby_tasks=member.standby_tasks,
                task_offsets=member.task_offsets,
            )
            for member_id, member in group.members.items()
        },
        num_standby_replicas=group.num_standby_replicas,
    )


class _Client:
    """A member over time."""

    def __init__(self, process_id: str) -> None:
        self.process_id = process_id
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self.offsets: dict[str, dict[int, int]] = {}


class History:
    """A group over time. A ``scale`` of 1 is a small group."""

    def __init__(self, seed: int, scale: int = 1) -> None:
        self._random = random = Random(seed)
        self._scale = scale
        self._topology: dict[str, Subtopology] = {}
        self._members: dict[str, _Client] = {}
        self._standbys = random.choice((0, 0, 1, 1, 2, 3))
        for _ in range(random.randrange(1, 5)):
            self._add_subtopology()
        for _ in range(random.choice((1, 2, 3, 5, 8, 13)) * scale):
            self._join()

    def steps(self) -> Iterator[tuple[StreamsGroupSpec, Topology]]:
        """The group and the topology of each step."""
        random = self._random
        for _ in range(STEPS):
            group, topology = self._group(), Topology(dict(self._topology))
            yield group, topology
            self._adopt(assign_sticky(group, topology))
            for _ in range(random.choice((1, 1, 1, 2, 4))):
                random.choice(
                    (self._join, self._join, self._leave, self._leave, self._end_process, self._come_back, self._report)
                    + (
                        (self._add_subtopology, self._drop_subtopology, self._grow, self._scatter)
                        if random.random() < 0.4
                        else ()
                    )
                )()
            if random.random() < 0.1:
                self._standbys = random.randrange(4)

    def _group(self) -> StreamsGroupSpec:
        return StreamsGroupSpec(
            members={
                member_id: StreamsMemberSpec(
                    process_id=client.process_id,
                    active_tasks=client.active,
                    standby_tasks=client.standby,
                    task_offsets={each: dict(offsets) for each, offsets in client.offsets.items()},
                )
                for member_id, client in self._members.items()
            },
            num_standby_replicas=self._standbys,
        )

    def _adopt(self, assignment: StreamsGroupAssignment) -> None:
        """Let the members have it; in some steps only a part of the members' tasks."""
        share = self._random.choice((1, 1, 1, 0.8, 0.3))
        for member_id, client in self._members.items():
            given = assignment[member_id]
            client.active, client.standby = self._part(given.active, share), self._part(given.standby, share)

    def _part(self, tasks: Tasks, share: float) -> Tasks:
        kept = {
            each: frozenset(partition for partition in sorted(partitions) if self._random.random() < share)
            for each, partitions in tasks.items()
        }
        return {each: partitions for each, partitions in kept.items() if partitions}

    # ---------------------------------------------------------------------------------------------------------------- members

    def _processes(self) -> list[str]:
        return sorted({client.process_id for client in self._members.values()})

    def _some_id(self) -> str:
        return str(UUID(int=self._random.getrandbits(128)))

    def _join(self) -> None:
        known = self._processes()
        process_id = self._random.choice(known) if known and self._random.random() < 0.5 else self._some_id()
        self._members[self._some_id()] = _Client(process_id)

    def _leave(self) -> None:
        if len(self._members) > 1:
            del self._members[self._random.choice(list(self._members))]

    def _end_process(self) -> None:
        gone = self._random.choice(self._processes())
        left = {member_id: client for member_id, client in self._members.items() if client.process_id != gone}
        self._members = left or self._members

    def _come_back(self) -> None:
        """A member under another id: it has the state on its disk, and no tasks."""
        client = self._members.pop(self._random.choice(list(self._members)))
        again = self._members[self._some_id()] = _Client(client.process_id)
        for tasks in (client.active, client.standby):
            for subtopology_id, partitions in tasks.items():
                again.offsets.setdefault(subtopology_id, {}).update(dict.fromkeys(sorted(partitions), self._offset()))

    def _report(self) -> None:
        """Some members report offsets, of tasks they have or have had."""
        random = self._random
        for client in self._members.values():
            if random.random() < 0.5:
                client.offsets = {}
                for subtopology_id, subtopology in self._topology.items():
                    reported = {p: self._offset() for p in range(subtopology.partition_count) if random.random() < 0.3}
                    if reported:
                        client.offsets[subtopology_id] = reported

    def _offset(self) -> int:
        return self._random.choice((0, 7, 7, 100, 1 << 40, self._random.randrange(1000)))

    def _scatter(self) -> None:
        """Tasks that no assignor would give: some to several members."""
        random = self._random
        clients = list(self._members.values())
        for client in clients:
            client.active = client.standby = {}
        for subtopology_id, subtopology in self._topology.items():
            for partition in range(subtopology.partition_count):
                for _ in range(random.choice((0, 1, 1, 2))):
                    client = random.choice(clients)
                    client.active = _with_task(client.active, subtopology_id, partition)
                for _ in range(random.choice((0, 1, 2))):
                    client = random.choice(clients)
                    client.standby = _with_task(client.standby, subtopology_id, partition)

    # --------------------------------------------------------------------------------------------------------------- topology

    def _add_subtopology(self) -> None:
        count = self._random.choice((1, 1, 2, 3, 4, 6, 7, 12)) * self._scale
        name = "".join(self._random.choices(_LETTERS, k=self._random.randrange(1, 4)))
        self._topology[name] = Subtopology(count, self._random.random() < 0.6)

    def _drop_subtopology(self) -> None:
        if len(self._topology) > 1:
            del self._topology[self._random.choice(list(self._topology))]

    def _grow(self) -> None:
        name = self._random.choice(list(self._topology))
        count, is_stateful = self._topology[name]
        self._topology[name] = Subtopology(count + self._random.randrange(1, 9), is_stateful)


def _with_task(tasks: Tasks, subtopology_id: str, partition: int) -> Tasks:
    return {**tasks, subtopology_id: tasks.get(subtopology_id, frozenset()) | {partition}}
