"""The overview: brokers, topics, groups, connected clients, and the last errors that clients were told.

Brokers, topics and groups are the cluster's. Clients and errors are this broker's. Rates need two looks: the first has None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.page.facts.source import Source

# Rows of each table. Further ones are counted.
MOST_TOPICS: Final = 1_000
MOST_GROUPS: Final = 1_000
MOST_CLIENTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. ``log_bytes`` and ``disk_free_bytes`` are None if the broker does not tell. ``is_this`` is the page's own."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    is_this: bool
    leaders: int
    replicas: int
    out_of_sync: int
    log_bytes: int | None
    disk_free_bytes: int | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. Rates are per second, over the last seconds.

    ``records`` is the difference of end and start offsets. ``records_in`` is the cluster's. ``bytes_in``, ``bytes_out`` and
    ``records_out`` are those of the partitions that this broker leads, None if it leads none; ``records_out`` is derived from
    the bytes and the mean size of the topic's records. ``lag`` is the largest total lag of a group, None without a group.
    """

    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    under_replicated: int
    without_leader: int
    records: int | None
    records_in: float | None
    records_out: float | None
    bytes_in: float | None
    bytes_out: float | None
    disk_bytes: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. ``kind`` is "classic", "consumer", "share", "streams" or another name that the broker gives.

    ``lag`` is Kafka's: the sum of end offset less committed offset. None if the group has committed nothing, or an end offset
    is unknown. ``coordinator`` is a node id.
    """

    group: str
    kind: str
    protocol_type: str
    state: str
    coordinator: int
    members: int | None
    topics: tuple[str, ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A connection to this broker. ``software`` and ``version`` are those of KIP-511, empty if the client has not told.

    ``client_id`` is known once it has sent a request while somebody watches. ``is_page``: it is a connection of this page.
    """

    client_id: str | None
    software: str
    version: str
    host: str
    port: int
    user: str
    listener: str
    idle_ms: float
    received_bytes: int
    sent_bytes: int
    is_page: bool


@dataclass(frozen=True, slots=True)
class ToldError:
    """An error code that this broker has told a client. ``count`` is since the broker's start, or since the watch began.

    Without ``client_id``, ``host`` and ``at_ms`` (None) it is from before the watch.
    """

    api: str
    error: str
    count: int
    client_id: str | None
    host: str | None
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview. ``more_topics`` and so on count the rows left out. ``unreachable`` has a line for each silent broker."""

    cluster_id: str
    this_broker: int
    now_ms: int
    brokers: tuple[BrokerRow, ...]
    topics: tuple[TopicRow, ...]
    more_topics: int
    groups: tuple[GroupRow, ...]
    more_groups: int
    clients: tuple[ClientRow, ...]
    more_clients: int
    errors: tuple[ToldError, ...]
    unreachable: tuple[str, ...]
    is_partial: bool


async def overview(source: Source) -> Overview:
    """Return the overview. Raises Unavailable."""
    raise NotImplementedError
