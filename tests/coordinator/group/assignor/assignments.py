"""Assignments as tests and the campaign compare them."""

from collections.abc import Mapping
from uuid import UUID

# By member id and topic id; members and topics without partitions are left out.
Plain = Mapping[str, Mapping[UUID, frozenset[int]]]


def plain(assignment):
    """An assignment without members and topics that have no partitions."""
    kept = {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in partitions.items() if indexes}
        for member_id, partitions in assignment.items()
    }
    return {member_id: partitions for member_id, partitions in kept.items() if partitions}


def owners(assignment):
    """The members that have each partition."""
    found = {}
    for member_id, partitions in assignment.items():
        for topic_id, indexes in partitions.items():
            for index in indexes:
                found.setdefault((topic_id, index), []).append(member_id)
    return found


def sizes(group, assignment):
    """How many partitions each member has."""
    return {member_id: sum(map(len, assignment.get(member_id, {}).values())) for member_id in group.members}


def kept(group, assignment):
    """How many partitions stay with their members."""
    return sum(
        len(frozenset(indexes) & assignment.get(member_id, {}).get(topic_id, frozenset()))
        for member_id, member in group.members.items()
        for topic_id, indexes in member.assignment.items()
    )
