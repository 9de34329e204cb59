"""The groups of all brokers: listed, described and with their committed offsets. For the overview, and for a group's own view."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.client import group_offsets
from odradek.client.admin_apis import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    LIST_GROUPS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from odradek.client.apis import OFFSET_FETCH
from odradek.client.streams_groups import input_partitions
from odradek.page.facts.source import ask_nodes, in_turns
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest
from odradek.protocol.message_types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.protocol.message_types.share_group_describe import Member as ShareMember
from odradek.protocol.message_types.share_group_describe import ShareGroupDescribeRequest
from odradek.protocol.message_types.streams_group_describe import StreamsGroupDescribeRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from odradek.client.api import Api
    from odradek.page.facts.source import Partition, Source
    from odradek.protocol.message_types.consumer_group_describe import DescribedGroup as NewerGroup
    from odradek.protocol.message_types.consumer_group_describe import Member as NewerMember
    from odradek.protocol.message_types.describe_groups import DescribedGroup as ClassicGroup
    from odradek.protocol.message_types.share_group_describe import DescribedGroup as ShareGroup
    from odradek.protocol.message_types.streams_group_describe import DescribedGroup as StreamsGroup

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
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
    """A member. ``partitions`` is None if it is unknown. ``epoch`` is None in classic groups."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Partition, ...] | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Described:
    """A group with its members. ``epoch`` is None in classic groups.

    Only a streams group has ``streams``, the answer with its topology and tasks. Its members' partitions are those that their
    active tasks read.
    """

    group: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    members: tuple[Member, ...]
    streams: StreamsGroup | None = None


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
    """Return the groups of known kinds among these, as their coordinators describe them. Refused ones are absent."""
    of_kinds = await asyncio.gather(*(_described(source, groups, kind) for kind in _DESCRIPTIONS))
    return {each.group: each for described in of_kinds for each in described}


async def _described(source: Source, groups: Sequence[Listed], kind: str) -> list[Described]:
    api, request, read = _DESCRIPTIONS[kind]
    found = []
    for by_node in _slices(groups, kind):
        answers, _ = await ask_nodes(source, api, {node: request(names) for node, names in by_node.items()})
        found += [await read(each) for answer in answers.values() for each in answer.groups if not each.error_code]
    return found


async def committed_offsets(source: Source, groups: Sequence[Listed]) -> dict[str, dict[Partition, int]]:
    """Return the committed offsets of the groups. Refused groups are absent; topics that ACLs hide, too."""
    found: dict[str, dict[Partition, int]] = {}
    for by_node in _slices(groups, None):
        requests = {
            node: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
            for node, names in by_node.items()
        }
        answers, _ = await ask_nodes(source, OFFSET_FETCH, requests)
        found |= {
            each.group_id: group_offsets.committed_offsets(each)
            for answer in answers.values()
            for each in answer.groups
            if not each.error_code
        }
    return found


async def start_offsets(source: Source, groups: Sequence[Listed]) -> dict[str, dict[Partition, tuple[int, int | None]]]:
    """Return start offset and lag of each partition of the share groups among these. The lag is None if it is unknown.

    Refused groups are absent; topics that ACLs hide, too.
    """
    offsets: dict[str, dict[Partition, tuple[int, int | None]]] = {}
    for by_node in _slices(groups, SHARE):
        requests = {
            node: DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
            )
            for node, names in by_node.items()
        }
        answers, _ = await ask_nodes(source, DESCRIBE_SHARE_GROUP_OFFSETS, requests)
        offsets |= {
            found.group_id: {
                (topic.topic_name, each.partition_index): (each.start_offset, each.lag if each.lag >= 0 else None)
                for topic in found.topics
                for each in topic.partitions
                if not each.error_code and each.start_offset >= 0
            }
            for answer in answers.values()
            for found in answer.groups
            if not found.error_code
        }
    return offsets


def _slices(groups: Sequence[Listed], kind: str | None) -> list[dict[int, list[str]]]:
    """Return the groups of a kind by coordinator, in slices that fit into a request."""
    slices = []
    for start in range(0, len(groups), _AT_ONCE):
        by_node: dict[int, list[str]] = {}
        for each in groups[start : start + _AT_ONCE]:
            if kind is None or each.kind == kind:
                by_node.setdefault(each.coordinator, []).append(each.group)
        slices.append(by_node)
    return slices


async def _classic(group: ClassicGroup) -> Described:
    # A group without a protocol is between two generations: its members have no partitions.
    is_readable = group.protocol_type == CONSUMER_PROTOCOL_TYPE and bool(group.protocol_data)
    members = await in_turns(
        lambda member: Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            _partitions(member.member_assignment) if is_readable else None,
            None,
        ),
        group.members,
    )
    return Described(group.group_id, group.group_state, group.protocol_type, group.protocol_data, None, members)


def _partitions(data: bytes) -> tuple[Partition, ...] | None:
    try:
        return tuple(sorted((topic, index) for topic, indexes in assigned_partitions(data) for index in indexes)) if data else ()
    except MalformedMessage:
        return None


async def _modern(protocol_type: str, group: NewerGroup | ShareGroup) -> Described:
    listed: Sequence[NewerMember | ShareMember] = group.members
    members = await in_turns(_member, listed)
    return Described(group.group_id, group.group_state, protocol_type, group.assignor_name, group.group_epoch, members)


async def _streams(group: StreamsGroup) -> Described:
    subtopologies = (None if group.topology is None else group.topology.subtopologies) or ()
    members = await in_turns(
        lambda member: Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            tuple(input_partitions(member.assignment, subtopologies)),
            member.member_epoch,
        ),
        group.members,
    )
    assignor = group.assignor_name or ""
    return Described(group.group_id, group.group_state, STREAMS, assignor, group.group_epoch, members, streams=group)


def _member(member: NewerMember | ShareMember) -> Member:
    assigned = ((each.topic_name, index) for each in member.assignment.topic_partitions for index in each.partitions)
    instance_id = None if isinstance(member, ShareMember) else member.instance_id
    host = member.client_host.lstrip("/")
    return Member(member.member_id, instance_id, member.client_id, host, tuple(sorted(assigned)), member.member_epoch)


class _Description(NamedTuple):
    """The request that describes groups of a kind, and the function that reads a group of the answer."""

    api: Api[Any, Any]
    request: Callable[[list[str]], Any]
    read: Callable[[Any], Awaitable[Described]]


_DESCRIPTIONS: Final = {
    CLASSIC: _Description(DESCRIBE_GROUPS, DescribeGroupsRequest, _classic),
    CONSUMER: _Description(CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest, partial(_modern, CONSUMER_PROTOCOL_TYPE)),
    SHARE: _Description(SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest, partial(_modern, SHARE)),
    STREAMS: _Description(STREAMS_GROUP_DESCRIBE, StreamsGroupDescribeRequest, _streams),
}
