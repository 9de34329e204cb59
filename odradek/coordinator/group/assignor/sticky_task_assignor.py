"""The ``sticky`` task assignor of streams groups (KIP-1071).

Each task gets one active member, and ``num_standby_replicas`` standby members if it has state. No process gets a task twice.
If there are too few processes, a task has fewer standbys.

    count(m)     the tasks that member m has so far
    load(p)      the tasks that process p has so far, divided by its members
    quota        the tasks still to be given, divided by the members that have not reached the quota, rounded up. A member that
                 reaches it leaves the division, with its tasks. There is a quota for active tasks, and one for all tasks

    Active tasks, by partition and then by subtopology:
    1. a task stays with its active member, if that is below the quota
    2. a task goes to a member that has its state, if that is below the quota
    3. all others, by subtopology and then by partition, go to the least loaded process, and in it to the member with the
       fewest tasks

    Standby tasks, in the reverse of these orders:
    1. a standby goes to the member that was active until now, if that is below the quota and its process has no such task
    2. a standby goes to a member that has its state, on the same conditions
    3. all others go to the least loaded process without such a task

A member *has the state* of a task if it is its standby, or has reported offsets of it. Standbys come first, then the highest
offsets. The first of these members is taken, unless a later one is less loaded and its process is, too.

Members and processes are ordered by id. Kafka iterates over hash tables, in an order it does not promise. Given members and
processes in our order, it computes the same assignment. Its order of equally loaded processes and members is that of
``java.util.PriorityQueue``, which is why there is one here.

Source: ``StickyTaskAssignor`` and ``ProcessState`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from odradek.coordinator.group.assignor.spec import text_order
from odradek.coordinator.group.assignor.streams_interface import MemberTasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.coordinator.group.assignor.streams_interface import (
        StreamsGroupAssignment,
        StreamsGroupSpec,
        Tasks,
        TopologyDescriber,
    )

STICKY: Final = "sticky"

# The place of the subtopology in the order of their ids, and the partition.
_Task: TypeAlias = tuple[int, int]
_Item = TypeVar("_Item")


def assign_sticky(group: StreamsGroupSpec, topology: TopologyDescriber) -> StreamsGroupAssignment:
    """Return the assignment. All members are in it, those without tasks, too."""
    if not group.members:
        return {}
    subtopology_ids = sorted(topology.subtopologies(), key=text_order)
    counts = [topology.max_num_input_partitions(subtopology_id) for subtopology_id in subtopology_ids]
    active = [(place, partition) for place, count in enumerate(counts) for partition in range(count)]
    stateful = {place for place, subtopology_id in enumerate(subtopology_ids) if topology.is_stateful(subtopology_id)}
    standby = [task for task in active if task[0] in stateful] if group.num_standby_replicas > 0 else []
    assignment = _Assignment(group, subtopology_ids, len(active), len(active) + len(standby) * group.num_standby_replicas)
    assignment.assign_active(active)
    assignment.assign_standby(standby, group.num_standby_replicas)
    return {
        member.member_id: MemberTasks(
            active=_by_subtopology(member.active, subtopology_ids),
            standby=_by_subtopology(member.standby, subtopology_ids),
            warmup={},
        )
        for member in assignment.members
    }


def _by_subtopology(tasks: Iterable[_Task], subtopology_ids: Sequence[str]) -> Tasks:
    found: dict[str, set[int]] = {}
    for place, partition in tasks:
        found.setdefault(subtopology_ids[place], set()).add(partition)
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in found.items()}


class _PriorityQueue(Generic[_Item]):
    """A heap whose order of equal items is that of ``java.util.PriorityQueue``."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[float, _Item]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, key: float, item: _Item) -> None:
        """Add an item."""
        heap = self._heap
        entry = (key, item)
        heap.append(entry)
        place = len(heap) - 1
        while place > 0:
            parent = (place - 1) >> 1
            if key >= heap[parent][0]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = entry

    def pop(self) -> _Item:
        """Remove and return the item with the lowest key."""
        heap = self._heap
        first = heap[0]
        last = heap.pop()
        size = len(heap)
        if size:
            place = 0
            while (child := 2 * place + 1) < size:
                if child + 1 < size and heap[child][0] > heap[child + 1][0]:
                    child += 1
                if last[0] <= heap[child][0]:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = last
        return first[1]


