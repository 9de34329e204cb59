"""A group as any broker describes it: state, members, what each is assigned, and how far the group has read.

Classic groups are told by DescribeGroups, whose members' assignments are bytes that the clients agree on (the consumer protocol);
groups of the newer protocol (KIP-848) by ConsumerGroupDescribe, where the broker has it.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from odradek.cli.apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, OFFSET_FETCH
from odradek.cli.cluster import LATEST_TIMESTAMP, Cluster, Node
from odradek.cli.refusals import Refused, check, patiently
from odradek.cli.wire import Connection
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

Partition = tuple[str, int]

_CONSUMER = "consumer"
_DEAD = "Dead"
_NEWEST_CONSUMER_PROTOCOL = 3


@dataclass(frozen=True, slots=True)
class Member:
    """A member; ``assignment`` and ``subscription`` are None where they are not in the consumer protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[Partition] | None
    subscription: list[str] | None


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group; ``group_type`` is ``classic`` or ``consumer``, ``protocol`` the assignor its members agreed on."""

    group: str
    state: str
    group_type: str
    protocol_type: str
    protocol: str
    coordinator: Node
    members: list[Member]
    offsets: dict[Partition, int] = field(default_factory=dict)


def describe_group(cluster: Cluster, group: str) -> DescribedGroup:
    """The group and its committed offsets. Raises Refused; GROUP_ID_NOT_FOUND where there is no such group."""
    return patiently(lambda: _describe(cluster, group))


def _describe(cluster: Cluster, group: str) -> DescribedGroup:
    connection, node = cluster.coordinator(group)
    offsets = fetch_offsets(connection, group)
    request = messages(ApiKey.DESCRIBE_GROUPS).DescribeGroupsRequest(groups=[group])
    described = connection.call(DESCRIBE_GROUPS, request).groups[0]
    is_unknown = described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    if not is_unknown:
        check(group, described.error_code, described.error_message)
    if is_unknown or described.group_state == _DEAD:
        # Either there is no such group, or it is not a classic one.
        if connection.serves(CONSUMER_GROUP_DESCRIBE):
            return _describe_consumer_group(connection, group, node, offsets)
        raise Refused(group, ErrorCode.GROUP_ID_NOT_FOUND)
    return DescribedGroup(
        group,
        described.group_state,
        "classic",
        described.protocol_type,
        described.protocol_data,
        node,
        [_classic_member(member, described) for member in described.members],
        offsets,
    )


def _classic_member(member: Any, group: Any) -> Member:
    assignment = subscription = None
    # Without a protocol the group is between two generations, and nobody has anything.
    if group.protocol_type == _CONSUMER and group.protocol_data:
        assigned = _decode("assignment", member.member_assignment)
        subscribed = _decode("subscription", member.member_metadata)
        if assigned is not None:
            assignment = sorted(
                (str(topic.topic), int(index)) for topic in assigned.assigned_partitions for index in topic.partitions
            )
        if subscribed is not None:
            subscription = sorted(map(str, subscribed.topics))
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        assignment,
        subscription,
    )


def _decode(what: str, data: bytes) -> Any:
    """A ConsumerProtocolAssignment or -Subscription, its version in the first two bytes; None where it is none, or empty."""
    from kio.serial import entity_reader

    version = min(int.from_bytes(data[:2], "big", signed=True), _NEWEST_CONSUMER_PROTOCOL)
    if len(data) < 2 or version < 0:
        return None
    module = import_module(f"kio.schema.consumer_protocol_{what}.v{version}.data")
    try:
        decoded, _ = entity_reader(getattr(module, f"ConsumerProtocol{what.capitalize()}"))(data, 2)
    except Exception:  # noqa: BLE001  whatever the bytes are, they are the members' own
        return None
    return decoded


def _describe_consumer_group(connection: Connection, group: str, node: Node, offsets: dict[Partition, int]) -> DescribedGroup:
    request = messages(ApiKey.CONSUMER_GROUP_DESCRIBE).ConsumerGroupDescribeRequest(group_ids=[group])
    described = connection.call(CONSUMER_GROUP_DESCRIBE, request).groups[0]
    check(group, described.error_code, None if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND else described.error_message)
    members = [
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            sorted(
                (str(topic.topic_name), int(index)) for topic in member.assignment.topic_partitions for index in topic.partitions
            ),
            sorted(map(str, member.subscribed_topic_names)),
        )
        for member in described.members
    ]
    return DescribedGroup(group, described.group_state, _CONSUMER, _CONSUMER, described.assignor_name, node, members, offsets)


def fetch_offsets(connection: Connection, group: str) -> dict[Partition, int]:
    """Every offset the group has committed, from its coordinator. Raises Refused."""
    api = messages(ApiKey.OFFSET_FETCH)
    asked = api.classes["request"]["OffsetFetchRequestGroup"](group_id=group, topics=None)
    answer = connection.call(OFFSET_FETCH, api.OffsetFetchRequest(groups=[asked])).groups[0]
    check(group, answer.error_code)
    return {
        (str(topic.name), int(partition.partition_index)): int(partition.committed_offset)
        for topic in answer.topics
        for partition in topic.partitions
        if not partition.error_code and partition.committed_offset >= 0
    }


def end_offsets(cluster: Cluster, partitions: set[Partition]) -> dict[Partition, int | None]:
    """The log's end of each, None where it is not to be had."""
    found = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    return {partition: None if isinstance(offset, Refused) else offset for partition, offset in found.items()}
