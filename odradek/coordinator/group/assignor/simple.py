"""The ``simple`` assignor of share groups: partitions are shared, so a partition may have several members.

Each partition gets the same number of members, its *sharing*: the members per partition, rounded up. Each member gets the same
number of partitions, give or take one. If members subscribe to different topics, each topic is shared out by itself.

    1. partitions that cannot be assigned, or belong to no subscribed topic, are revoked
    2. a member with too many partitions loses those that most members share
    3. a partition with too many members loses the first of them
    4. members with too few partitions get those with too few members, one after the other

So members keep what they have unless the balance needs it. Kafka goes through its hash tables in another order, so its
assignments name other members, with the same numbers.

Source: ``SimpleHomogeneousAssignmentBuilder`` and ``SimpleHeterogeneousAssignmentBuilder`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from odradek.coordinator.group.assignor.spec import by_id, subscribers_of, text_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec, Partitions

SIMPLE: str = "simple"
_Partition: TypeAlias = tuple[UUID, int]


def assign_simple(group: GroupSpec, assignable: Partitions) -> GroupAssignment:
    """Return the assignment. Only the partitions in ``assignable`` are assigned."""
    member_ids = sorted(group.members, key=text_order)
    if not member_ids:
        return {}
    held: list[set[_Partition]] = [set() for _ in member_ids]
    if group.is_homogeneous:
        topic_ids = by_id(group.members[member_ids[0]].topic_ids)
        portions = [(list(range(len(member_ids))), _assignable(topic_ids, assignable))]
    else:
        subscribers = subscribers_of(group, member_ids)
        portions = [(subscribers[topic_id], _assignable([topic_id], assignable)) for topic_id in by_id(subscribers)]
    for members, partitions in portions:
        known = set(partitions)
        kept = {member: _assigned(group, member_ids[member]) & known for member in members}
        if partitions:
            _share_out(partitions, kept)
        for member, own in kept.items():
            held[member] |= own
    return {member_id: _by_topic(own) for member_id, own in zip(member_ids, held, strict=True)}


def _assignable(topic_ids: Sequence[UUID], assignable: Partitions) -> list[_Partition]:
    return [(topic_id, index) for topic_id in topic_ids for index in sorted(assignable.get(topic_id, ()))]


def _assigned(group: GroupSpec, member_id: str) -> set[_Partition]:
    assignment = group.members[member_id].assignment
    return {(topic_id, index) for topic_id, indexes in assignment.items() for index in indexes}


def _by_topic(partitions: set[_Partition]) -> dict[UUID, set[int]]:
    found: dict[UUID, set[int]] = {}
    for topic_id, index in partitions:
        found.setdefault(topic_id, set()).add(index)
    return found


def _share_out(partitions: Sequence[_Partition], kept: dict[int, set[_Partition]]) -> None:
    """Bring the members, in the order of ``kept``, to their numbers of partitions."""
    sharing = -(-len(kept) // len(partitions))
    wanted = _sizes(list(kept), sharing * len(partitions))
    counts = Counter(partition for own in kept.values() for partition in own)
    for member, own in kept.items():
        too_many = len(own) - wanted[member]
        if too_many > 0:
            for partition in sorted(own, key=lambda each: (-counts[each], each))[:too_many]:
                own.discard(partition)
                counts[partition] -= 1
    for own in kept.values():
        for partition in [each for each in own if counts[each] > sharing]:
            if counts[partition] > sharing:
                own.discard(partition)
                counts[partition] -= 1
    _fill(partitions, sharing, counts, kept, wanted)


def _sizes(members: Sequence[int], total: int) -> dict[int, int]:
    """Divide ``total`` among the members: each gets the same, give or take one."""
    ends = [-(-total * place // len(members)) for place in range(len(members) + 1)]
    return {member: ends[place + 1] - ends[place] for place, member in enumerate(members)}


def _fill(
    partitions: Sequence[_Partition],
    sharing: int,
    counts: Counter[_Partition],
    kept: dict[int, set[_Partition]],
    wanted: dict[int, int],
) -> None:
    """Give partitions with too few members to members with too few partitions.

    A partition stays short if all members that could take it have it already.
    """
    unfilled = deque(member for member, own in kept.items() if len(own) < wanted[member])
    for partition in partitions:
        for _ in range(len(unfilled)):
            if counts[partition] >= sharing:
                break
            member = unfilled.popleft()
            own = kept[member]
            if partition not in own:
                own.add(partition)
                counts[partition] += 1
            if len(own) < wanted[member]:
                unfilled.append(member)
