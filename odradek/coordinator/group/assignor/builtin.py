"""The built-in assignors, under Kafka's names: uniform and range.

``uniform``: gives members the same number of partitions, whatever the topic, and moves as few of them as it can.

Racks are ignored: Kafka's assignor has ignored them since 4.0.

1. If all members subscribe to the same topics:

    P            the partitions of these topics, n of them, by topic and index
    M            the k members, by id
    before(m)    m's target until now, as far as it is in P

    low = n div k        extra = n mod k
    H = the members with |before(m)| > low
    E = the first extra of H                               if H has as many,
        H, and the last extra - |H| of M - H               else
    quota(m) = low + 1 for those in E, low for others

    kept(m)  = the first quota(m) of before(m), by topic and index
    free     = those of P that are in no before(m), in order; then before(m) - kept(m) of each m in order
    after(m) = kept(m), and the next quota(m) - |kept(m)| of free

Sizes differ by one at most. No partition moves needlessly: the sum of all |kept(m)| is the most that such sizes allow.

2. If members subscribe to different topics:

    S(t)       the subscribers of topic t, by id
    size(m)    the number of partitions m has so far

    1. each member keeps what it had and still subscribes to
    2. the partitions of t without an owner go, by index, to the members of S(t) with the fewest: one round of all that have the
       fewest, then one of all that have as many now, and so on
    3. while size differs by more than one within S(t), a partition of t, the last that its owner has, goes from one of the
       members with the most to one of those with the fewest

Topics are sorted by partitions per subscriber (most first), then by subscribers (fewest first), then by id. Step 3 repeats over
all topics until a whole round moves nothing, 16 times at most. If subscriptions overlap in part, a move for one topic may upset
another, and the result is only nearly balanced. If the subscribers of each topic subscribe to the same topics, it is balanced.

Sources for ``uniform``: ``UniformAssignor``, ``UniformHomogeneousAssignmentBuilder`` and
``UniformHeterogeneousAssignmentBuilder`` of Kafka 4.4.

``range``: each subscriber of a topic gets a range of its partitions, in the same order of members in every topic.

    For each topic t, with n partitions and the k subscribers S(t), static members first, by instance id, then the others by
    member id:

        low = n div k        extra = n mod k
        first(i) = i * low + min(i, extra)
        S(t)[i] gets the partitions first(i) to first(i + 1) - 1 of t

A member's previous partitions do not count. An absent static member keeps its partitions, as it keeps its place.

Source for ``range``: ``RangeAssignor`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.assignor.spec import (
    Assign,
    GroupAssignment,
    GroupSpec,
    by_id,
    previous_targets,
    subscribers_of,
    text_order,
    topic_order,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.assignor.spec import MemberSubscription

_MAX_ROUNDS: Final = 16
_NO_MEMBER: Final = -1


def assign_heterogeneous(group: GroupSpec) -> GroupAssignment:
    """Return the assignment if members subscribe to different topics."""
    members = sorted(group.members, key=text_order)
    before, _ = previous_targets(group, members)
    subscribers = subscribers_of(group, members)
    ordered = sorted(
        subscribers,
        key=lambda topic_id: (
            -group.topics[topic_id].partition_count / len(subscribers[topic_id]),
            len(subscribers[topic_id]),
            topic_order(topic_id),
        ),
    )
    sizes = [sum(map(len, each.values())) for each in before]
    owners = {topic_id: [_NO_MEMBER] * group.topics[topic_id].partition_count for topic_id in ordered}
    for member, kept in enumerate(before):
        for topic_id, indexes in kept.items():
            for index in indexes:
                owners[topic_id][index] = member
    for topic_id in ordered:
        _assign_unowned(owners[topic_id], subscribers[topic_id], sizes)
    _balance([(owners[topic_id], subscribers[topic_id]) for topic_id in ordered if len(subscribers[topic_id]) > 1], sizes)
    after: list[dict[UUID, set[int]]] = [{} for _ in members]
    for topic_id, owned in owners.items():
        for index, member in enumerate(owned):
            after[member].setdefault(topic_id, set()).add(index)
    return dict(zip(members, after, strict=True))


def _assign_unowned(owners: list[int], subscribers: list[int], sizes: list[int]) -> None:
    """Do step 2, for one topic."""
    free = [index for index, owner in enumerate(owners) if owner == _NO_MEMBER]
    if not free:
        return
    members = _MembersBySize(subscribers, sizes)
    for index in free:
        member = members.next_recipient()
        owners[index] = member
        sizes[member] += 1


def _balance(topics: list[tuple[list[int], list[int]]], sizes: list[int]) -> None:
    """Do step 3, for topics with their owners and subscribers."""
    last_moved = _NO_MEMBER
    # Many topics share a list of subscribers. These lists have been found level since the last move.
    level: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        for place, (owners, subscribers) in enumerate(topics):
            if place == last_moved:
                return
            has_moved = False
            if id(subscribers) not in level:
                of_each = [sizes[member] for member in subscribers]
                if max(of_each) - min(of_each) <= 1:
                    level.add(id(subscribers))
                elif _level(owners, subscribers, sizes):
                    has_moved = True
                    level.clear()
            if has_moved or last_moved == _NO_MEMBER:
                last_moved = place


def _level(owners: list[int], subscribers: list[int], sizes: list[int]) -> bool:
    """Do step 3, for one topic. Return whether a partition has moved."""
    held: dict[int, list[int]] = {}
    for index, owner in enumerate(owners):
        held.setdefault(owner, []).append(index)
    members = _MembersBySize(subscribers, sizes)
    has_moved = False
    while True:
        donor = members.next_donor(held)
        if donor == _NO_MEMBER:
            return has_moved
        index = held[donor].pop()
        recipient = members.next_recipient()
        if members.is_level:
            return has_moved
        owners[index] = recipient
        sizes[donor] -= 1
        sizes[recipient] += 1
        has_moved = True


class _MembersBySize:
    """The subscribers of a topic by size: chooses the next to get a partition, and the next to lose one.

        size │                  ◦ ◦     passed over: they have no partition of this topic to lose
             │            ▒ ▒ ▒         the largest: one loses after the other, from the right; then the size falls
             │      · · ·
             │  ▓ ▓                     the smallest: one gets after the other, from the left; then the size rises
             └───────────────────────>  members by size, then by id

    As a level rises or falls, it takes in the members of its new size. The caller changes ``sizes`` with each returned member.
    """

    __slots__ = (
        "_largest",
        "_largest_begin",
        "_largest_end",
        "_largest_size",
        "_order",
        "_sizes",
        "_smallest",
        "_smallest_end",
        "_smallest_size",
    )

    def __init__(self, subscribers: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._order = sorted(subscribers, key=sizes.__getitem__)
        self._smallest = self._smallest_end = 0
        self._smallest_size = sizes[self._order[0]] - 1
        self._largest_begin = self._largest_end = len(self._order)
        self._largest_size = sizes[self._order[-1]] + 1
        self._largest = self._largest_end - 1

    @property
    def is_level(self) -> bool:
        """Return whether moving one more partition would gain nothing."""
        return self._largest_size - self._smallest_size <= 1

    def next_recipient(self) -> int:
        """Return the member that gets the next partition."""
        order, sizes = self._order, self._sizes
        if self._smallest >= self._smallest_end:
            self._smallest_size += 1
            while self._smallest_end < len(order) and sizes[order[self._smallest_end]] == self._smallest_size:
                self._smallest_end += 1
            self._smallest = 0
        member = order[self._smallest]
        self._smallest += 1
        return member

    def next_donor(self, held: dict[int, list[int]]) -> int:
        """Return the member that loses one of its partitions in ``held``; ``_NO_MEMBER`` if no candidate has any."""
        order = self._order
        while True:
            if self._largest < self._largest_begin:
                self._lower()
            if self._largest < 0:
                return _NO_MEMBER
            place = self._largest
            member = order[place]
            self._largest -= 1
            if held.get(member):
                return member
            # Move the member out of the way, behind the largest.
            self._largest_end -= 1
            order[place], order[self._largest_end] = order[self._largest_end], member

    def _lower(self) -> None:
        """Lower the largest size: all have lost a partition or been passed over."""
        order, sizes = self._order, self._sizes
        if self._largest_begin < self._largest_end or self._largest_begin == 0:
            self._largest_size -= 1
        else:
            # No member is largest: take the next size that has members.
            self._largest_size = sizes[order[self._largest_begin - 1]]
        while self._largest_begin > 0 and sizes[order[self._largest_begin - 1]] == self._largest_size:
            self._largest_begin -= 1
        self._largest = self._largest_end - 1


def assign_homogeneous(group: GroupSpec) -> GroupAssignment:
    """Return the assignment if all members subscribe to the same topics."""
    members = sorted(group.members, key=text_order)
    if not members:
        return {}
    topic_ids = by_id(group.members[members[0]].topic_ids)
    after, owned = previous_targets(group, members)
    sizes = [sum(map(len, before.values())) for before in after]
    free = _without_owner(group, topic_ids, owned)
    quotas = _quotas(sizes, sum(group.topics[topic_id].partition_count for topic_id in topic_ids))
    for before, size, quota in zip(after, sizes, quotas, strict=True):
        if size > quota:
            free += _revoke(before, quota)
    left = iter(free)
    for kept, size, quota in zip(after, sizes, quotas, strict=True):
        if size < quota:
            _give(kept, list(islice(left, quota - size)))
    return dict(zip(members, after, strict=True))


def _quotas(sizes: list[int], total: int) -> list[int]:
    """Return the number of partitions for each member, in the order of ``sizes``."""
    low, extra = divmod(total, len(sizes))
    quotas = [low] * len(sizes)
    having = [index for index, size in enumerate(sizes) if size > low]
    others = [index for index, size in enumerate(sizes) if size <= low]
    chosen = having[:extra] + others[len(others) - max(extra - len(having), 0) :]
    for index in chosen:
        quotas[index] += 1
    return quotas


def _without_owner(group: GroupSpec, topic_ids: list[UUID], owned: dict[UUID, set[int]]) -> list[tuple[UUID, int]]:
    found: list[tuple[UUID, int]] = []
    for topic_id in topic_ids:
        free = set(range(group.topics[topic_id].partition_count)) - owned.get(topic_id, set())
        found += [(topic_id, index) for index in sorted(free)]
    return found


def _revoke(partitions: dict[UUID, AbstractSet[int]], quota: int) -> list[tuple[UUID, int]]:
    """Take away and return all but the first ``quota`` partitions."""
    ordered = [(topic_id, index) for topic_id in by_id(partitions) for index in sorted(partitions[topic_id])]
    partitions.clear()
    _give(partitions, ordered[:quota])
    return ordered[quota:]


def _give(partitions: dict[UUID, AbstractSet[int]], given: list[tuple[UUID, int]]) -> None:
    """Add partitions, which are sorted by topic or nearly so."""
    added: dict[UUID, set[int]] = {}
    for topic_id, index in given:
        added.setdefault(topic_id, set()).add(index)
    for topic_id, indexes in added.items():
        partitions[topic_id] = indexes | partitions.get(topic_id, frozenset())


def assign_uniform(group: GroupSpec) -> GroupAssignment:
    """Return the ``uniform`` assignment."""
    return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)


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
