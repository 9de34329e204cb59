"""The states of a broker in a cluster, and the permitted transitions. Names and numbers are Kafka's (BrokerState)."""

from enum import IntEnum
from typing import Final


class BrokerState(IntEnum):
    """The metric BrokerState has the number."""

    NOT_RUNNING = 0
    # Registers, and catches up with the metadata.
    STARTING = 1
    # Opens its logs; still fenced.
    RECOVERY = 2
    RUNNING = 3
    # The controller moves its leaderships away.
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


TRANSITIONS: Final = {
    BrokerState.NOT_RUNNING: {BrokerState.STARTING, BrokerState.SHUTTING_DOWN},
    BrokerState.STARTING: {BrokerState.RECOVERY, BrokerState.SHUTTING_DOWN},
    BrokerState.RECOVERY: {BrokerState.RUNNING, BrokerState.SHUTTING_DOWN},
    BrokerState.RUNNING: {BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN},
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: {BrokerState.SHUTTING_DOWN},
    BrokerState.SHUTTING_DOWN: set(),
}


class IllegalTransition(Exception):
    """A transition that ``TRANSITIONS`` does not have."""


def ensure_transition(old: BrokerState, new: BrokerState) -> None:
    """Raise IllegalTransition unless ``new`` may follow ``old``."""
    if new not in TRANSITIONS[old]:
        raise IllegalTransition(f"{old.name} to {new.name}")
