"""The overview: brokers, topics, groups, connected clients, and the last errors that clients were told.

Brokers, topics and groups are the cluster's. Clients and errors are this broker's. Rates need two looks: the first has None.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.client.admin_apis import DESCRIBE_LOG_DIRS
from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.page.facts.connections import connected_clients, told_errors
from odradek.page.facts.groups import Committed, Described, Listed, committed_offsets, described_groups, listed_groups
from odradek.page.facts.source import ask_nodes, in_turns, leaders_of, list_offsets, metadata, rights
from odradek.protocol.message_types.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.page.facts.connections import ClientRow, ToldError
    from odradek.page.facts.source import Partition, Rights, Source
    from odradek.protocol.message_types.describe_log_dirs import DescribableLogDirTopic
    from odradek.protocol.message_types.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic

# Rows of each table. Further ones are counted.
MOST_TOPICS: Final = 1_000
MOST_GROUPS: Final = 1_000


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


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks of the brokers that tell: bytes of each partition's replicas, and by broker its log and its free bytes."""

    replicas: dict[Partition, dict[int, int]]
    logs: dict[int, int]
    free: dict[int, int]


async def overview(source: Source) -> Overview:
    """Return the overview. Raises Unavailable, Denied."""
    user, known = await asyncio.gather(rights(source), metadata(source, None))
    nodes = [broker.node_id for broker in known.brokers]
    shown = sorted((topic for topic in known.topics if not topic.error_code), key=lambda topic: (topic.is_internal, topic.name))
    shown, more_topics = shown[:MOST_TOPICS], max(len(shown) - MOST_TOPICS, 0)
    disks, (listed, silent) = await asyncio.gather(disks_of(source, nodes), listed_groups(source, nodes))
    groups, more_groups = listed[:MOST_GROUPS], max(len(listed) - MOST_GROUPS, 0)
    described, committed = await asyncio.gather(described_groups(source, groups), committed_offsets(source, groups))
    starts, ends = await _bounds(source, shown, committed.values(), known)
    lags = {name: _lag_by_topic(offsets, ends) for name, offsets in committed.items()}
    clients, more_clients = connected_clients(source) if user.sees_cluster else ([], 0)
    return Overview(
        cluster_id=known.cluster_id or "",
        this_broker=source.core.node_id,
        now_ms=source.broker.clock.now_ms(),
        brokers=await in_turns(
            lambda each: _broker(source, each, known, disks), sorted(known.brokers, key=lambda one: one.node_id)
        ),
        topics=await in_turns(lambda each: _topic(source, each, starts, ends, disks, lags.values()), shown),
        more_topics=more_topics,
        groups=await in_turns(lambda each: _group(each, described.get(each.group), lags.get(each.group)), groups),
        more_groups=more_groups,
        clients=tuple(clients),
        more_clients=more_clients,
        errors=tuple(told_errors(source)) if user.sees_cluster else (),
        unreachable=tuple(silent.values()),
        is_partial=hides(source, user, known),
    )


def hides(source: Source, user: Rights, known: MetadataResponse) -> bool:
    """Return whether ACLs hide something: the cluster's own facts, or a topic."""
    return user.has_acls and (not user.sees_cluster or len(known.topics) < len(source.core.controller.image.topics))


async def disks_of(source: Source, nodes: Iterable[int], topics: Sequence[DescribableLogDirTopic] | None = None) -> Disks:
    """Return the disks of these brokers, with all or these topics. A broker that refuses, or does not answer, is absent."""
    answers, _ = await ask_nodes(source, DESCRIBE_LOG_DIRS, dict.fromkeys(nodes, DescribeLogDirsRequest(topics=topics)))
    found = Disks({}, {}, {})
    for node_id, answer in answers.items():
        if answer.error_code:
            continue
        found.logs[node_id] = 0
        for directory in answer.results:
            if directory.usable_bytes >= 0:
                found.free[node_id] = found.free.get(node_id, 0) + directory.usable_bytes
            for topic in directory.topics:
                for one in topic.partitions:
                    found.logs[node_id] += one.partition_size
                    if not one.is_future_key:
                        replicas = found.replicas.setdefault((str(topic.name), int(one.partition_index)), {})
                        replicas[node_id] = one.partition_size
    return found


