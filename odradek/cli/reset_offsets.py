"""``odradek groups reset-offsets``: sets a group's committed offsets, as Kafka's own tool does.

Without ``--execute`` the command writes nothing. The members of a group commit its offsets themselves, so they have to be stopped
first. An offset outside of the log becomes the nearer end of the log; a time after the last record becomes the log end offset.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import click

from odradek.cli.apis import OFFSET_COMMIT
from odradek.cli.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Cluster
from odradek.cli.described_group import DescribedGroup, Partition, describe_group
from odradek.cli.options import asks_a_broker
from odradek.cli.refusals import Refused, patiently
from odradek.cli.table import exit_status, show
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

Servers = list[tuple[str, int]]

_ROW = ("group", "topic", "partition", "current_offset", "new_offset")
_NO_MEMBER = -1
_AT_MOST_ONE_TARGET = "give one of --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --shift-by"


@click.command("reset-offsets")
@click.argument("group")
@asks_a_broker
@click.option("--topic", "topics", metavar="TOPIC[:0,1]", multiple=True, help="A topic, or some of its partitions; repeatable.")
@click.option("--all-topics", is_flag=True, help="Every topic that the group has offsets of.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To where it is; to the end where it is nowhere.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--to-datetime", metavar="TIME", help="To the first record since then: ISO 8601, UTC unless it says otherwise.")
@click.option("--shift-by", type=int, help="So many records on, or back if negative.")
@click.option("--execute", is_flag=True, help="Do it; without this the command only says what it would do.")
def reset_offsets(
    group: str,
    bootstrap: Servers,
    as_json: bool,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    **target: int | str | None,
) -> int:
    """Set the offsets of a GROUP that has no members."""
    if bool(topics) == all_topics:
        raise click.UsageError("give --topic, or else --all-topics")
    if sum(value is not None and value is not False for value in target.values()) != 1:
        raise click.UsageError(_AT_MOST_ONE_TARGET)
    since_ms = None if target["to_datetime"] is None else _timestamp_ms(str(target["to_datetime"]))
    wanted = list(map(_parse_topic, topics))
    with Cluster(bootstrap) as cluster:
        described = _without_members(cluster, group, may_be_new=not all_topics)
        partitions = sorted(described.offsets) if all_topics else sorted(set(_partitions(cluster, wanted)))
        new, refusals = _targets(cluster, described.offsets, partitions, {**target, "to_datetime": since_ms})
        if execute and new:
            refusals += patiently(lambda: _commit(cluster, group, new))
    refused = {refusal.message.partition(":")[0] for refusal in refusals}
    rows = [
        dict(zip(_ROW, (group, topic, index, described.offsets.get((topic, index)), offset), strict=True))
        for (topic, index), offset in new.items()
        if f"{topic}-{index}" not in refused
    ]
    show(_ROW, rows, as_json=as_json)
    if not execute:
        click.echo("odradek: nothing was changed; --execute does it", err=True)
    return exit_status(refusals)


def _without_members(cluster: Cluster, group: str, *, may_be_new: bool) -> DescribedGroup:
    """The group. One that does not exist yet is empty if ``may_be_new``: its first commit creates it. Raises Refused."""
    try:
        described = describe_group(cluster, group)
    except Refused as refusal:
        if refusal.code is not ErrorCode.GROUP_ID_NOT_FOUND or not may_be_new:
            raise
        _, node = patiently(lambda: cluster.coordinator(group))
        return DescribedGroup(group, "Empty", "classic", "", "", node, [])
    if described.members:
        raise Refused(group, ErrorCode.NON_EMPTY_GROUP, f"the group has members, and is {described.state}: stop them first")
    return described


def _parse_topic(text: str) -> tuple[str, list[int] | None]:
    """``orders`` or ``orders:0,2``; no topic's name has a colon."""
    topic, colon, indexes = text.partition(":")
    if not colon:
        return topic, None
    if not topic or not all(index.isdecimal() for index in indexes.split(",")):
        raise click.UsageError(f"--topic {text}: not of the form TOPIC or TOPIC:0,1")
    return topic, [int(index) for index in indexes.split(",")]


def _partitions(cluster: Cluster, wanted: list[tuple[str, list[int] | None]]) -> Iterable[Partition]:
    """The partitions that are asked for, by default all of a topic. Raises Refused for a topic that does not exist."""
    found = {str(topic.name): topic for topic in cluster.metadata(dict.fromkeys(topic for topic, _ in wanted))}
    for name, indexes in wanted:
        topic = found[name]
        if topic.error_code:
            raise Refused(name, topic.error_code)
        yield from ((name, index) for index in indexes or (int(partition.partition_index) for partition in topic.partitions))


def _timestamp_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(f"--to-datetime {text}: not a time in ISO 8601, such as 2025-01-31T12:00:00") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _targets(
    cluster: Cluster, current: dict[Partition, int], partitions: list[Partition], target: dict[str, Any]
) -> tuple[dict[Partition, int], list[Refused]]:
    """The new offset of each partition, within its log; and the refusals."""
    starts = cluster.list_offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
    ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    since_ms = target["to_datetime"]
    dated = {} if since_ms is None else cluster.list_offsets(dict.fromkeys(partitions, since_ms))
    choose = _chooser(target)
    new: dict[Partition, int] = {}
    refusals = []
    for partition in partitions:
        bounds = starts[partition], ends[partition], dated.get(partition, -1)
        failed = next((bound for bound in bounds if isinstance(bound, Refused)), None)
        if failed is not None:
            refusals.append(failed)
            continue
        start, end, found = (bound for bound in bounds if not isinstance(bound, Refused))
        new[partition] = min(max(choose(start, end, found, current.get(partition)), start), end)
    return new, refusals


def _chooser(target: dict[str, Any]) -> Callable[[int, int, int, int | None], int]:
    """(log start offset, log end offset, offset for the time, committed offset) -> new offset, not yet within the log."""
    if target["to_earliest"]:
        return lambda start, _end, _found, _current: start
    if target["to_latest"]:
        return lambda _start, end, _found, _current: end
    if target["to_current"]:
        return lambda _start, end, _found, current: end if current is None else current
    if target["to_offset"] is not None:
        return lambda _start, _end, _found, _current: int(target["to_offset"])
    if target["to_datetime"] is not None:
        return lambda _start, end, found, _current: end if found < 0 else found
    # Without a committed offset the shift counts from the log end, where a consumer begins by default.
    return lambda _start, end, _found, current: (end if current is None else current) + int(target["shift_by"])


def _commit(cluster: Cluster, group: str, offsets: dict[Partition, int]) -> list[Refused]:
    """Commit like a consumer that is no member of the group; the refusals, one a partition."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in offsets.items():
        committed = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        topics.setdefault(topic, []).append(committed)
    connection, _ = cluster.coordinator(group)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_MEMBER,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=rows) for topic, rows in topics.items()],
    )
    answer = connection.call(OFFSET_COMMIT, request)
    return [
        Refused(f"{topic.name}-{partition.partition_index}", partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code
    ]
