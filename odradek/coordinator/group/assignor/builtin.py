"""The built-in assignors, under Kafka's names. ``uniform`` has a file of its own.

``range``: each subscriber of a topic gets a range of its partitions, in the same order of members in every topic.

    For each topic t, with n partitions and the k subscribers S(t), static members first, by instance id, then the others by
    member id:

        low = n div k        extra = n mod k
        first(i) = i * low + min(i, extra)
        S(t)[i] gets the partitions first(i) to first(i + 1) - 1 of t

A member's previous partitions do not count. An absent static member keeps its partitions, as it keeps its place.

Source: ``RangeAssignor`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.assignor.spec import Assign, subscribers_of, text_order
from odradek.coordinator.group.assignor.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec, MemberSubscription


def assign_range(group: GroupSpec) -> GroupAssignment:
    """Return the ``range`` assignment."""
    members = [member_id for member_id, _ in sorted(group.members.items(), key=_order)]
    after: list[dict[UUID, AbstractSet[int]]] = [{} for _ in members]
    for topic_id, subscribers in subscribers_of(group, members).items():
        low, extra = divmod(group.topics[topic_id].partition_count, len(subscribers))
        first = 0
        for place, member in enumerate(subscribers if low else subscribers[:extra]):
            end = first + low + (place < extra)
            after[member][topic_id] = frozenset(range(first, end))
            first = end
    return dict(zip(members, after, strict=True))


def _order(item: tuple[str, MemberSubscription]) -> tuple[bool, bytes, bytes]:
    member_id, member = item
    return member.instance_id is None, text_order(member.instance_id or ""), text_order(member_id)


ASSIGNORS: Final[Mapping[str, Assign]] = {"uniform": assign_uniform, "range": assign_range}
