"""A group: its members, its partitions with both lags, and its last rebalances with their reasons.

Kafka's lag counts offsets: markers, aborted records and offsets that compaction has emptied, too. The lag in records counts
the records that a consumer would get. Only a broker can know it: this one counts in its own replica of the partition. The
rebalances are those that this broker, as coordinator, has decided on.

A share group has start offsets instead of committed ones. Its records in flight are shown by the leaders of their partitions.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.client.apis import LATEST_TIMESTAMP
from odradek.page.facts.groups import SHARE, Described, committed_offsets, described_groups, listed_groups, start_offsets
from odradek.page.facts.rebalances import rebalances_of
from odradek.page.facts.source import Missing, leaders_of, list_offsets, metadata, rights
from odradek.testing.in_flight import records_in_flight

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.page.facts.groups import Listed
    from odradek.page.facts.rebalances import Rebalance
    from odradek.page.facts.source import Partition, Source
    from odradek.testing.in_flight import InFlightRecords

# The most batches that one look at a group counts for its lag in records. The next look goes on.
MOST_BATCHES: Final = 20_000
# The most rows of records in flight.
MOST_IN_FLIGHT: Final = 200


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition with a committed offset, a start offset or an owner. ``lag`` is Kafka's, None without an offset.

    ``lag_records`` is None if this broker has no replica, or nothing is committed. ``is_at_least``: it counted no further.
    ``not_counted`` is how many of the offsets up to there are markers, aborted, or without a record.
    """

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None
    lag_records: int | None = None
    is_at_least: bool = False
    not_counted: int = 0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group. ``lag`` and ``lag_records`` are sums over the partitions that have one.

    ``software`` has name and version by member id, of those that are connected to this broker. ``rebalances`` is None if another
    broker coordinates the group. ``is_partial``: ACLs hide the rebalances, or topics.
    """

    listed: Listed
    about: Described
    address: str
    software: dict[str, str]
    partitions: tuple[GroupPartition, ...]
    lag: int | None
    lag_records: int | None
    is_at_least: bool
    rebalances: tuple[Rebalance, ...] | None
    is_partial: bool
    in_flight: tuple[InFlightRecords, ...] = ()
    in_flight_records: int = 0

    @property
    def is_share(self) -> bool:
        """Return whether this is a share group."""
        return self.listed.kind == SHARE


async def group(source: Source, name: str) -> GroupFacts:
    """Return a group. Raises Missing, Denied, Unavailable."""
    user, listed, known = await asyncio.gather(rights(source), find_group(source, name), metadata(source, ()))
    described = await described_groups(source, [listed])
    about = described.get(name) or Described(name, listed.state, listed.protocol_type, "", None, ())
    rows = await (_shared_partitions if listed.kind == SHARE else _partitions)(source, listed, about)
    in_flight, in_flight_records = _in_flight(source, about, rows)
    counted = [row.lag_records for row in rows if row.lag_records is not None]
    lags = [row.lag for row in rows if row.lag is not None]
    return GroupFacts(
        listed=listed,
        about=about,
        address=next((f"{each.host}:{each.port}" for each in known.brokers if each.node_id == listed.coordinator), ""),
        software=_software(source, about) if user.sees_cluster else {},
        partitions=tuple(rows),
        lag=sum(lags) if lags else None,
        lag_records=sum(counted) if counted else None,
        is_at_least=any(row.is_at_least for row in rows) or len(counted) < len(lags),
        rebalances=rebalances_of(source, name) if listed.coordinator == source.core.node_id else None,
        is_partial=user.has_acls and not user.sees_cluster,
        in_flight=in_flight,
        in_flight_records=in_flight_records,
    )


async def find_group(source: Source, name: str) -> Listed:
    """Return a group as its coordinator lists it. Raises Missing, Denied, Unavailable."""
    nodes = [broker.node_id for broker in (await metadata(source, ())).brokers]
    found, silent = await listed_groups(source, nodes)
    for each in found:
        if each.group == name:
            return each
    raise Missing("; ".join([f"{name}: there is no such group", *silent.values()]))


def _software(source: Source, about: Described) -> dict[str, str]:
    found: dict[tuple[str, str | None], str] = {}
    for connection in source.core.connections or ():
        session = connection.session
        client = session.peer[0], session.client_id
        if session.client_software_name:
            found[client] = f"{session.client_software_name} {session.client_software_version or ''}".rstrip()
    return {each.member_id: found.get((each.host, each.client_id), "") for each in about.members}


async def _leaders(source: Source, wanted: Iterable[Partition]) -> dict[Partition, int]:
    """Return the leaders of all partitions of these topics, as far as the user may see them."""
    known = await metadata(source, sorted({topic for topic, _ in wanted}))
    return leaders_of(topic for topic in known.topics if not topic.error_code)


async def _shared_partitions(source: Source, listed: Listed, about: Described) -> list[GroupPartition]:
    """Return the partitions with a start offset or an owner, as far as the user may see their topics."""
    found = (await start_offsets(source, [listed])).get(listed.group, {})
    wanted = found.keys() | {partition for member in about.members for partition in member.partitions or ()}
    leaders = await _leaders(source, wanted)
    seen = sorted(wanted & leaders.keys())
    ends = await list_offsets(source, dict.fromkeys(seen, LATEST_TIMESTAMP), leaders)
    rows = []
    for partition in seen:
        start_offset, lag = found.get(partition, (None, None))
        rows.append(GroupPartition(*partition, start_offset, ends.get(partition), lag, None))
    return rows


def _in_flight(source: Source, about: Described, rows: Iterable[GroupPartition]) -> tuple[tuple[InFlightRecords, ...], int]:
    """Return the first rows of records in flight, and the number of all these records."""
    shares = source.core.share_partitions_so_far
    if shares is None:
        return (), 0
    seen = {(row.topic, row.partition) for row in rows}
    client_ids = {member.member_id: member.client_id for member in about.members}
    found = (each for each in records_in_flight(source.core, about.group, client_ids) if (each.topic, each.partition) in seen)
    count = sum(
        shared.window.in_flight_records
        for shared in shares.of_group(about.group)
        if (shared.partition.topic, shared.key.partition) in seen
    )
    return tuple(islice(found, MOST_IN_FLIGHT)), count


async def _partitions(source: Source, listed: Listed, about: Described) -> list[GroupPartition]:
    """Return the partitions with a committed offset or an owner, as far as the user may see their topics."""
    committed = (await committed_offsets(source, [listed])).get(listed.group, {})
    owners = {partition: member.member_id for member in about.members for partition in member.partitions or ()}
    wanted = sorted(committed.keys() | owners.keys())
    leaders = await _leaders(source, wanted)
    seen = [partition for partition in wanted if partition in leaders]
    ends = await list_offsets(source, dict.fromkeys(seen, LATEST_TIMESTAMP), leaders)
    rows: list[GroupPartition] = []
    left = MOST_BATCHES
    for partition in seen:
        offset, end = committed.get(partition), ends.get(partition)
        lag = None if offset is None or end is None else max(end - offset, 0)
        row = GroupPartition(*partition, offset, end, lag, owners.get(partition))
        row, used = await _counted(source, row, left)
        rows.append(row)
        left -= used
    return rows


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
