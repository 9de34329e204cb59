"""The partitions that a new target assignment moves, with source, target and reason: a pure function of the targets.

    A partition p moves if its owner in the old targets, if any, is not its owner in the new targets.
    The first of these that holds is the reason:

    source is none      no member had any of p's topic             NEW_TOPIC
                        p is beyond all that members had of it     NEW_PARTITION
                        else                                       HAD_NO_OWNER
    source              p's topic does not exist any more          TOPIC_GONE
                        is no member any more                      OWNER_GONE
                        does not subscribe to p's topic            OWNER_UNSUBSCRIBED
                        had more partitions than it has now        BALANCE
                        else                                       ASSIGNORS_ORDER

BALANCE counts only topics that a member still subscribes to. If all members subscribe to the same topics, ``uniform`` moves
nothing for ASSIGNORS_ORDER; ``range`` does when its ranges shift.

When a member leaves, a tombstone removes its target before new targets are computed. A caller that needs the former owner must
keep that target until then.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID  # noqa: TC003  the type of a named tuple's field

from odradek.coordinator.group.assignor.spec import topic_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec


class MoveReason(StrEnum):
    """Why a partition moves."""

    NEW_TOPIC = "nobody had any of its topic"
    NEW_PARTITION = "the partition is new"
    HAD_NO_OWNER = "nobody had it"
    TOPIC_GONE = "its topic is gone"
    OWNER_GONE = "its owner is gone"
    OWNER_UNSUBSCRIBED = "its owner does not subscribe to its topic any more"
    BALANCE = "its owner had more than its share"
    ASSIGNORS_ORDER = "the assignor's order of members has changed"


class Move(NamedTuple):
    """A partition that moves. ``source`` is None if it had no owner, ``target`` if it gets none."""

    topic_id: UUID
    partition: int
    source: str | None
    target: str | None
    reason: MoveReason


def moves(
    previous: GroupAssignment, group: GroupSpec, given: GroupAssignment, successors: Mapping[str, str], topics: set[UUID]
) -> list[Move]:
    """Return the moves, by topic and index.

    Args:
        previous: the old targets, by the member ids of their time.
        group: the group that the new targets are for.
        given: the new targets.
        successors: the current ids of static members that have come back under another id, by former id.
        topics: the existing topics.
    """
    before: dict[tuple[UUID, int], str] = {}
    highest: dict[UUID, int] = {}
    for member_id, partitions in previous.items():
        for topic_id, indexes in partitions.items():
            highest[topic_id] = max(highest.get(topic_id, -1), *indexes, -1)
            for index in indexes:
                before[topic_id, index] = successors.get(member_id, member_id)
    after = {
        (topic_id, index): member_id
        for member_id, partitions in given.items()
        for topic_id, indexes in partitions.items()
        for index in indexes
    }
    had = _sizes(group, before)
    has = _sizes(group, after)

    def reason(topic_id: UUID, index: int, source: str | None) -> MoveReason:
        if source is None:
            if topic_id not in highest:
                return MoveReason.NEW_TOPIC
            return MoveReason.NEW_PARTITION if index > highest[topic_id] else MoveReason.HAD_NO_OWNER
        if topic_id not in topics:
            return MoveReason.TOPIC_GONE
        member = group.members.get(source)
        if member is None:
            return MoveReason.OWNER_GONE
        if topic_id not in member.topic_ids:
            return MoveReason.OWNER_UNSUBSCRIBED
        return MoveReason.BALANCE if had[source] > has[source] else MoveReason.ASSIGNORS_ORDER

    moved = [each for each in before.keys() | after.keys() if before.get(each) != after.get(each)]
    moved.sort(key=lambda each: (topic_order(each[0]), each[1]))
    return [
        Move(topic_id, index, source, after.get((topic_id, index)), reason(topic_id, index, source))
        for topic_id, index in moved
        for source in (before.get((topic_id, index)),)
    ]


def _sizes(group: GroupSpec, owners: Mapping[tuple[UUID, int], str]) -> dict[str, int]:
    """Return the number of partitions each member has, counting only topics it subscribes to."""
    found = dict.fromkeys(group.members, 0)
    for (topic_id, _), member_id in owners.items():
        if member_id in found and topic_id in group.members[member_id].topic_ids:
            found[member_id] += 1
    return found
