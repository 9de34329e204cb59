"""Wraps a third party's assignor: its input is in the order of ids and read-only, and its output is checked.

Kafka stores any assignment. If it gave one partition to two members, one of them would wait for it forever.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from odradek.coordinator.group.assignor.spec import Assign, GroupAssignment, GroupSpec, MemberSubscription, by_id, text_order


class InvalidAssignment(Exception):
    """An assignor's output that is not a valid assignment of the group. The text gives the reason."""


def checked(assign: Assign) -> Assign:
    """Wrap ``assign`` so that it raises InvalidAssignment instead of returning an invalid assignment."""

    def assign_and_check(group: GroupSpec) -> GroupAssignment:
        members = {member_id: _unchangeable(group.members[member_id]) for member_id in sorted(group.members, key=text_order)}
        topics = {topic_id: group.topics[topic_id] for topic_id in by_id(group.topics)}
        given = assign(replace(group, members=MappingProxyType(members), topics=MappingProxyType(topics)))
        _check(group, given)
        return given

    return assign_and_check


def _unchangeable(member: MemberSubscription) -> MemberSubscription:
    return replace(member, assignment=MappingProxyType(dict(member.assignment)))


def _check(group: GroupSpec, given: Any) -> None:  # noqa: ANN401  a third party's
    if not isinstance(given, Mapping):
        raise InvalidAssignment(f"a {type(given).__name__} is not an assignment by member id")
    owners: dict[tuple[object, object], str] = {}
    for member_id, partitions in given.items():
        member = group.members.get(member_id)
        if member is None:
            raise InvalidAssignment(f"{member_id} is not a member")
        for topic_id, indexes in partitions.items():
            if topic_id not in member.topic_ids:
                raise InvalidAssignment(f"{member_id} does not subscribe to topic {topic_id}")
            for index in indexes:
                if type(index) is not int or not 0 <= index < group.topics[topic_id].partition_count:
                    raise InvalidAssignment(f"topic {topic_id} has no partition {index!r}")
                if owners.setdefault((topic_id, index), member_id) != member_id:
                    raise InvalidAssignment(
                        f"{owners[topic_id, index]} and {member_id} both get partition {index} of topic {topic_id}"
                    )
