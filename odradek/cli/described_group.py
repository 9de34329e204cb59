"""The groups of each broker, and a group as any broker describes it: its state, members, assignments and offsets.

DescribeGroups describes classic groups. The assignments of their members are bytes in the clients' own consumer protocol.
ConsumerGroupDescribe describes groups of the newer protocol (KIP-848), ShareGroupDescribe share groups (KIP-932), and
StreamsGroupDescribe streams groups (KIP-1071), if the broker serves them. Share groups have start offsets instead of committed
ones.
"""

from dataclasses import dataclass, field
from typing import Any

from odradek.cli.cluster import Cluster, Connection, Refused, Unreachable, check, patiently
from odradek.cli.options import did_you_mean
from odradek.client.admin_apis import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    LIST_GROUPS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from odradek.client.apis import LATEST_TIMESTAMP, OFFSET_FETCH
from odradek.client.group_offsets import committed_offsets
from odradek.client.known_cluster import Node, Partition
from odradek.client.streams_groups import input_partitions, input_topics
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions, subscribed_topics
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.message_types.consumer_group_describe import Member as ConsumerMember
from odradek.protocol.message_types.describe_groups import DescribedGroup as DescribedClassicGroup
from odradek.protocol.message_types.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from odradek.protocol.message_types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.protocol.message_types.share_group_describe import Member as ShareMember
from odradek.protocol.message_types.share_group_describe import ShareGroupDescribeRequest
from odradek.protocol.message_types.streams_group_describe import DescribedGroup as DescribedStreamsGroup
from odradek.protocol.message_types.streams_group_describe import StreamsGroupDescribeRequest

_CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
_DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Member:
    """A member. ``assignment`` and ``subscription`` are None if they are not in the consumer protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[Partition] | None
    subscription: list[str] | None


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group. ``group_type`` is ``classic``, ``consumer``, ``share`` or ``streams``; ``protocol`` is its members' assignor.

    A share group's ``offsets`` are its start offsets; only such a group has ``lags``. Only a streams group has ``streams``, the
    answer with its topology and tasks. The assignments of its members are the partitions that their active tasks read.
    """

    group: str
    state: str
    group_type: str
    protocol_type: str
    protocol: str
    coordinator: Node
    members: list[Member]
    offsets: dict[Partition, int] = field(default_factory=dict)
    lags: dict[Partition, int] = field(default_factory=dict)
    streams: DescribedStreamsGroup | None = None


def describe_group(cluster: Cluster, group: str) -> DescribedGroup:
    """Return the group and its offsets. Raises Refused; with GROUP_ID_NOT_FOUND if the group does not exist."""
    return patiently(lambda: _describe(cluster, group))


def _describe(cluster: Cluster, group: str) -> DescribedGroup:
    connection, node = cluster.coordinator(group)
    request = DescribeGroupsRequest(groups=[group])
    described = connection.call(DESCRIBE_GROUPS, request).groups[0]
    is_unknown = described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    if not is_unknown:
        check(group, described.error_code, described.error_message)
    if is_unknown or described.group_state == _DEAD:
        # The group does not exist, or it is not a classic one.
        found = None
        if connection.serves(CONSUMER_GROUP_DESCRIBE):
            found = _describe_consumer_group(connection, group, node)
        if found is None and connection.serves(SHARE_GROUP_DESCRIBE):
            found = _describe_share_group(connection, group, node)
        if found is None and connection.serves(STREAMS_GROUP_DESCRIBE):
            found = _describe_streams_group(cluster, connection, group, node)
        if found is None:
            raise Refused(group, ErrorCode.GROUP_ID_NOT_FOUND)
        return found
    return DescribedGroup(
        group,
        described.group_state,
        "classic",
        described.protocol_type,
        described.protocol_data,
        node,
        [_classic_member(member, described) for member in described.members],
        fetch_offsets(connection, group),
    )


def _classic_member(member: DescribedGroupMember, group: DescribedClassicGroup) -> Member:
    assignment = subscription = None
    # A group without a protocol is between two generations: its members have no partitions.
    if group.protocol_type == _CONSUMER and group.protocol_data:
        assignment = _assignment(member.member_assignment)
        subscription = _subscription(member.member_metadata)
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
        subscription,
    )


def _assignment(data: bytes) -> list[Partition] | None:
    try:
        return sorted((topic, index) for topic, indexes in assigned_partitions(data) for index in indexes) if data else None
    except MalformedMessage:
        return None


def _subscription(data: bytes) -> list[str] | None:
    try:
        return sorted(subscribed_topics(data)) if data else None
    except MalformedMessage:
        return None


