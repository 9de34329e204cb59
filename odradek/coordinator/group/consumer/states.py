"""The states of a consumer group and of its members. Kafka's ``ConsumerGroupState`` and ``MemberState``.

A group's state follows from its members:

    Empty         no members
    Assigning     the target assignment is older than the group's epoch
    Reconciling   some member has not reached its target
    Stable        all members have reached their target

A member's heartbeats may bring it from any state to any other. UNKNOWN is a state in the record of a newer Kafka.
"""

from enum import IntEnum, StrEnum
from typing import Final


class ConsumerGroupState(StrEnum):
    """The state of a group, under Kafka's name."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """The state of a member, by the number in its record.

    STABLE: it has its target, or has not been told of a newer one. UNREVOKED_PARTITIONS: it must give up partitions first.
    UNRELEASED_PARTITIONS: it waits for partitions that other members have yet to give up.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_KNOWN: Final = frozenset({MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS})
TRANSITIONS: Final[dict[MemberState, frozenset[MemberState]]] = dict.fromkeys(MemberState, _KNOWN)


class IllegalTransition(ValueError):
    """A transition between member states that the table does not permit."""


def check_transition(member_id: str, old: MemberState, new: MemberState) -> None:
    """Raise IllegalTransition unless the table permits the transition."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"member {member_id} cannot go from {old.name} to {new.name}")


def state_of(number: int) -> MemberState:
    """Return the state of a record's number; UNKNOWN if only a newer Kafka knows it."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN
