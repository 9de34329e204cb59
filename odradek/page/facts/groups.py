"""The groups of all brokers: listed, described and with their committed offsets. For the overview, and for a group's own view."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.client.admin_apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, LIST_GROUPS
from odradek.client.apis import OFFSET_FETCH
from odradek.page.facts.source import ask_nodes
from odradek.protocol.coordinator_records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    subscribed_topics,
)
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.page.facts.source import Partition, Source
    from odradek.protocol.message_types.consumer_group_describe import Assignment
    from odradek.protocol.message_types.consumer_group_describe import DescribedGroup as NewerGroup
    from odradek.protocol.message_types.describe_groups import DescribedGroup as ClassicGroup

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
# Groups in one request.
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Listed:
    """A group as its coordinator lists it."""

    group: str
    kind: str
    protocol_type: str
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member. ``subscription`` and ``partitions`` are None if they are not in the consumer protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    subscription: tuple[str, ...] | None
    partitions: tuple[Partition, ...] | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Described:
    """A group with its members. ``epoch`` is None in classic groups."""

    group: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed offsets of a group, with their metadata."""

    offsets: dict[Partition, int] = field(default_factory=dict)
    metadata: dict[Partition, str] = field(default_factory=dict)


async def listed_groups(source: Source, nodes: Iterable[int]) -> tuple[list[Listed], dict[int, str]]:
    """Return the groups that these brokers list, by name, and the reasons of the silent brokers."""
    answers, silent = await ask_nodes(source, LIST_GROUPS, dict.fromkeys(nodes, ListGroupsRequest()))
    found = [
        Listed(each.group_id, each.group_type.lower() or CLASSIC, each.protocol_type, each.group_state, node_id)
        for node_id, answer in answers.items()
        for each in answer.groups
    ]
    return sorted(found, key=lambda each: each.group), silent


async def described_groups(source: Source, groups: Sequence[Listed]) -> dict[str, Described]:
    """Return the classic and the consumer groups among these, as their coordinators describe them. Refused ones are absent."""
    found: dict[str, Described] = {}
    for classic, newer in zip(_slices(groups, CLASSIC), _slices(groups, CONSUMER), strict=True):
        (of_classic, _), (of_newer, _) = await asyncio.gather(
            ask_nodes(source, DESCRIBE_GROUPS, {node: DescribeGroupsRequest(groups=names) for node, names in classic.items()}),
            ask_nodes(
                source,
                CONSUMER_GROUP_DESCRIBE,
                {node: ConsumerGroupDescribeRequest(group_ids=names) for node, names in newer.items()},
            ),
        )
        found |= {
            each.group_id: _classic(each) for answer in of_classic.values() for each in answer.groups if not each.error_code
        }
        found |= {each.group_id: _newer(each) for answer in of_newer.values() for each in answer.groups if not each.error_code}
    return found


async def committed_offsets(source: Source, groups: Sequence[Listed]) -> dict[str, Committed]:
    """Return the committed offsets of the groups. Refused groups are absent; topics that ACLs hide, too."""
    found: dict[str, Committed] = {}
    for by_node in _slices(groups, None):
        requests = {
            node: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
            for node, names in by_node.items()
        }
        answers, _ = await ask_nodes(source, OFFSET_FETCH, requests)
        for answer in answers.values():
            for group in answer.groups:
                if group.error_code:
                    continue
                committed = found[group.group_id] = Committed()
                for topic in group.topics:
                    for each in topic.partitions:
                        if not each.error_code and each.committed_offset >= 0:
                            partition = str(topic.name), int(each.partition_index)
                            committed.offsets[partition] = int(each.committed_offset)
                            committed.metadata[partition] = each.metadata or ""
    return found


def _slices(groups: Sequence[Listed], kind: str | None) -> list[dict[int, list[str]]]:
    """Return the groups of a kind by coordinator, in slices that fit into a request. Each kind has as many slices."""
    slices = []
    for start in range(0, len(groups), _AT_ONCE):
        by_node: dict[int, list[str]] = {}
        for each in groups[start : start + _AT_ONCE]:
            if kind is None or each.kind == kind:
                by_node.setdefault(each.coordinator, []).append(each.group)
        slices.append(by_node)
    return slices


def _classic(group: ClassicGroup) -> Described:
    # A group without a protocol is between two generations: its members have no partitions.
    is_readable = group.protocol_type == CONSUMER_PROTOCOL_TYPE and bool(group.protocol_data)
    members = tuple(
        Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            _subscription(member.member_metadata) if is_readable else None,
            _partitions(member.member_assignment) if is_readable else None,
            None,
        )
        for member in group.members
    )
    return Described(group.group_id, group.group_state, group.protocol_type, group.protocol_data, None, members)


def _subscription(data: bytes) -> tuple[str, ...] | None:
    try:
        return tuple(sorted(subscribed_topics(data))) if data else None
    except MalformedMessage:
        return None


def _partitions(data: bytes) -> tuple[Partition, ...] | None:
    try:
        return tuple(sorted((topic, index) for topic, indexes in assigned_partitions(data) for index in indexes)) if data else ()
    except MalformedMessage:
        return None


def _newer(group: NewerGroup) -> Described:
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            _subscribed(member.subscribed_topic_names, member.subscribed_topic_regex),
            _assigned(member.assignment),
            member.member_epoch,
        )
        for member in group.members
    )
    return Described(group.group_id, group.group_state, CONSUMER_PROTOCOL_TYPE, group.assignor_name, group.group_epoch, members)


def _subscribed(names: Sequence[str], regex: str | None) -> tuple[str, ...]:
    return (*sorted(map(str, names)), *((f"regex {regex}",) if regex else ()))


def _assigned(assignment: Assignment) -> tuple[Partition, ...]:
    topics = assignment.topic_partitions
    return tuple(sorted((str(topic.topic_name), int(index)) for topic in topics for index in topic.partitions))