def _describe_consumer_group(connection: Connection, group: str, node: Node) -> DescribedGroup | None:
    """Return the consumer group; None if there is none of this name, or if the newer protocol is off."""
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    described = connection.call(CONSUMER_GROUP_DESCRIBE, request).groups[0]
    if described.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(group, described.error_code, described.error_message)
    members = [_member(member, member.instance_id) for member in described.members]
    offsets = fetch_offsets(connection, group)
    return DescribedGroup(group, described.group_state, _CONSUMER, _CONSUMER, described.assignor_name, node, members, offsets)


def _member(member: ConsumerMember | ShareMember, instance_id: str | None) -> Member:
    assigned = ((topic.topic_name, index) for topic in member.assignment.topic_partitions for index in topic.partitions)
    names = sorted(member.subscribed_topic_names)
    return Member(member.member_id, instance_id, member.client_id, member.client_host, sorted(assigned), names)


def _describe_share_group(connection: Connection, group: str, node: Node) -> DescribedGroup | None:
    """Return the share group; None if there is none of this name, or if share groups are off."""
    described = connection.call(SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest(group_ids=[group])).groups[0]
    if described.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(group, described.error_code, described.error_message)
    members = [_member(member, None) for member in described.members]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    answer = connection.call(DESCRIBE_SHARE_GROUP_OFFSETS, DescribeShareGroupOffsetsRequest(groups=[asked])).groups[0]
    check(group, answer.error_code, answer.error_message)
    read = [(topic.topic_name, each) for topic in answer.topics for each in topic.partitions if not each.error_code]
    offsets = {(name, each.partition_index): each.start_offset for name, each in read if each.start_offset >= 0}
    lags = {(name, each.partition_index): each.lag for name, each in read if each.lag >= 0}
    return DescribedGroup(group, described.group_state, SHARE, SHARE, described.assignor_name, node, members, offsets, lags)


def _describe_streams_group(cluster: Cluster, connection: Connection, group: str, node: Node) -> DescribedGroup | None:
    """Return the streams group; None if there is none of this name, or if streams groups are off."""
    described = connection.call(STREAMS_GROUP_DESCRIBE, StreamsGroupDescribeRequest(group_ids=[group])).groups[0]
    if described.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(group, described.error_code, described.error_message)
    subtopologies = (described.topology.subtopologies if described.topology is not None else None) or ()
    topics = sorted({topic for each in subtopologies for topic in input_topics(each)})
    existing = {(str(topic.name), int(each.partition_index)) for topic in cluster.metadata(topics) for each in topic.partitions}
    members = []
    for member in described.members:
        read = [each for each in input_partitions(member.assignment, subtopologies) if each in existing]
        host = member.client_host
        members.append(Member(member.member_id, member.instance_id, member.client_id, host, read, topics))
    offsets = fetch_offsets(connection, group)
    return DescribedGroup(
        group, described.group_state, STREAMS, STREAMS, described.assignor_name or "", node, members, offsets, streams=described
    )


def fetch_offsets(connection: Connection, group: str) -> dict[Partition, int]:
    """Return every committed offset of the group, as its coordinator has them. Raises Refused."""
    asked = OffsetFetchRequestGroup(group_id=group, topics=None)
    answer = connection.call(OFFSET_FETCH, OffsetFetchRequest(groups=[asked])).groups[0]
    check(group, answer.error_code)
    return committed_offsets(answer)


def end_offsets(cluster: Cluster, partitions: set[Partition]) -> dict[Partition, int | None]:
    """Return the log end offset of each partition; None if its leader does not give it."""
    found = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    return {partition: None if isinstance(offset, Refused) else offset for partition, offset in found.items()}


def groups_of_broker(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    """Return the groups of one broker; none if it does not answer."""
    return cluster.tried(lambda: patiently(lambda: _listed(cluster, node_id))) or []


def _listed(cluster: Cluster, node_id: int) -> list[dict[str, Any]]:
    answer = cluster.node(node_id).call(LIST_GROUPS, ListGroupsRequest())
    check(f"groups of broker {node_id}", answer.error_code)
    return [
        {
            "group": str(group.group_id),
            # Version 4 added the state, version 5 the type.
            "state": group.group_state or None,
            "type": group.group_type or None,
            "protocol_type": group.protocol_type,
            "coordinator": node_id,
        }
        for group in answer.groups
    ]


def with_similar_groups(cluster: Cluster, name: str, failure: Refused | Unreachable) -> Refused | Unreachable:
    """Return the failure; for a group that does not exist, with the names that it resembles."""
    if not isinstance(failure, Refused) or failure.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return failure
    known = [row["group"] for node in cluster.nodes() for row in groups_of_broker(cluster, node.node_id)]
    similar = did_you_mean(name, known)
    return Refused(name, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no such group{similar}") if similar else failure
