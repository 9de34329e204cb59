"""What an assignor is given, and what it gives.

Source: ``GroupSpec``, ``MemberSubscription`` and ``GroupAssignment`` of Apache Kafka 4.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from odradek.coordinator.group.consumer.topics import SubscribedTopic

# A member's partitions: indexes by topic id.
Partitions: TypeAlias = Mapping[UUID, AbstractSet[int]]
# The partitions of all members, by member id. A member that is not in it gets none.
GroupAssignment: TypeAlias = Mapping[str, Partitions]

# The two bits of a UUID that Java's Uuid, which is two signed numbers, takes for signs.
_SIGNS: Final = 1 << 127 | 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """A member of the group.

    Args:
        topic_ids: the topics that it subscribes to and that exist, by name or by a regular expression.
        assignment: its target assignment until now.
        instance_id: that of a static member.
        rack_id: its ``client.rack``.
    """

    topic_ids: frozenset[UUID]
    assignment: Partitions
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group that needs an assignment. Nothing in it may be changed.

    Args:
        members: by member id.
        topics: all topics that members subscribe to, by id.
        is_homogeneous: whether all members subscribe to the same.
    """

    members: Mapping[str, MemberSubscription]
    topics: Mapping[UUID, SubscribedTopic]
    is_homogeneous: bool


# Called on the event loop's thread. Any exception is an assignment that failed: the member is told UNKNOWN_SERVER_ERROR.
Assign: TypeAlias = Callable[[GroupSpec], GroupAssignment]


def topic_order(topic_id: UUID) -> int:
    """The key by which topics are sorted: the order of Java's ``Uuid``."""
    return topic_id.int ^ _SIGNS


def by_id(topic_ids: Iterable[UUID]) -> list[UUID]:
    """Topics in their order."""
    return sorted(topic_ids, key=topic_order)


def text_order(text: str) -> bytes:
    """The key by which member ids and instance ids are sorted: UTF-16 units, the order of Java's ``String``."""
    return text.encode("utf-16-be", "surrogatepass")


def targets_until_now(
    group: GroupSpec, member_ids: Sequence[str]
) -> tuple[list[dict[UUID, AbstractSet[int]]], dict[UUID, set[int]]]:
    """What of each member's target it still subscribes to, in the order of ``member_ids``; and all of it together.

    No partition is in it twice, and none that does not exist: of a group that was taken over from classic members, the target
    is what these said. The first of two keeps such a partition.
    """
    found: list[dict[UUID, AbstractSet[int]]] = []
    sizes: dict[UUID, int] = {}
    taken: dict[UUID, set[int]] = {}
    for member_id in member_ids:
        member = group.members[member_id]
        kept: dict[UUID, AbstractSet[int]] = {}
        for topic_id, indexes in member.assignment.items():
            if indexes and topic_id in member.topic_ids:
                kept[topic_id] = indexes
                taken.setdefault(topic_id, set()).update(indexes)
                sizes[topic_id] = sizes.get(topic_id, 0) + len(indexes)
        found.append(kept)
    for topic_id, size in sizes.items():
        count = group.topics[topic_id].partition_count
        if len(taken[topic_id]) != size or max(taken[topic_id]) >= count:
            _mend(found, topic_id, count)
            taken[topic_id].intersection_update(range(count))
    return found, taken


def _mend(kept: list[dict[UUID, AbstractSet[int]]], topic_id: UUID, count: int) -> None:
    free = set(range(count))
    for each in kept:
        if topic_id in each:
            own = free.intersection(each[topic_id])
            free -= own
            if own:
                each[topic_id] = frozenset(own)
            else:
                del each[topic_id]


def subscribers_of(group: GroupSpec, member_ids: Sequence[str]) -> dict[UUID, list[int]]:
    """The subscribers of each topic, as places in ``member_ids``, in order. Topics with the same share one list."""
    alike: dict[frozenset[UUID], list[int]] = {}
    for place, member_id in enumerate(member_ids):
        alike.setdefault(group.members[member_id].topic_ids, []).append(place)
    kinds: dict[UUID, list[int]] = {}
    places = list(alike.values())
    for kind, topic_ids in enumerate(alike):
        for topic_id in topic_ids:
            kinds.setdefault(topic_id, []).append(kind)
    lists: dict[tuple[int, ...], list[int]] = {}
    found = {}
    for topic_id, of_topic in kinds.items():
        key = tuple(of_topic)
        known = lists.get(key)
        if known is None:
            known = lists[key] = sorted(place for kind in key for place in places[kind])
        found[topic_id] = known
    return found
