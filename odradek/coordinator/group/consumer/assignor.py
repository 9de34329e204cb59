"""What an assignor is, and the one that is there until ``uniform`` and ``range`` are.

``assign`` is a pure function: the same input gives the same assignment. A member that is in ``members`` and not in the result has
no partitions.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

Assignment: TypeAlias = Mapping[str, Mapping[UUID, AbstractSet[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """A member, the topics that it subscribes to and that exist, and its present target assignment."""

    topic_ids: frozenset[UUID]
    assignment: Mapping[UUID, AbstractSet[int]]
    instance_id: str | None = None
    rack_id: str | None = None


Assign: TypeAlias = Callable[[Mapping[str, MemberSubscription], Mapping[UUID, int]], Assignment]


def assign(members: Mapping[str, MemberSubscription], topics: Mapping[UUID, int]) -> Assignment:
    """Each partition goes to a subscriber that has it, unless that has more than its share, else to the one with the fewest."""
    found: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in members}
    counts = dict.fromkeys(members, 0)
    present = {
        (topic_id, index): member_id
        for member_id, member in members.items()
        for topic_id, indexes in member.assignment.items()
        if topic_id in member.topic_ids
        for index in indexes
    }
    left = []
    for topic_id in sorted(topics):
        subscribers = sorted(each for each, member in members.items() if topic_id in member.topic_ids)
        share = -(-topics[topic_id] // len(subscribers)) if subscribers else 0
        for index in range(topics[topic_id]):
            member_id = present.get((topic_id, index))
            if member_id is not None and len(found[member_id].get(topic_id, ())) < share:
                found[member_id].setdefault(topic_id, set()).add(index)
                counts[member_id] += 1
            elif subscribers:
                left.append((topic_id, index, subscribers))
    for topic_id, index, subscribers in left:
        member_id = min(subscribers, key=lambda each: (counts[each], each))
        found[member_id].setdefault(topic_id, set()).add(index)
        counts[member_id] += 1
    _level(members, found, counts)
    return found


def _level(members: Mapping[str, MemberSubscription], found: dict[str, dict[UUID, set[int]]], counts: dict[str, int]) -> None:
    """Move partitions, the last first, from members with two more than another to that one."""
    for poor in sorted(members, key=lambda each: (counts[each], each)):
        for rich in sorted(members, key=lambda each: (-counts[each], each)):
            for topic_id in sorted(found[rich]):
                while counts[rich] > counts[poor] + 1 and found[rich][topic_id] and topic_id in members[poor].topic_ids:
                    index = max(found[rich][topic_id])
                    found[rich][topic_id].remove(index)
                    found[poor].setdefault(topic_id, set()).add(index)
                    counts[rich] -= 1
                    counts[poor] += 1
