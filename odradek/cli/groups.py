"""``odradek groups``: list, describe, explain, reset-offsets and delete, on any broker."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from odradek.cli.apis import DELETE_GROUPS, LIST_GROUPS
from odradek.cli.cluster import Cluster
from odradek.cli.described_group import DescribedGroup, Member, Partition, describe_group, end_offsets
from odradek.cli.explain_group import explain
from odradek.cli.options import asks_a_broker, help_where_nothing_is_asked
from odradek.cli.refusals import Refused, Unreachable, check, patiently
from odradek.cli.reset_offsets import reset_offsets
from odradek.cli.table import exit_status, render, show, show_json
from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest
from odradek.protocol.message_types.list_groups import ListGroupsRequest

Servers = list[tuple[str, int]]

_LISTED = ("group", "state", "type", "protocol_type", "coordinator")
_GROUP = ("group", "state", "type", "protocol", "coordinator", "members")
_PARTITION = ("topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id")
_MEMBER = ("consumer_id", "instance_id", "host", "client_id", "partitions", "assignment")


@click.group(invoke_without_command=True)
@click.pass_context
def groups(context: click.Context) -> None:
    """Consumer groups of any Kafka broker."""
    help_where_nothing_is_asked(context)


groups.add_command(reset_offsets)
groups.add_command(explain)


@groups.command("list")
@asks_a_broker
@click.option("--state", "states", multiple=True, help="Only groups in this state (Stable, Empty, ...); repeatable.")
def list_groups(bootstrap: Servers, as_json: bool, states: tuple[str, ...]) -> int:
    """Every group, from every broker."""
    wanted = {state.lower() for state in states}
    with Cluster(bootstrap) as cluster:
        rows = [row for node in cluster.nodes() for row in _listed_by(cluster, node.node_id)]
    if wanted:
        rows = [row for row in rows if (row["state"] or "").lower() in wanted]
    show(_LISTED, sorted(rows, key=lambda row: str(row["group"])), as_json=as_json)
    return exit_status(cluster.unreachable)


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@asks_a_broker
def describe(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Members with what they are assigned, and for each partition the offset committed, the log's end and the lag."""
    documents: list[dict[str, Any]] = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        for name in dict.fromkeys(names):
            try:
                group = describe_group(cluster, name)
            except (Refused, Unreachable) as failure:
                failures.append(failure)
                continue
            documents.append(_as_document(group, _partitions(cluster, group)))
    if as_json:
        show_json(documents)
    else:
        click.echo("\n".join(map(_as_text, documents)), nl=False)
    return exit_status([*failures, *cluster.unreachable])


@groups.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@asks_a_broker
def delete(names: tuple[str, ...], bootstrap: Servers, as_json: bool) -> int:
    """Delete groups without members, and their committed offsets."""
    deleted = []
    failures: list[Refused | Unreachable] = []
    with Cluster(bootstrap) as cluster:
        for name in dict.fromkeys(names):
            try:
                patiently(lambda name=name: _delete(cluster, name))  # type: ignore[misc]
                deleted.append({"group": name})
            except (Refused, Unreachable) as failure:
                failures.append(failure)
    if deleted or as_json:
        show(("group",), deleted, as_json=as_json)
    return exit_status(failures)


def _delete(cluster: Cluster, group: str) -> None:
    connection, _ = cluster.coordinator(group)
    request = DeleteGroupsRequest(groups_names=[group])
    check(group, connection.call(DELETE_GROUPS, request).results[0].error_code)


def _listed_by(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    """The groups of one broker; none where it does not answer."""
    return cluster.tried(lambda: patiently(lambda: _listed(cluster, node_id))) or []


def _listed(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    answer = cluster.node(node_id).call(LIST_GROUPS, ListGroupsRequest())
    check(f"groups of broker {node_id}", answer.error_code)
    return [
        {
            "group": str(group.group_id),
            # The state came with version 4, the type with version 5.
            "state": group.group_state or None,
            "type": group.group_type or None,
            "protocol_type": group.protocol_type,
            "coordinator": node_id,
        }
        for group in answer.groups
    ]


def _partitions(cluster: Cluster, group: DescribedGroup) -> list[dict[str, Any]]:
    """A row for each partition with a committed offset or an owner."""
    owners: dict[Partition, Member] = {partition: member for member in group.members for partition in member.assignment or ()}
    partitions = group.offsets.keys() | owners.keys()
    ends = end_offsets(cluster, partitions)
    rows = []
    for partition in sorted(partitions):
        owner = owners.get(partition)
        current, end = group.offsets.get(partition), ends[partition]
        lag = None if current is None or end is None else max(end - current, 0)
        who = (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)
        rows.append(dict(zip(_PARTITION, (*partition, current, end, lag, *who), strict=True)))
    return rows


def _as_document(group: DescribedGroup, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    coordinator = group.coordinator
    members = [
        {
            **{key: value for key, value in asdict(member).items() if key not in {"member_id", "assignment"}},
            "consumer_id": member.member_id,
            "assignment": _by_topic(member.assignment),
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


def _by_topic(assignment: Iterable[Partition] | None) -> dict[str, list[int]] | None:
    if assignment is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, index in assignment:
        by_topic.setdefault(topic, []).append(index)
    return by_topic


def _as_text(document: dict[str, Any]) -> str:
    """A table each of the group, its partitions and its members; an empty table is left out."""
    members = [
        {
            **member,
            "partitions": None if member["assignment"] is None else sum(map(len, member["assignment"].values())),
            "assignment": [f"{topic}({','.join(map(str, indexes))})" for topic, indexes in (member["assignment"] or {}).items()],
        }
        for member in document["members"]
    ]
    tables = [render(_GROUP, [{**document, "members": len(members)}])]
    if document["partitions"]:
        tables.append(render(_PARTITION, document["partitions"]))
    if members:
        tables.append(render(_MEMBER, members))
    return "\n".join(tables)
