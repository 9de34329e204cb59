"""The records of streams groups as a test writes them down: (kind, is it a tombstone, fields), as ingest decodes them."""

from typing import Any

from tests.pipeline.consumer_records import ConsumerRecord

Tasks = dict[str, list[int]]


def streams_epoch(number: int | None) -> ConsumerRecord:
    """The group's epoch; None ends the group."""
    return _record("metadata", None if number is None else {"epoch": number, "metadata_hash": 1})


def topology(**changelogs: list[str]) -> ConsumerRecord:
    """Subtopologies with these changelogs."""
    told = [
        {"subtopology_id": each, "state_changelog_topics": [{"name": name} for name in changelogs[each]]} for each in changelogs
    ]
    return _record("topology", {"epoch": 1, "subtopologies": told})


def streams_member(member_id: str, process_id: str | None) -> ConsumerRecord:
    """A member of a process; None for one that is gone."""
    told = None if process_id is None else {"client_id": f"client of {member_id}", "process_id": process_id}
    return _record("member_metadata", told, member_id=member_id)


def targets(number: int) -> ConsumerRecord:
    """The epoch of a new target assignment."""
    return _record("target_assignment_metadata", {"assignment_epoch": number})


def runs(
    member_id: str, number: int, active: Tasks, *, pending: Tasks | None = None, standby: Tasks | None = None
) -> ConsumerRecord:
    """The tasks that a member has at its epoch, and those that it is to give up."""
    told = {"active_tasks": active, "standby_tasks": standby or {}, "active_tasks_pending_revocation": pending or {}}
    listed = {
        name: [{"subtopology_id": each, "partitions": partitions} for each, partitions in tasks.items()]
        for name, tasks in told.items()
    }
    return _record("current_member_assignment", {"member_epoch": number, **listed}, member_id=member_id)


def runs_nothing(member_id: str) -> ConsumerRecord:
    """The end of a member's tasks."""
    return _record("current_member_assignment", None, member_id=member_id)


def _record(kind: str, value: dict[str, Any] | None, **key: Any) -> ConsumerRecord:
    return f"streams_group_{kind}", value is None, {"group_id": "g", **key, **(value or {})}
