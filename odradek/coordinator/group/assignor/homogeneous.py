"""``uniform``, where all members subscribe to the same topics.

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

Sizes differ by one at most. No partition moves that need not: the sum of all |kept(m)| is the most that such sizes allow.

Source: ``UniformHomogeneousAssignmentBuilder`` of Apache Kafka 4.3.
"""

from collections.abc import Set as AbstractSet
from itertools import islice
from uuid import UUID

from odradek.coordinator.group.assignor.spec import GroupAssignment, GroupSpec, by_id, targets_until_now, text_order


def assign_homogeneous(group: GroupSpec) -> GroupAssignment:
    """The assignment."""
    members = sorted(group.members, key=text_order)
    if not members:
        return {}
    topic_ids = by_id(group.members[members[0]].topic_ids)
    after, owned = targets_until_now(group, members)
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
    """How many partitions each member gets, by how many it has."""
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
    """Take away all but the first ``quota``. Those that are taken."""
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
