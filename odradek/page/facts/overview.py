"""The overview: brokers, topics, groups, connected clients, and the last errors that clients were told.

Brokers, topics and groups are the cluster's. Clients and errors are this broker's. Rates need two looks: the first has None.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.page.facts.brokers import broker_rows, described_cluster, log_directories, sizes_of
from odradek.page.facts.connections import connected_clients, told_errors
from odradek.page.facts.groups import SHARE, Described, Listed, committed_offsets, described_groups, listed_groups, start_offsets
from odradek.page.facts.source import hides, in_turns, leaders_of, list_offsets, metadata, rights

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from odradek.page.facts.brokers import BrokerRow, Sizes
    from odradek.page.facts.connections import ClientRow, ToldError
    from odradek.page.facts.source import Partition, Source
    from odradek.protocol.message_types.metadata import MetadataResponse, MetadataResponseTopic

# Rows of each table. Further ones are counted.
MOST_TOPICS: Final = 1_000
MOST_GROUPS: Final = 1_000


class Rates(NamedTuple):
    """The rates of a topic, per second.

    ``records_in`` is the cluster's. The others are those of the partitions that this broker leads, None if it leads none;
    ``records_out`` is derived from the bytes and the mean size of the topic's records.
    """

    records_in: float | None
    records_out: float | None
    bytes_in: float | None
    bytes_out: float | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. ``records`` is the difference of end and start offsets. ``lag`` is the largest total lag of a group, if any."""

    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    under_replicated: int
    without_leader: int
    records: int | None
    rates: Rates
    disk_bytes: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group. ``kind`` is "classic", "consumer", "share", "streams" or another name that the broker gives.

    ``lag`` is Kafka's: the sum of end offset less committed offset; of a share group, the records that are neither acknowledged
    nor archived. None if the group has committed nothing, or an end offset is unknown. ``coordinator`` is a node id.
    ``in_flight`` is the number of records in flight in the partitions that this broker leads, None unless it is a share group.
    """

    group: str
    kind: str
    state: str
    coordinator: int
    members: int | None
    topics: tuple[str, ...]
    lag: int | None
    in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview. ``more_topics`` and so on count the rows left out. ``unreachable`` has a line for each silent broker."""

    this_broker: int
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
    """Return the overview. Raises Unavailable, Denied."""
    user, known, described = await asyncio.gather(rights(source), metadata(source, None), described_cluster(source))
    nodes = [broker.node_id for broker in known.brokers]
    shown = sorted((topic for topic in known.topics if not topic.error_code), key=lambda topic: (topic.is_internal, topic.name))
    shown, more_topics = shown[:MOST_TOPICS], max(len(shown) - MOST_TOPICS, 0)
    (disks, _), (listed, silent) = await asyncio.gather(log_directories(source, nodes), listed_groups(source, nodes))
    groups, more_groups = listed[:MOST_GROUPS], max(len(listed) - MOST_GROUPS, 0)
    members, committed, shared = await asyncio.gather(
        described_groups(source, groups),
        committed_offsets(source, [group for group in groups if group.kind != SHARE]),
        start_offsets(source, groups),
    )
    starts, ends = await _bounds(source, shown, committed.values(), known)
    lags = {name: _lag_by_topic(offsets, ends) for name, offsets in committed.items()}
    lags |= {name: _shared_lag_by_topic(offsets) for name, offsets in shared.items()}
    in_flight = _in_flight(source, {str(topic.name) for topic in known.topics if not topic.error_code})
    sizes = sizes_of(disks)
    clients, more_clients = connected_clients(source) if user.sees_cluster else ([], 0)
    return Overview(
        this_broker=source.core.node_id,
        brokers=broker_rows(source, described, known, disks, silent),
        topics=await in_turns(lambda each: _topic(source, each, starts, ends, sizes, lags.values()), shown),
        more_topics=more_topics,
        groups=await in_turns(lambda each: _group(each, members.get(each.group), lags.get(each.group), in_flight), groups),
        more_groups=more_groups,
        clients=tuple(clients),
        more_clients=more_clients,
        errors=tuple(told_errors(source)) if user.sees_cluster else (),
        unreachable=tuple(silent.values()),
        is_partial=hides(source, user, known),
    )


