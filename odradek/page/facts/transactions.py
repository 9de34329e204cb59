"""The transactions of the cluster: open ones, how old they are, and which partitions they hold back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.page.facts.source import Source


@dataclass(frozen=True, slots=True)
class TransactionPartition:
    """A partition of an open transaction. ``start_offset`` is its first offset there, None if unknown.

    ``holds_back``: readers with read_committed stop at ``last_stable_offset`` because of this transaction;
    ``offsets_behind`` is how many offsets they cannot read yet.
    """

    topic: str
    partition: int
    start_offset: int | None
    last_stable_offset: int | None
    end_offset: int | None
    holds_back: bool
    offsets_behind: int | None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id. ``is_open``: it has a transaction now. ``started_ms`` and ``age_ms`` are None otherwise.

    ``is_hanging``: no coordinator knows the transaction, so nobody will end it; it has no ``transactional_id`` then.
    """

    transactional_id: str | None
    state: str
    is_open: bool
    is_hanging: bool
    producer_id: int
    producer_epoch: int
    coordinator: int | None
    started_ms: int | None
    age_ms: int | None
    timeout_ms: int | None
    partitions: tuple[TransactionPartition, ...]


@dataclass(frozen=True, slots=True)
class Transactions:
    """All transactional ids, open ones first, the oldest first. Hanging ones are those in replicas of this broker."""

    now_ms: int
    open: tuple[TransactionRow, ...]
    others: tuple[TransactionRow, ...]
    more_others: int
    is_partial: bool


async def transactions(source: Source) -> Transactions:
    """Return the transactions. Raises Unavailable."""
    raise NotImplementedError
