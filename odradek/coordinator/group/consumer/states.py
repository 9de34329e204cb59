"""The states of a consumer group and of its members. Kafka's ``ConsumerGroupState`` and ``MemberState``.

A group's state follows from its members:

    Empty         it has none
    Assigning     the target assignment is older than the group's epoch
    Reconciling   a member has not come to its target
    Stable        all have

A member goes from any state to any other, as far as its own heartbeats bring it; UNKNOWN is that of a newer Kafka's record.
"""

from enum import IntEnum, StrEnum
from typing import Final


class ConsumerGroupState(StrEnum):
    """The state of a group, as Kafka names it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """The state of a member, by the number in its record.

    STABLE: it has its target, or has not been told of a newer one. UNREVOKED_PARTITIONS: it has to give up partitions first.
    UNRELEASED_PARTITIONS: it waits for partitions that others have yet to give up.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_KNOWN: Final = frozenset({MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS})
TRANSITIONS: Final[dict[MemberState, frozenset[MemberState]]] = dict.fromkeys(MemberState, _KNOWN)


class IllegalTransition(ValueError):
    """A member's state cannot be followed by that one."""


def check_transition(member_id: str, old: MemberState, new: MemberState) -> None:
    """Raise IllegalTransition where the table does not permit it."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"member {member_id} cannot go from {old.name} to {new.name}")


def state_of(number: int) -> MemberState:
    """The state of a record. UNKNOWN where only a newer Kafka knows it."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN
