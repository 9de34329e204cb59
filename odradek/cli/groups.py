"""``odradek groups``: list, describe, explain, records, reset-offsets, delete-offsets and delete, on any broker.

``reset-offsets`` sets a group's committed offsets, or a share group's start offsets, as Kafka's own tools do. Without
``--execute`` it writes nothing. Stop the group's members first: they commit its offsets themselves, and a share group with
members refuses. An offset outside of the log becomes the nearer end of the log; a time after the last record becomes the log end
offset.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import click

from odradek.cli.cluster import Cluster, Refused, Unreachable, check, patiently
from odradek.cli.described_group import SHARE, DescribedGroup, describe_group, end_offsets, groups_of_broker, with_similar_groups
from odradek.cli.explain_group import explain
from odradek.cli.group_offsets import alter_start_offsets, commit_offsets, delete_offsets
from odradek.cli.options import (
    Servers,
    asks_a_broker,
    command_group,
    exit_status,
    render,
    row_of,
    show,
    show_json,
    timestamp_ms_of,
)
from odradek.cli.share_group_records import records
from odradek.cli.streams_tables import SUBTOPOLOGY, TASK, tasks_and_topology
from odradek.client.admin_apis import DELETE_GROUPS
from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.client.known_cluster import Partition, by_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest

_LISTED = ("group", "state", "type", "protocol_type", "coordinator")
_GROUP = ("group", "state", "type", "protocol", "coordinator", "members")
_PARTITION = ("topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id")
_SHARE_PARTITION = ("topic", "partition", "start_offset", "lag", "consumer_ids")
_MEMBER = ("consumer_id", "instance_id", "host", "client_id", "partitions", "assignment")


@command_group()
def groups() -> None:
    """Manage consumer groups, share groups and streams groups of any Kafka broker."""


groups.add_command(explain)
groups.add_command(records)


@groups.command("list")
@asks_a_broker
@click.option("--state", "states", multiple=True, help="Only groups in this state (Stable, Empty, ...); repeatable.")
@click.option("--type", "types", multiple=True, help="Only groups of this type (classic, consumer, share, streams); repeatable.")
def list_groups(bootstrap: Servers, as_json: bool, states: tuple[str, ...], types: tuple[str, ...]) -> int:
    """List every group, from every broker."""
    wanted = {state.lower() for state in states}
    wanted_types = {each.lower() for each in types}
    with Cluster(bootstrap) as cluster:
        rows = [row for node in cluster.nodes() for row in groups_of_broker(cluster, node.node_id)]
    if wanted:
        rows = [row for row in rows if (row["state"] or "").lower() in wanted]
    if wanted_types:
        rows = [row for row in rows if (row["type"] or "").lower() in wanted_types]
    show(_LISTED, sorted(rows, key=lambda row: str(row["group"])), as_json=as_json)
    return exit_status(cluster.unreachable)


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@asks_a_broker
def describe(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Describe members with their assignments, and each partition with its committed offset, log end offset and lag.

    A share group's partitions have a start offset, a lag, and any number of consumers. A streams group has its topology and its
    tasks, too.
    """
    documents: list[dict[str, Any]] = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        for name in dict.fromkeys(names):
            try:
                group = describe_group(cluster, name)
            except (Refused, Unreachable) as failure:
                failures.append(with_similar_groups(cluster, name, failure))
                continue
            rows = _share_partitions(group) if group.group_type == SHARE else _partitions(cluster, group)
            more = {} if group.streams is None else tasks_and_topology(group.streams)
            documents.append({**_as_document(group, rows), **more})
    if as_json:
        show_json(documents)
    else:
        click.echo("\n".join(map(_as_text, documents)), nl=False)
    return exit_status([*failures, *cluster.unreachable])


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@asks_a_broker
def delete(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Delete groups without members, and their offsets."""
    deleted = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        for name in dict.fromkeys(names):
            try:
                patiently(lambda name=name: _delete(cluster, name))  # type: ignore[misc]
                deleted.append({"group": name})
            except (Refused, Unreachable) as failure:
                failures.append(with_similar_groups(cluster, name, failure))
    if deleted or as_json:
        show(("group",), deleted, as_json=as_json)
    return exit_status(failures)


def _delete(cluster: Cluster, group: str) -> None:
    connection, _ = cluster.coordinator(group)
    request = DeleteGroupsRequest(groups_names=[group])
    check(group, connection.call(DELETE_GROUPS, request).results[0].error_code)


def _partitions(cluster: Cluster, group: DescribedGroup) -> list[dict[str, Any]]:
    """Return a row for each partition with a committed offset or an owner."""
    owners = {partition: member for member in group.members for partition in member.assignment or ()}
    partitions = group.offsets.keys() | owners.keys()
    ends = end_offsets(cluster, partitions)
    rows = []
    for partition in sorted(partitions):
        owner = owners.get(partition)
        current, end = group.offsets.get(partition), ends[partition]
        lag = None if current is None or end is None else max(end - current, 0)
        who = (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)
        rows.append(row_of(_PARTITION, *partition, current, end, lag, *who))
    return rows


def _share_partitions(group: DescribedGroup) -> list[dict[str, Any]]:
    """Return a row for each partition with a start offset or a consumer."""
    consumers: dict[Partition, list[str]] = {}
    for member in group.members:
        for partition in member.assignment or ():
            consumers.setdefault(partition, []).append(member.member_id)
    return [
        row_of(
            _SHARE_PARTITION,
            *partition,
            group.offsets.get(partition),
            group.lags.get(partition),
            sorted(consumers.get(partition, ())),
        )
        for partition in sorted(group.offsets.keys() | consumers.keys())
    ]


def _as_document(group: DescribedGroup, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    coordinator = group.coordinator
    members = [
        {
            **{key: value for key, value in asdict(member).items() if key not in {"member_id", "assignment"}},
            "consumer_id": member.member_id,
            "assignment": None if member.assignment is None else by_topic(member.assignment),
        }
        for member in group.members
    ]
    return {
        "group": group.group,
        "state": group.state,
        "type": group.group_type,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": f"{coordinator.host}:{coordinator.port} ({coordinator.node_id})",
        "members": members,
        "partitions": partitions,
    }


def _as_text(document: dict[str, Any]) -> str:
    """Return one table each of the group, its topology, tasks, partitions and members; an empty table is left out."""
    members = [
        {
            **member,
            "partitions": None if member["assignment"] is None else sum(map(len, member["assignment"].values())),
            "assignment": [f"{topic}({','.join(map(str, indexes))})" for topic, indexes in (member["assignment"] or {}).items()],
        }
        for member in document["members"]
    ]
    tables = [render(_GROUP, [{**document, "members": len(members)}])]
    if document.get("subtopologies"):
        tables.append(render(SUBTOPOLOGY, document["subtopologies"]))
    if document.get("tasks"):
        tables.append(render(TASK, document["tasks"]))
    if document["partitions"]:
        columns = _SHARE_PARTITION if document["type"] == SHARE else _PARTITION
        tables.append(render(columns, document["partitions"]))
    if members:
        tables.append(render(_MEMBER, members))
    return "\n".join(tables)


_ROW = ("group", "topic", "partition", "current_offset", "new_offset")
_AT_MOST_ONE_TARGET = "give one of --to-earliest, --to-latest, --to-current, --to-offset, --to-datetime, --shift-by"


@groups.command("reset-offsets")
@click.argument("group")
@asks_a_broker
@click.option("--topic", "topics", metavar="TOPIC[:0,1]", multiple=True, help="A topic, or some of its partitions; repeatable.")
@click.option("--all-topics", is_flag=True, help="All topics with offsets of the group.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To the present offset; to the end if there is none.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after this time: ISO 8601, UTC by default.")
@click.option("--shift-by", type=int, help="Forward by this many records; back if negative.")
@click.option("--execute", is_flag=True, help="Change the offsets. Without it, the command only shows the new offsets.")
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
        raise click.UsageError("give either --topic or --all-topics")
    if sum(value is not None and value is not False for value in target.values()) != 1:
        raise click.UsageError(_AT_MOST_ONE_TARGET)
    since_ms = None if target["to_datetime"] is None else _timestamp_ms(str(target["to_datetime"]))
    wanted = list(map(_parse_topic, topics))
    with Cluster(bootstrap) as cluster:
        described = _without_members(cluster, group, may_be_new=not all_topics)
        partitions = sorted(described.offsets) if all_topics else sorted(set(_partitions_to_reset(cluster, wanted)))
        new, refusals = _targets(cluster, described.offsets, partitions, {**target, "to_datetime": since_ms})
        if execute and new:
            change = alter_start_offsets if described.group_type == SHARE else commit_offsets
            refusals += patiently(lambda: change(cluster, group, new))
    refused = {refusal.message.partition(":")[0] for refusal in refusals}
    rows = [
        row_of(_ROW, group, topic, index, described.offsets.get((topic, index)), offset)
        for (topic, index), offset in new.items()
        if f"{topic}-{index}" not in refused
    ]
    show(_ROW, rows, as_json=as_json)
    if not execute:
        click.echo("odradek: nothing was changed; add --execute to set these offsets", err=True)
    return exit_status(refusals)


def _without_members(cluster: Cluster, group: str, *, may_be_new: bool) -> DescribedGroup:
    """Return the group. A missing one counts as empty if ``may_be_new``: its first commit creates it. Raises Refused."""
    try:
        described = describe_group(cluster, group)
    except Refused as refusal:
        if refusal.code is not ErrorCode.GROUP_ID_NOT_FOUND or not may_be_new:
            raise
        _, node = patiently(lambda: cluster.coordinator(group))
        return DescribedGroup(group, "Empty", "classic", "", "", node, [])
    if described.members:
        raise Refused(group, ErrorCode.NON_EMPTY_GROUP, f"the group is {described.state} and has members: stop them first")
    return described


def _parse_topic(text: str) -> tuple[str, list[int] | None]:
    """Parse ``orders`` or ``orders:0,2``; no topic's name has a colon."""
    topic, colon, indexes = text.partition(":")
    if not colon:
        return topic, None
    if not topic or not all(index.isdecimal() for index in indexes.split(",")):
        raise click.UsageError(f"--topic {text}: not of the form TOPIC or TOPIC:0,1")
    return topic, [int(index) for index in indexes.split(",")]


def _partitions_to_reset(cluster: Cluster, wanted: list[tuple[str, list[int] | None]]) -> Iterable[Partition]:
    """Yield the requested partitions, by default all of a topic. Raises Refused for a topic that does not exist."""
    found = {str(topic.name): topic for topic in cluster.metadata(dict.fromkeys(topic for topic, _ in wanted))}
    for name, indexes in wanted:
        topic = found[name]
        if topic.error_code:
            raise Refused(name, topic.error_code)
        yield from ((name, index) for index in indexes or (int(partition.partition_index) for partition in topic.partitions))


def _timestamp_ms(text: str) -> int:
    try:
        return timestamp_ms_of(text)
    except ValueError as error:
        raise click.UsageError(f"--to-datetime {text}: not a time in ISO 8601, such as 2025-01-31T12:00:00") from error


def _targets(
    cluster: Cluster, current: dict[Partition, int], partitions: list[Partition], target: dict[str, Any]
) -> tuple[dict[Partition, int], list[Refused]]:
    """Return the new offset of each partition, within its log, and the refusals."""
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
    """Return a function: (log start, log end, offset for the time, committed offset) -> new offset, not limited to the log."""
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


@groups.command("delete-offsets")
@click.argument("group")
@asks_a_broker
@click.option("--topic", "topics", metavar="TOPIC", multiple=True, required=True, help="A topic to forget; repeatable.")
def delete_group_offsets(group: str, bootstrap: Servers, as_json: bool, topics: tuple[str, ...]) -> int:
    """Delete the offsets of topics that no member of GROUP reads. A share group must have no members at all."""
    names = list(dict.fromkeys(topics))
    with Cluster(bootstrap) as cluster:
        described = describe_group(cluster, group)
        refusals = patiently(lambda: delete_offsets(cluster, described, names))
    refused = {refusal.message.partition(":")[0] for refusal in refusals}
    rows = [{"group": group, "topic": name} for name in names if name not in refused]
    if rows or as_json:
        show(("group", "topic"), rows, as_json=as_json)
    return exit_status(refusals)