async def _bounds(
    source: Source, shown: Sequence[MetadataResponseTopic], committed: Iterable[Mapping[Partition, int]], known: MetadataResponse
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """Return the start offsets of the shown topics, and the end offsets of these and of all committed offsets."""
    leaders = leaders_of(known.topics)
    of_topics = leaders_of(shown)
    of_groups = {partition for each in committed for partition in each}
    starts, ends = await asyncio.gather(
        list_offsets(source, dict.fromkeys(of_topics, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(of_topics.keys() | of_groups, LATEST_TIMESTAMP), leaders),
    )
    return starts, ends


def _lag_by_topic(committed: Mapping[Partition, int], ends: Mapping[Partition, int]) -> dict[str, int]:
    lags: dict[str, int] = {}
    for partition, offset in committed.items():
        end = ends.get(partition)
        if end is not None:
            lags[partition[0]] = lags.get(partition[0], 0) + max(end - offset, 0)
    return lags


def _shared_lag_by_topic(offsets: Mapping[Partition, tuple[int, int | None]]) -> dict[str, int]:
    lags: dict[str, int] = {}
    for (topic, _), (_, lag) in offsets.items():
        if lag is not None:
            lags[topic] = lags.get(topic, 0) + lag
    return lags


def _in_flight(source: Source, seen: Container[str]) -> Counter[str]:
    """Return the number of records in flight of each share group, in the topics that the user may see."""
    found: Counter[str] = Counter()
    for each in source.core.share_partitions_so_far or ():
        if each.partition.topic in seen:
            found[each.key.group_id] += each.window.in_flight_records
    return found


def _topic(
    source: Source,
    topic: MetadataResponseTopic,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    all_sizes: Sizes,
    lags: Iterable[Mapping[str, int]],
) -> TopicRow:
    name = str(topic.name)
    keys = [(name, int(one.partition_index)) for one in topic.partitions]
    records = sum(ends[key] - starts[key] for key in keys) if all(key in starts and key in ends for key in keys) else None
    sizes = [size for key in keys for size in all_sizes.get(key, {}).values()]
    lag = [found[name] for found in lags if name in found]
    return TopicRow(
        name=name,
        is_internal=topic.is_internal,
        partitions=len(keys),
        replication_factor=max((len(one.replica_nodes) for one in topic.partitions), default=0),
        under_replicated=sum(len(one.isr_nodes) < len(one.replica_nodes) for one in topic.partitions),
        without_leader=sum(one.leader_id < 0 for one in topic.partitions),
        records=records,
        rates=_rates(source, name, [key for key in keys if key in ends], ends),
        disk_bytes=sum(sizes) if sizes else None,
        lag=max(lag, default=None),
    )


def _rates(source: Source, name: str, keys: Sequence[Partition], ends: Mapping[Partition, int]) -> Rates:
    meter, now_ms = source.watch.meter, source.now_ms()
    in_ = meter.rate(("records", name, len(keys)), sum(ends[key] for key in keys), now_ms) if keys else None
    led = [each for each in source.core.partitions.of_topic(name).values() if each.leader is not None and each.log is not None]
    if not led:
        return Rates(in_, None, None, None)
    bytes_in = meter.rate(("in", name, len(led)), sum(each.appended_bytes for each in led), now_ms)
    bytes_out = meter.rate(("out", name, len(led)), sum(each.fetched_bytes for each in led), now_ms)
    logs = [each.log for each in led if each.log is not None]
    count, size = sum(log.log_end_offset - log.log_start_offset for log in logs), sum(log.size_bytes for log in logs)
    records_out = bytes_out * count / size if bytes_out is not None and size else None
    return Rates(in_, 0.0 if bytes_out == 0 else records_out, bytes_in, bytes_out)


def _group(listed: Listed, described: Described | None, lags: Mapping[str, int] | None, in_flight: Mapping[str, int]) -> GroupRow:
    owned = {topic for member in (described.members if described else ()) for topic, _ in member.partitions or ()}
    return GroupRow(
        group=listed.group,
        kind=listed.kind,
        state=described.state if described else listed.state,
        coordinator=listed.coordinator,
        members=len(described.members) if described else None,
        topics=tuple(sorted(owned | (lags or {}).keys())),
        lag=sum(lags.values()) if lags else None,
        in_flight=in_flight[listed.group] if listed.kind == SHARE else None,
    )
