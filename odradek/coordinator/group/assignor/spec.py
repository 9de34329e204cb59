"""The input and output of an assignor, and the wrapper of a third party's assignor.

The wrapper sorts the input by ids, makes it read-only, and checks the output. Kafka stores any assignment. If it gave one
partition to two members, one of them would wait for it forever.

Source: ``GroupSpec``, ``MemberSubscription`` and ``GroupAssignment`` of Apache Kafka 4.4.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from odradek.coordinator.group.consumer.topics import SubscribedTopic

# A member's partitions: indexes by topic id.
Partitions: TypeAlias = Mapping[UUID, AbstractSet[int]]
# The partitions of all members, by member id. A missing member gets none.
GroupAssignment: TypeAlias = Mapping[str, Partitions]

# The two bits of a UUID that Java's Uuid, which is two signed numbers, takes for signs.
_SIGNS: Final = 1 << 127 | 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """A member of the group.

    Args:
        topic_ids: the existing topics that it subscribes to, by name or by a regular expression.
        assignment: its target assignment until now.
        instance_id: the instance id of a static member.
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
        is_homogeneous: whether all members subscribe to the same topics.
    """

    members: Mapping[str, MemberSubscription]
    topics: Mapping[UUID, SubscribedTopic]
    is_homogeneous: bool


# Called on the event loop's thread. Any exception fails the assignment: the member is answered UNKNOWN_SERVER_ERROR.
Assign: TypeAlias = Callable[[GroupSpec], GroupAssignment]


def topic_order(topic_id: UUID) -> int:
    """Return the sort key of a topic: the order of Java's ``Uuid``."""
    return topic_id.int ^ _SIGNS


def by_id(topic_ids: Iterable[UUID]) -> list[UUID]:
    """Sort topics in the order of Java's ``Uuid``."""
    return sorted(topic_ids, key=topic_order)


def text_order(text: str) -> bytes:
    """Return the sort key of a member id or instance id: UTF-16 units, the order of Java's ``String``."""
    return text.encode("utf-16-be", "surrogatepass")


def previous_targets(
    group: GroupSpec, member_ids: Sequence[str]
) -> tuple[list[dict[UUID, AbstractSet[int]]], dict[UUID, set[int]]]:
    """Return each member's still subscribed target, in the order of ``member_ids``, and the union of all of them.

    Each partition exists and appears once. In a group taken over from classic members, the targets are what those members
    reported. If two report the same partition, the first keeps it.
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
            _drop_invalid(found, topic_id, count)
            taken[topic_id].intersection_update(range(count))
    return found, taken


def _drop_invalid(kept: list[dict[UUID, AbstractSet[int]]], topic_id: UUID, count: int) -> None:
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
    """Return the subscribers of each topic as indexes into ``member_ids``, in order. Topics with equal lists share one."""
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
