"""The cluster: its brokers, their replicas, the partitions in trouble, the controller's quorum, and features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.page.facts.source import Source

MOST_PARTITIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. ``error`` is empty unless it is offline."""

    path: str
    error: str
    replicas: int
    log_bytes: int
    total_bytes: int | None
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class ClusterBroker:
    """A broker. ``is_fenced``: registered, but not serving. ``silence`` says why it did not answer; empty if it did."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_this: bool
    is_fenced: bool
    is_controller: bool
    leaders: int
    preferred_leaders: int
    replicas: int
    in_sync: int
    directories: tuple[LogDirectory, ...]
    silence: str


@dataclass(frozen=True, slots=True)
class TroubledPartition:
    """A partition with replicas out of sync, or without a leader."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer of the metadata log. ``lag`` counts records. The times are None if the leader has none."""

    node_id: int
    directory_id: str
    log_end_offset: int
    lag: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    is_leader: bool


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum of the metadata log."""

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature. ``level`` is the finalized one, 0 if it is off. ``lowest`` and ``highest`` are what this broker supports."""

    name: str
    level: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster. ``quorum`` is None if the user may not see it."""

    cluster_id: str
    this_broker: int
    brokers: tuple[ClusterBroker, ...]
    topics: int
    partitions: int
    troubled: tuple[TroubledPartition, ...]
    more_troubled: int
    quorum: Quorum | None
    features: tuple[Feature, ...]
    is_partial: bool


async def cluster(source: Source) -> ClusterFacts:
    """Return the cluster. Raises Unavailable."""
    raise NotImplementedError
