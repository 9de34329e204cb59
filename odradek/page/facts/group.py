"""A group: its members, its partitions with both lags, and its last rebalances with their reasons.

Kafka's lag counts offsets: markers, aborted records and offsets that compaction has emptied, too. The lag in records counts
the records that a consumer would get. Only a broker can know it: this one counts in its own replica of the partition. The
rebalances are those that this broker, as coordinator, has decided on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.page.facts.source import Source

# The most batches of a partition that are counted for the lag in records.
MOST_BATCHES: Final = 20_000
MOST_REBALANCES: Final = 50


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member. ``software`` and ``version`` are None if it is not connected to this broker. ``partitions`` is None if unknown.

    ``epoch`` is that of the consumer protocol, None in classic groups.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    software: str | None
    version: str | None
    subscription: tuple[str, ...] | None
    partitions: tuple[tuple[str, int], ...] | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition with a committed offset or an owner. ``lag`` is Kafka's, None without a committed offset.

    ``lag_records`` is None if this broker has no replica, or nothing is committed. ``is_at_least``: it counted no further.
    ``not_counted`` is how many of the offsets up to there are markers, aborted, or without a record.
    """

    topic: str
    partition: int
    committed_offset: int | None
    metadata: str
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_records: int | None
    is_at_least: bool
    not_counted: int
    member_id: str | None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance. ``epoch`` is the generation, or the epoch of the target assignment. ``why`` has a line for each cause.

    ``moves`` says which partitions moved and why, where the broker assigns them. ``took_ms`` is None while it goes on, or if
    it is unknown. ``kind`` is "completed", "abandoned" or "assigned".
    """

    at_ms: int
    kind: str
    epoch: int
    cause: str
    why: tuple[str, ...]
    joined: tuple[str, ...]
    left: tuple[str, ...]
    moves: tuple[str, ...]
    members: int
    took_ms: float | None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group. ``lag`` and ``lag_records`` are sums over the partitions that have one.

    ``rebalances`` is None if another broker coordinates the group. ``may_change_offsets``: nobody commits its offsets.
    ``is_partial``: ACLs hide the rebalances, or topics.
    """

    group: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    coordinator: int
    coordinator_host: str
    coordinator_port: int
    members: tuple[MemberRow, ...]
    partitions: tuple[GroupPartition, ...]
    lag: int | None
    lag_records: int | None
    is_at_least: bool
    rebalances: tuple[Rebalance, ...] | None
    may_change_offsets: bool
    is_partial: bool


async def group(source: Source, name: str) -> GroupFacts:
    """Return a group. Raises Missing, Denied, Unavailable."""
    raise NotImplementedError
