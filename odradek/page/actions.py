"""The changes that the page makes, by Kafka's protocol, with the rights of its user.

Each function returns a plain result, or raises ActionFailed with one line for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.page.facts.source import Source

Partition = tuple[str, int]


class ActionFailed(Exception):
    """A change that was not made. ``reason`` says what happened, to what, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Written:
    """The place of a record that was written."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class NewOffset:
    """A committed offset that was changed. ``before`` is None if nothing was committed, ``after`` if it was deleted."""

    topic: str
    partition: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Target:
    """The place where offsets go: exactly one field is set.

    ``offset``: to this one. ``shift``: by so many. ``timestamp_ms``: to the first record at or after it. ``place``: "start"
    or "end". An offset outside of the log becomes the nearer end of the log.
    """

    offset: int | None = None
    shift: int | None = None
    timestamp_ms: int | None = None
    place: str | None = None


async def create_topic(
    source: Source,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic, with the broker's defaults for what is None."""
    raise NotImplementedError


async def delete_topic(source: Source, name: str) -> None:
    """Delete a topic with all its records."""
    raise NotImplementedError


async def add_partitions(source: Source, topic: str, count: int) -> None:
    """Raise the number of partitions to ``count``. A key's later records may go to another partition."""
    raise NotImplementedError


async def alter_configs(source: Source, topic: str, configs: Mapping[str, str | None]) -> None:
    """Set a topic's configs; None returns one to its default."""
    raise NotImplementedError


async def produce(
    source: Source,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    partition: int | None = None,
) -> Written:
    """Write a record. Without a partition, the key decides, as in Kafka's clients."""
    raise NotImplementedError


async def delete_records(source: Source, topic: str, before: Mapping[int, int]) -> dict[int, int]:
    """Delete the records before an offset of each partition; -1 is the end. Return the new first offsets."""
    raise NotImplementedError


async def set_offsets(source: Source, group: str, partitions: Iterable[Partition], target: Target) -> tuple[NewOffset, ...]:
    """Set committed offsets of a group that has no members."""
    raise NotImplementedError


async def delete_offsets(source: Source, group: str, partitions: Iterable[Partition]) -> tuple[NewOffset, ...]:
    """Delete committed offsets. The group must not be subscribed to their topics."""
    raise NotImplementedError


async def delete_group(source: Source, group: str) -> None:
    """Delete a group without members, and its committed offsets."""
    raise NotImplementedError


async def remove_member(source: Source, group: str, member_id: str) -> None:
    """Remove a member from its group. A client that is alive joins again as a new member."""
    raise NotImplementedError


async def abort_transaction(source: Source, transactional_id: str) -> int:
    """Fence the producer of a transactional id, which aborts its open transaction. Return the new epoch."""
    raise NotImplementedError


async def abort_hanging(source: Source, topic: str, partition: int, producer_id: int) -> None:
    """Write the abort marker of a hanging transaction, which no coordinator ends, to one partition."""
    raise NotImplementedError
