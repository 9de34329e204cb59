"""A group: its members, its partitions with both lags, and its last rebalances with their reasons.

Kafka's lag counts offsets: markers, aborted records and offsets that compaction has emptied, too. The lag in records counts
the records that a consumer would get. Only a broker can know it: this one counts in its own replica of the partition. The
rebalances are those that this broker, as coordinator, has decided on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.page.facts.groups import Committed, committed_offsets, described_groups, listed_groups
from odradek.page.facts.rebalances import rebalances_of
from odradek.page.facts.source import Missing, leaders_of, list_offsets, metadata, rights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.page.facts.groups import Listed, Member
    from odradek.page.facts.rebalances import Rebalance
    from odradek.page.facts.source import Partition, Rights, Source

# The most batches that one look at a group counts for its lag in records. The next look goes on.
MOST_BATCHES: Final = 20_000


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
    user, listed = await asyncio.gather(rights(source), find_group(source, name))
    all_described, all_committed = await asyncio.gather(described_groups(source, [listed]), committed_offsets(source, [listed]))
    described, committed = all_described.get(name), all_committed.get(name, Committed())
    members = described.members if described else ()
    owners = {partition: member.member_id for member in members for partition in member.partitions or ()}
    rows = await _partitions(source, committed, owners)
    counted = [row.lag_records for row in rows if row.lag_records is not None]
    lags = [row.lag for row in rows if row.lag is not None]
    address = await _address(source, listed.coordinator)
    is_here = listed.coordinator == source.core.node_id
    return GroupFacts(
        group=name,
        kind=listed.kind,
        state=described.state if described else listed.state,
        protocol_type=described.protocol_type if described else listed.protocol_type,
        assignor=described.assignor if described else "",
        epoch=described.epoch if described else None,
        coordinator=listed.coordinator,
        coordinator_host=address[0],
        coordinator_port=address[1],
        members=tuple(_member(source, user, member) for member in members),
        partitions=tuple(rows),
        lag=sum(lags) if lags else None,
        lag_records=sum(counted) if counted else None,
        is_at_least=any(row.is_at_least for row in rows) or len(counted) < len(lags),
        rebalances=rebalances_of(source, name) if is_here else None,
        may_change_offsets=described is not None and not members,
        is_partial=user.has_acls and not user.sees_cluster,
    )


async def find_group(source: Source, name: str) -> Listed:
    """Return a group as its coordinator lists it. Raises Missing, Denied, Unavailable."""
    nodes = [broker.node_id for broker in (await metadata(source, ())).brokers]
    found, silent = await listed_groups(source, nodes)
    for each in found:
        if each.group == name:
            return each
    raise Missing("; ".join([f"{name}: there is no such group", *silent.values()]))


async def _address(source: Source, node_id: int) -> tuple[str, int]:
    found = [(broker.host, broker.port) for broker in (await metadata(source, ())).brokers if broker.node_id == node_id]
    return found[0] if found else ("", 0)


def _member(source: Source, user: Rights, member: Member) -> MemberRow:
    software = version = None
    for connection in (source.core.connections or ()) if user.sees_cluster else ():
        session = connection.session
        if session.peer[0] == member.host and source.watch.client_id(session) == member.client_id:
            software, version = session.client_software_name, session.client_software_version
            break
    return MemberRow(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        software=software,
        version=version,
        subscription=member.subscription,
        partitions=member.partitions,
        epoch=member.epoch,
    )


async def _partitions(source: Source, committed: Committed, owners: Mapping[Partition, str]) -> list[GroupPartition]:
    """Return the partitions with a committed offset or an owner, as far as the user may see their topics."""
    wanted = sorted(committed.offsets.keys() | owners.keys())
    known = await metadata(source, sorted({topic for topic, _ in wanted}))
    leaders = leaders_of(topic for topic in known.topics if not topic.error_code)
    seen = [partition for partition in wanted if partition in leaders]
    starts, ends = await asyncio.gather(
        list_offsets(source, dict.fromkeys(seen, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(seen, LATEST_TIMESTAMP), leaders),
    )
    rows: list[GroupPartition] = []
    left = MOST_BATCHES
    for partition in seen:
        row = _partition(partition, committed, (starts, ends), owners.get(partition))
        row, used = await _counted(source, row, left)
        rows.append(row)
        left -= used
    return rows


def _partition(
    partition: Partition,
    committed: Committed,
    bounds: tuple[Mapping[Partition, int], Mapping[Partition, int]],
    owner: str | None,
) -> GroupPartition:
    offset, end = committed.offsets.get(partition), bounds[1].get(partition)
    return GroupPartition(
        topic=partition[0],
        partition=partition[1],
        committed_offset=offset,
        metadata=committed.metadata.get(partition, ""),
        start_offset=bounds[0].get(partition),
        end_offset=end,
        lag=None if offset is None or end is None else max(end - offset, 0),
        lag_records=None,
        is_at_least=False,
        not_counted=0,
        member_id=owner,
    )


async def _counted(source: Source, row: GroupPartition, most_batches: int) -> tuple[GroupPartition, int]:
    """Return the row with its lag in records, if this broker has a replica; and how many batches that took."""
    replica = source.core.partitions.get(row.topic, row.partition)
    if row.committed_offset is None or row.end_offset is None or replica is None or replica.log is None:
        return row, 0
    log = replica.log
    first, end = max(row.committed_offset, log.log_start_offset), min(row.end_offset, log.log_end_offset)
    count = await source.watch.counts.count(log, first, end, replica.last_stable_offset, most_batches=most_batches)
    counted = replace(
        row,
        lag_records=count.records,
        is_at_least=not count.is_complete or end < row.end_offset,
        not_counted=max(count.up_to - first, 0) - count.records,
    )
    return counted, count.batches