async def _bounds(
    source: Source, shown: Sequence[MetadataResponseTopic], committed: Iterable[Committed], known: MetadataResponse
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """Return the start offsets of the shown topics, and the end offsets of these and of all committed offsets."""
    leaders = leaders_of(known.topics)
    of_topics = leaders_of(shown)
    of_groups = {partition for each in committed for partition in each.offsets}
    starts, ends = await asyncio.gather(
        list_offsets(source, dict.fromkeys(of_topics, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(of_topics.keys() | of_groups, LATEST_TIMESTAMP), leaders),
    )
    return starts, ends


def _lag_by_topic(committed: Committed, ends: Mapping[Partition, int]) -> dict[str, int]:
    lags: dict[str, int] = {}
    for partition, offset in committed.offsets.items():
        end = ends.get(partition)
        if end is not None:
            lags[partition[0]] = lags.get(partition[0], 0) + max(end - offset, 0)
    return lags


def _broker(source: Source, broker: MetadataResponseBroker, known: MetadataResponse, disks: Disks) -> BrokerRow:
    node_id = broker.node_id
    held = [one for topic in known.topics for one in topic.partitions if node_id in one.replica_nodes]
    return BrokerRow(
        node_id=node_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        is_controller=node_id == known.controller_id,
        is_this=node_id == source.core.node_id,
        leaders=sum(one.leader_id == node_id for one in held),
        replicas=len(held),
        out_of_sync=sum(node_id not in one.isr_nodes for one in held),
        log_bytes=disks.logs.get(node_id),
        disk_free_bytes=disks.free.get(node_id),
    )


def _topic(
    source: Source,
    topic: MetadataResponseTopic,
    starts: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    disks: Disks,
    lags: Iterable[Mapping[str, int]],
) -> TopicRow:
    name = str(topic.name)
    keys = [(name, int(one.partition_index)) for one in topic.partitions]
    records = sum(ends[key] - starts[key] for key in keys) if all(key in starts and key in ends for key in keys) else None
    rates = _rates(source, name, [key for key in keys if key in ends], ends)
    sizes = [size for key in keys for size in disks.replicas.get(key, {}).values()]
    lag = [found[name] for found in lags if name in found]
    return TopicRow(
        name=name,
        is_internal=topic.is_internal,
        partitions=len(keys),
        replication_factor=max((len(one.replica_nodes) for one in topic.partitions), default=0),
        under_replicated=sum(len(one.isr_nodes) < len(one.replica_nodes) for one in topic.partitions),
        without_leader=sum(one.leader_id < 0 for one in topic.partitions),
        records=records,
        records_in=rates.records_in,
        records_out=rates.records_out,
        bytes_in=rates.bytes_in,
        bytes_out=rates.bytes_out,
        disk_bytes=sum(sizes) if sizes else None,
        lag=max(lag, default=None),
    )


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates of a topic, per second."""

    records_in: float | None
    records_out: float | None
    bytes_in: float | None
    bytes_out: float | None


def _rates(source: Source, name: str, keys: Sequence[Partition], ends: Mapping[Partition, int]) -> _Rates:
    meter, now_ms = source.watch.meter, source.now_ms()
    in_ = meter.rate(("records", name, len(keys)), sum(ends[key] for key in keys), now_ms) if keys else None
    led = [each for each in source.core.partitions.of_topic(name).values() if each.leader is not None and each.log is not None]
    if not led:
        return _Rates(in_, None, None, None)
    bytes_in = meter.rate(("in", name, len(led)), sum(each.appended_bytes for each in led), now_ms)
    bytes_out = meter.rate(("out", name, len(led)), sum(each.fetched_bytes for each in led), now_ms)
    logs = [each.log for each in led if each.log is not None]
    count, size = sum(log.log_end_offset - log.log_start_offset for log in logs), sum(log.size_bytes for log in logs)
    records_out = bytes_out * count / size if bytes_out is not None and size else None
    return _Rates(in_, 0.0 if bytes_out == 0 else records_out, bytes_in, bytes_out)


def _group(listed: Listed, described: Described | None, lags: Mapping[str, int] | None) -> GroupRow:
    owned = {topic for member in (described.members if described else ()) for topic, _ in member.partitions or ()}
    return GroupRow(
        group=listed.group,
        kind=listed.kind,
        protocol_type=listed.protocol_type,
        state=described.state if described else listed.state,
        coordinator=listed.coordinator,
        members=len(described.members) if described else None,
        topics=tuple(sorted(owned | (lags or {}).keys())),
        lag=sum(lags.values()) if lags else None,
    )
