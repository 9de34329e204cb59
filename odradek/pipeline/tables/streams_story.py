"""Rows from the records of one streams group (KIP-1071), read in log order: moves of its active tasks, and its tasks now.

    metadata                      a tombstone deletes the group
    topology                      the subtopologies, and their changelogs
    member_metadata               a member: its client and its process; a tombstone when it is gone
    target_assignment_metadata    a new target assignment is there
    current_member_assignment     the tasks that a member has, and those that it has to give up

A task is a subtopology and a partition. It moves when another member's record has it as an active task. The old member has it
until its record lists the task no more, not even among those to give up. The targets themselves are not read: a target that is
never reached moves nothing.

A standby of the task may have been another member's of the same process, which gives it up before the task moves. So a process
counts as having a standby if it has had one since the newest target assignment.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Self

from odradek.pipeline.schema import STREAMS_GROUP_PREFIX
from odradek.pipeline.tables.stories import Json, Record, Row

# A task in JSON: SUBTOPOLOGY_PARTITION. A subtopology's id may have underscores.
_Task = str


@dataclass(slots=True)
class _Group:
    """The state that later records may need; JSON between two passes.

    ``members`` have their client and process, ``standby`` has the tasks by member. ``holders`` has the last member of each active
    task; its ``left_us`` is when it gave the task up, None while it has it. ``copies`` has the processes with a standby of each
    task since the newest target assignment, ``stateful`` the subtopologies with changelogs; None if the topology is unknown.
    """

    members: dict[str, Json] = field(default_factory=dict)
    standby: dict[str, list[_Task]] = field(default_factory=dict)
    holders: dict[_Task, Json] = field(default_factory=dict)
    copies: dict[_Task, list[str]] = field(default_factory=dict)
    stateful: list[str] | None = None
    newest: Json = field(default_factory=dict)

    def is_there(self) -> bool:
        """Return whether anything is known of the group."""
        return bool(self.members or self.holders) or self.stateful is not None


class StreamsGroupStory:
    """The streams group ``name``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._group = _Group()

    @classmethod
    def resumed(cls, name: str, state: str) -> Self:
        """Return the story with the ``state`` that an earlier story returned."""
        story = cls(name)
        story._group = _Group(**json.loads(state))
        return story

    def state(self) -> Json | None:
        """Return the row with everything that a later pass needs; None if there is no such group."""
        group = self._group
        if not group.is_there():
            return None
        return {"group": self._name, **group.newest, "_story": json.dumps(asdict(group), sort_keys=True)}

    def take(self, record: Record) -> Iterator[Row]:
        """Apply the next record, and yield its rows."""
        group = self._group
        group.newest = record.coordinates()
        value = None if record.is_tombstone else record.fields
        member_id = record.fields.get("member_id", "")
        match record.kind.removeprefix(STREAMS_GROUP_PREFIX):
            case "metadata" if value is None:
                self._group = _Group()
            case "topology":
                group.stateful = None if value is None else _stateful(value["subtopologies"])
            case "target_assignment_metadata":
                group.copies = {}
                for each, tasks in group.standby.items():
                    self._note_standby(each, tasks)
            case "member_metadata" if value is not None:
                group.members[member_id] = {name: value[name] for name in ("client_id", "process_id")}
            case "member_metadata":
                self._forget(member_id, record.at_us)
                group.members.pop(member_id, None)
            case "current_member_assignment" if value is not None:
                yield from self._take_assignment(member_id, value, record.at_us)
            case "current_member_assignment":
                self._forget(member_id, record.at_us)

    def now(self) -> Iterator[Row]:
        """Yield a row of ``tasks_now`` for each task that a member has."""
        group = self._group
        held = {task: holder["member_id"] for task, holder in group.holders.items() if holder["left_us"] is None}
        standby: dict[_Task, list[str]] = {}
        for member_id, tasks in group.standby.items():
            for task in tasks:
                standby.setdefault(task, []).append(member_id)
        for task in sorted(held.keys() | standby.keys()):
            known = {"client_id": None, "process_id": None, **group.members.get(held.get(task, ""), {})}
            yield self._row("tasks_now", task, member_id=held.get(task), **known, standby=sorted(standby.get(task, [])))

    def _take_assignment(self, member_id: str, value: Json, at_us: int) -> Iterator[Row]:
        group = self._group
        active = _tasks(value["active_tasks"])
        self._release(member_id, {*active, *_tasks(value["active_tasks_pending_revocation"])}, at_us)
        group.standby[member_id] = _tasks(value["standby_tasks"])
        self._note_standby(member_id, group.standby[member_id])
        for task in active:
            before = group.holders.get(task, {})
            now = group.holders[task] = {"member_id": member_id, "left_us": None, **group.members.get(member_id, {})}
            if before.get("member_id") != member_id:
                yield self._move(task, before, now, generation=value["member_epoch"], at_us=at_us)

    def _move(self, task: _Task, before: Json, now: Json, *, generation: int, at_us: int) -> Row:
        group = self._group
        subtopology, _ = _parts(task)
        left_us, process = before.get("left_us"), now.get("process_id")
        return self._row(
            "task_moves",
            task,
            generation=generation,
            from_member=before.get("member_id"),
            to_member=now["member_id"],
            from_client_id=before.get("client_id"),
            to_client_id=now.get("client_id"),
            from_process=before.get("process_id"),
            to_process=process,
            is_stateful=None if group.stateful is None else subtopology in group.stateful,
            had_standby=None if process is None else process in group.copies.get(task, ()),
            away_ms=None if left_us is None else max(0, at_us - left_us) // 1000,
        )

    def _note_standby(self, member_id: str, tasks: Iterable[_Task]) -> None:
        """Note that the member's process has a standby of these tasks."""
        process = self._group.members.get(member_id, {}).get("process_id")
        for task in tasks:
            having = self._group.copies.setdefault(task, [])
            if process is not None and process not in having:
                having.append(process)

    def _forget(self, member_id: str, at_us: int) -> None:
        """Note that a member has no tasks any more."""
        self._release(member_id, set(), at_us)
        self._group.standby.pop(member_id, None)

    def _release(self, member_id: str, held: set[_Task], at_us: int) -> None:
        """Note that a member has given up all active tasks but ``held``."""
        for task, holder in self._group.holders.items():
            if holder["member_id"] == member_id and task not in held and holder["left_us"] is None:
                holder["left_us"] = at_us

    def _row(self, table: str, task: _Task, **columns: object) -> Row:
        subtopology, partition = _parts(task)
        place = {"group": self._name, "subtopology": subtopology, "partition": partition}
        return Row(table, place | columns | self._group.newest)


def _tasks(tasks: list[Json]) -> list[_Task]:
    return sorted(f"{each['subtopology_id']}_{partition}" for each in tasks for partition in each["partitions"])


def _parts(task: _Task) -> tuple[str, int]:
    subtopology, _, partition = task.rpartition("_")
    return subtopology, int(partition)


def _stateful(subtopologies: list[Json]) -> list[str]:
    return [each["subtopology_id"] for each in subtopologies if each["state_changelog_topics"]]