class _Member:
    """A member and the tasks it gets."""

    __slots__ = ("active", "count", "member_id", "process", "standby")

    def __init__(self, member_id: str, process: ProcessState) -> None:
        self.member_id = member_id
        self.process = process
        self.count = 0
        self.active: list[_Task] = []
        self.standby: list[_Task] = []


class ProcessState:
    """A process, its members and the tasks they get."""

    __slots__ = ("_by_count", "load", "members", "tasks")

    def __init__(self) -> None:
        self.members: list[_Member] = []
        self.tasks: set[_Task] = set()
        self.load = 0.0
        self._by_count: _PriorityQueue[_Member] | None = None

    def add_to_member(self, member: _Member, task: _Task, *, is_active: bool) -> None:
        """Give a task to this member."""
        # Kafka builds the queue anew after this, which decides the order of equals.
        self._by_count = None
        self._add(member, task, is_active=is_active)

    def add_to_least_loaded(self, task: _Task, *, is_active: bool) -> int:
        """Give a task to the member with the fewest, and return how many that has then."""
        if len(self.members) == 1:
            member = self.members[0]
            self._add(member, task, is_active=is_active)
            return member.count
        if self._by_count is None:
            self._by_count = _PriorityQueue()
            for each in self.members:
                self._by_count.push(each.count, each)
        member = self._by_count.pop()
        self._add(member, task, is_active=is_active)
        self._by_count.push(member.count, member)
        return member.count

    def _add(self, member: _Member, task: _Task, *, is_active: bool) -> None:
        self.tasks.add(task)
        self.load = len(self.tasks) / len(self.members)
        member.count += 1
        (member.active if is_active else member.standby).append(task)


class _Quota:
    """The tasks that a member may have before others go first."""

    __slots__ = ("_members", "_tasks", "value")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.value = -(-tasks // members)

    def note(self, count: int) -> None:
        """Count a member that now has so many tasks."""
        if count == self.value:
            self._tasks -= count
            self._members -= 1
            self.value = -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    """An assignment in the making."""

    __slots__ = ("_active_quota", "_previous_active", "_processes", "_quota", "_with_state", "members")

    def __init__(self, group: StreamsGroupSpec, subtopology_ids: Sequence[str], active_task_count: int, task_count: int) -> None:
        self._active_quota = _Quota(active_task_count, len(group.members))
        self._quota = _Quota(task_count, len(group.members))
        process_ids = sorted({member.process_id for member in group.members.values()}, key=text_order)
        processes = {process_id: ProcessState() for process_id in process_ids}
        self._processes = list(processes.values())
        self.members: list[_Member] = []
        for member_id in sorted(group.members, key=text_order):
            process = processes[group.members[member_id].process_id]
            member = _Member(member_id, process)
            process.members.append(member)
            self.members.append(member)
        places = {subtopology_id: place for place, subtopology_id in enumerate(subtopology_ids)}
        # If several members have had an active task, the last counts, as in Kafka.
        self._previous_active: dict[_Task, _Member] = {
            task: member for member in self.members for task in _tasks(group.members[member.member_id].active_tasks, places)
        }
        self._with_state = _members_with_state(group, self.members, places)

    def assign_active(self, tasks: Sequence[_Task]) -> None:
        """Give each task, sorted by subtopology, an active member."""
        given: set[_Task] = set()
        by_partition = sorted(tasks, key=_by_partition)
        for task in by_partition:
            member = self._previous_active.get(task)
            if member is not None and member.count < self._active_quota.value:
                self._give_active(member, task)
                given.add(task)
        for task in by_partition:
            if task not in given:
                member = _least_loaded(self._with_state.get(task, ()))
                if member is not None and member.count < self._active_quota.value:
                    self._give_active(member, task)
                    given.add(task)
        by_load = self._processes_by_load()
        for task in tasks:
            if task not in given:
                process = by_load.pop()
                count = process.add_to_least_loaded(task, is_active=True)
                self._active_quota.note(count)
                self._quota.note(count)
                by_load.push(process.load, process)

    def _give_active(self, member: _Member, task: _Task) -> None:
        member.process.add_to_member(member, task, is_active=True)
        self._active_quota.note(member.count)
        self._quota.note(member.count)

    def assign_standby(self, tasks: Sequence[_Task], replicas: int) -> None:
        """Give each task up to so many standby members."""
        unassigned: list[tuple[_Task, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            left = replicas
            while left > 0 and (member := self._previous_holder(task)) is not None:
                member.process.add_to_member(member, task, is_active=False)
                self._quota.note(member.count)
                left -= 1
            if left:
                unassigned.append((task, left))
        unassigned.sort(reverse=True)
        by_load = self._processes_by_load()
        for task, left in unassigned:
            for _ in range(left):
                if not self._give_standby(by_load, task):
                    break

    def _previous_holder(self, task: _Task) -> _Member | None:
        """Return the member that keeps a standby of this task for its state, or None."""
        member = self._previous_active.get(task)
        if member is not None and task not in member.process.tasks and member.count < self._quota.value:
            return member
        member = _least_loaded([each for each in self._with_state.get(task, ()) if task not in each.process.tasks])
        return member if member is not None and member.count < self._quota.value else None

    def _give_standby(self, by_load: _PriorityQueue[ProcessState], task: _Task) -> bool:
        """Give a standby task to the least loaded process that can take it. Return False if none can."""
        passed_over: list[ProcessState] = []
        is_given = False
        while len(by_load) and not is_given:
            process = by_load.pop()
            passed_over.append(process)
            if task not in process.tasks:
                self._quota.note(process.add_to_least_loaded(task, is_active=False))
                is_given = True
        for process in reversed(passed_over):
            by_load.push(process.load, process)
        return is_given

    def _processes_by_load(self) -> _PriorityQueue[ProcessState]:
        queue: _PriorityQueue[ProcessState] = _PriorityQueue()
        for process in self._processes:
            queue.push(process.load, process)
        return queue


def _by_partition(task: _Task) -> _Task:
    place, partition = task
    return partition, place


def _tasks(tasks: Tasks, places: Mapping[str, int]) -> list[_Task]:
    """Return the tasks of subtopologies that still exist."""
    return [
        (places[subtopology_id], partition)
        for subtopology_id, partitions in tasks.items()
        if subtopology_id in places
        for partition in partitions
    ]


def _members_with_state(
    group: StreamsGroupSpec, members: Sequence[_Member], places: Mapping[str, int]
) -> dict[_Task, list[_Member]]:
    """Return the members that have the state of each task: standbys first, then by offset, the highest first."""
    found: dict[_Task, list[tuple[bool, int, _Member]]] = {}
    for member in members:
        spec = group.members[member.member_id]
        offsets = {
            (places[subtopology_id], partition): offset
            for subtopology_id, by_partition in spec.task_offsets.items()
            if subtopology_id in places
            for partition, offset in by_partition.items()
        }
        for task in _tasks(spec.standby_tasks, places):
            found.setdefault(task, []).append((False, -offsets.pop(task, 0), member))
        for task, offset in offsets.items():
            found.setdefault(task, []).append((True, -offset, member))
    return {task: [member for _, _, member in sorted(candidates, key=_by_rank)] for task, candidates in found.items()}


def _by_rank(candidate: tuple[bool, int, _Member]) -> tuple[bool, int]:
    return candidate[0], candidate[1]


def _least_loaded(members: Iterable[_Member]) -> _Member | None:
    """Return the first member, or a later one if both it and its process are less loaded."""
    chosen = None
    for member in members:
        if chosen is None or (member.process.load < chosen.process.load and member.count < chosen.count):
            chosen = member
    return chosen
