"""A broker's state for tests: topics, groups, transactions. Each has a line of text, for failures and reports."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.client.streams_groups import StreamsTask, input_partitions, input_topics, tasks_of
from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    assigned_partitions,
    subscribed_topics,
)
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.testing.misuse import Named

if TYPE_CHECKING:
    from odradek.protocol.message_types.consumer_group_describe import Member as NewerMember
    from odradek.protocol.message_types.describe_groups import DescribedGroupMember
    from odradek.protocol.message_types.describe_share_group_offsets import (
        DescribeShareGroupOffsetsResponsePartition as ReadPartition,
    )
    from odradek.protocol.message_types.describe_transactions import TransactionState
    from odradek.protocol.message_types.share_group_describe import DescribedGroup as DescribedShareGroup
    from odradek.protocol.message_types.share_group_describe import Member as ShareMember
    from odradek.protocol.message_types.streams_group_describe import DescribedGroup as DescribedStreamsGroup
    from odradek.testing.in_flight import InFlightRecords
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

Partition = tuple[str, int]

_LIST_GROUPS_VERSION = 5
_DESCRIBE_GROUPS_VERSION = 6
_CONSUMER_GROUP_DESCRIBE_VERSION = 1
# The types of groups of the consumer protocol (KIP-848), of share groups (KIP-932) and of streams groups (KIP-1071).
_CONSUMER = "consumer"
_SHARE = "share"
_STREAMS = "streams"
_SHARE_GROUP_DESCRIBE_VERSION = 1
_STREAMS_GROUP_DESCRIBE_VERSION = 1
_DESCRIBE_SHARE_GROUP_OFFSETS_VERSION = 1
_OFFSET_FETCH_VERSION = 9
_LIST_TRANSACTIONS_VERSION = 1
_DESCRIBE_TRANSACTIONS_VERSION = 0
# The most records in flight, or tasks, in a group's line of text.
_MOST_TOLD = 20
# The pause before a coordinator that loads its log is asked again.
_LOADING_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; offsets by partition. An end offset is the high watermark, and counts transaction markers, too."""

    name: str
    start_offsets: dict[int, int]
    end_offsets: dict[int, int]

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.end_offsets)

    def __str__(self) -> str:
        ends = ", ".join(f"{index}: {self.start_offsets[index]} to {end}" for index, end in self.end_offsets.items())
        return f"topic {self.name!r}: offsets by partition {ends}"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, with its assigned partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        return f"{self.member_id} ({', '.join(_text(each) for each in self.partitions) or 'no partitions'})"


@dataclass(frozen=True, slots=True)
class Group:
    """A group. ``lag`` has every partition that is subscribed to, is assigned or has a committed offset.

    The lag is the number of records after the committed offset, or of all records if nothing is committed. ``topics`` are
    those that the members subscribe to.

    A share group has start offsets instead of committed ones. Its lag counts the records from there that are neither acknowledged
    nor archived. Both lack the partitions that no member has fetched from. Only a share group has records ``in_flight``.
    Its ``acknowledged`` counts the records that members have accepted since the broker last started.

    A streams group has ``tasks``. Its topics are those that its topology reads, repartition topics included, and its members'
    partitions are those that their active tasks read.
    """

    group_id: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    topics: tuple[str, ...]
    offsets: dict[Partition, int]
    lag: dict[Partition, int]
    group_type: str = "classic"
    in_flight: tuple[InFlightRecords, ...] = ()
    acknowledged: int = 0
    tasks: tuple[StreamsTask, ...] = ()

    @property
    def total_lag(self) -> int:
        """Return the lag of all partitions together."""
        return sum(self.lag.values())

    def __str__(self) -> str:
        members = ", ".join(map(str, self.members)) or "none"
        partitions = ", ".join(f"{_text(each)} {self.offsets.get(each)} (lag {lag})" for each, lag in self.lag.items()) or "none"
        kind, what = ("share group", "start") if self.group_type == _SHARE else ("group", "committed")
        acknowledged = f"; {self.acknowledged} records acknowledged" if self.group_type == _SHARE else ""
        more = "".join(f"; {each}" for each in self.in_flight[:_MOST_TOLD])
        if len(self.in_flight) > _MOST_TOLD:
            more += f"; {len(self.in_flight) - _MOST_TOLD} more in flight"
        more += "".join(f"; {_task_text(each)}" for each in self.tasks[:_MOST_TOLD])
        if len(self.tasks) > _MOST_TOLD:
            more += f"; {len(self.tasks) - _MOST_TOLD} more tasks"
        told = f"{kind} {self.group_id!r}: {self.state}, members {members}; {what} offsets {partitions}"
        return f"{told}{acknowledged}{more}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id and the state of its transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        partitions = ", ".join(map(_text, self.partitions)) or "none"
        return f"transactional id {self.transactional_id!r}: {self.state}, epoch {self.producer_epoch}, partitions {partitions}"


def topics(broker: InProcessBroker) -> Named[str, Topic]:
    """Return the topics by name, without the coordinators' own."""
    core = broker.core
    found = {}
    for name in sorted(core.controller.image.topics):
        if name not in INTERNAL_TOPICS:
            partitions = dict(sorted(core.partitions.of_topic(name).items()))
            start_offsets = {index: 0 if each.log is None else each.log.log_start_offset for index, each in partitions.items()}
            end_offsets = {index: each.high_watermark for index, each in partitions.items()}
            found[name] = Topic(name, Named.of("partition", start_offsets), Named.of("partition", end_offsets))
    return Named.of("topic", found)


async def groups(broker: InProcessBroker) -> Named[str, Group]:
    """Return the groups by group id."""
    listed = await _listed(broker, ApiKey.LIST_GROUPS, ListGroupsRequest(), _LIST_GROUPS_VERSION)
    shares = await _share_groups(broker, [group.group_id for group in listed.groups if group.group_type == _SHARE])
    names = sorted(group.group_id for group in listed.groups if group.group_type != _SHARE)
    newer = [group.group_id for group in listed.groups if group.group_type == _CONSUMER]
    streams = [group.group_id for group in listed.groups if group.group_type == _STREAMS]
    described = await _described(broker, [name for name in names if name not in newer and name not in streams], newer)
    described |= await _described_streams(broker, streams)
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
    fetched = await broker.ask(ApiKey.OFFSET_FETCH, asked, _OFFSET_FETCH_VERSION)
    offsets = {
        group.group_id: {
            (topic.name, each.partition_index): each.committed_offset for topic in group.topics for each in topic.partitions
        }
        for group in fetched.groups
    }
    found = {name: _group(broker, described[name], offsets[name]) for name in names if name in described}
    return Named.of("group", dict(sorted((found | shares).items())))


def lag_of(found: Named[str, Group], group_id: str) -> int:
    """Return the total lag of a group. Raises AssertionError if it is unknown: 0 would mean that everything was read."""
    group = found.get(group_id)
    if group is None:
        raise AssertionError(f"there is no group {group_id!r}; groups: {', '.join(found) or 'none'}")
    if not group.topics and not group.lag:
        raise AssertionError(
            f"group {group_id!r} has no lag yet: it is {group.state}, and has neither subscribed nor committed anything; "
            f"wait_for(group={group_id!r}, lag=0) waits until it has"
        )
    return group.total_lag


async def transactions(broker: InProcessBroker) -> Named[str, Transaction]:
    """Return the transactions by transactional id."""
    listed = await _listed(broker, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(), _LIST_TRANSACTIONS_VERSION)
    names = sorted(each.transactional_id for each in listed.transaction_states)
    asked = DescribeTransactionsRequest(transactional_ids=names)
    described = await broker.ask(ApiKey.DESCRIBE_TRANSACTIONS, asked, _DESCRIBE_TRANSACTIONS_VERSION)
    found = {each.transactional_id: _transaction(each) for each in described.transaction_states if not each.error_code}
    return Named.of("transactional id", found)


async def _listed(broker: InProcessBroker, api_key: ApiKey, request: Any, version: int) -> Any:
    """Return the response, once the coordinators have loaded."""
    while True:
        response = await broker.ask(api_key, request, version)
        if response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return response
        await asyncio.sleep(_LOADING_PAUSE_S)


class _Described(NamedTuple):
    """A group without its offsets."""

    group_id: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    topics: set[str]
    group_type: str = "classic"
    tasks: tuple[StreamsTask, ...] = ()


async def _described(broker: InProcessBroker, classic: list[str], newer: list[str]) -> dict[str, _Described]:
    """Describe groups of both protocols. Groups that are gone since the listing are left out."""
    found = []
    if classic:
        asked = DescribeGroupsRequest(groups=classic)
        for each in (await broker.ask(ApiKey.DESCRIBE_GROUPS, asked, _DESCRIBE_GROUPS_VERSION)).groups:
            if not each.error_code:
                members = tuple(_member(member, each.protocol_type) for member in each.members)
                topics = _subscribed(broker, each.group_id)
                found.append(_Described(each.group_id, each.group_state, each.protocol_data, members, topics))
    if newer:
        from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest  # 1.0 ms

        asked_newer = ConsumerGroupDescribeRequest(group_ids=newer)
        for each in (await broker.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, asked_newer, _CONSUMER_GROUP_DESCRIBE_VERSION)).groups:
            if not each.error_code:
                members = tuple(_newer_member(member, member.instance_id) for member in each.members)
                topics = _subscribed_newer(broker, each.group_id)
                found.append(_Described(each.group_id, each.group_state, each.assignor_name, members, topics, _CONSUMER))
    return {each.group_id: each for each in found}


async def _described_streams(broker: InProcessBroker, names: list[str]) -> dict[str, _Described]:
    """Describe streams groups. Groups that are gone since the listing are left out."""
    if not names:
        return {}
    from odradek.protocol.message_types.streams_group_describe import StreamsGroupDescribeRequest  # 1.5 ms

    asked = StreamsGroupDescribeRequest(group_ids=names)
    answer = await broker.ask(ApiKey.STREAMS_GROUP_DESCRIBE, asked, _STREAMS_GROUP_DESCRIBE_VERSION)
    return {group.group_id: _streams_group(broker, group) for group in answer.groups if not group.error_code}


def _streams_group(broker: InProcessBroker, group: DescribedStreamsGroup) -> _Described:
    subtopologies = (None if group.topology is None else group.topology.subtopologies) or ()
    topics = {topic for each in subtopologies for topic in input_topics(each)}
    existing = {(topic, index) for topic in topics for index in broker.core.partitions.of_topic(topic)}
    members = []
    for member in group.members:
        read = tuple(each for each in input_partitions(member.assignment, subtopologies) if each in existing)
        members.append(Member(member.member_id, member.instance_id, member.client_id, member.client_host, read))
    tasks = tuple(tasks_of(group))
    return _Described(group.group_id, group.group_state, group.assignor_name or "", tuple(members), topics, _STREAMS, tasks)


def _group(broker: InProcessBroker, described: _Described, offsets: dict[Partition, int]) -> Group:
    members, subscribed = described.members, sorted(described.topics)
    read = {each for member in members for each in member.partitions} | offsets.keys()
    read |= {(topic, index) for topic in subscribed for index in broker.core.partitions.of_topic(topic)}
    return Group(
        group_id=described.group_id,
        state=described.state,
        protocol=described.protocol,
        members=members,
        topics=tuple(subscribed),
        offsets=Named.of("partition", dict(sorted(offsets.items()))),
        lag=Named.of("partition", {each: _lag(broker, each, offsets.get(each)) for each in sorted(read)}),
        group_type=described.group_type,
        tasks=described.tasks,
    )


async def _share_groups(broker: InProcessBroker, names: list[str]) -> dict[str, Group]:
    """Describe share groups. Groups that are gone since the listing are left out."""
    if not names:
        return {}
    from odradek.protocol.message_types import describe_share_group_offsets as offsets_messages  # 1.6 ms
    from odradek.protocol.message_types.share_group_describe import ShareGroupDescribeRequest  # 0.9 ms

    asked = ShareGroupDescribeRequest(group_ids=names)
    described = await broker.ask(ApiKey.SHARE_GROUP_DESCRIBE, asked, _SHARE_GROUP_DESCRIBE_VERSION)
    groups = [offsets_messages.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
    asked_offsets = offsets_messages.DescribeShareGroupOffsetsRequest(groups=groups)
    answer = await broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, asked_offsets, _DESCRIBE_SHARE_GROUP_OFFSETS_VERSION)
    read = {
        group.group_id: {
            (topic.topic_name, each.partition_index): each
            for topic in group.topics
            for each in topic.partitions
            if not each.error_code and each.start_offset >= 0
        }
        for group in answer.groups
    }
    return {
        group.group_id: _share_group(broker, group, read[group.group_id]) for group in described.groups if not group.error_code
    }


def _share_group(broker: InProcessBroker, group: DescribedShareGroup, read: dict[Partition, ReadPartition]) -> Group:
    # Imported late: few brokers have share groups.
    from odradek.testing.in_flight import acknowledged_records, records_in_flight

    members = tuple(_newer_member(member, None) for member in group.members)
    return Group(
        group_id=group.group_id,
        state=group.group_state,
        protocol=group.assignor_name,
        members=members,
        topics=tuple(sorted({name for member in group.members for name in member.subscribed_topic_names})),
        offsets=Named.of("partition", {each: found.start_offset for each, found in sorted(read.items())}),
        lag=Named.of("partition", {each: found.lag for each, found in sorted(read.items()) if found.lag >= 0}),
        group_type=_SHARE,
        in_flight=tuple(records_in_flight(broker.core, group.group_id, {each.member_id: each.client_id for each in members})),
        acknowledged=acknowledged_records(broker.core, group.group_id),
    )


def _subscribed(broker: InProcessBroker, group_id: str) -> set[str]:
    """Return the topics that a classic group's members subscribe to, even during a rebalance, when no request tells them."""
    # Imported late: the module is loaded only once there is a group.
    from odradek.coordinator.group.classic.group import ClassicGroup  # 13 ms

    group = broker.core.groups.runtime.read(group_id, lambda shard, _: shard.groups.find(group_id))
    found: set[str] = set()
    if isinstance(group, ClassicGroup) and group.uses_consumer_protocol:
        for _, subscription in {protocol for member in group.members.values() for protocol in member.protocols}:
            with suppress(MalformedMessage):
                found.update(subscribed_topics(subscription))
    return found


def _subscribed_newer(broker: InProcessBroker, group_id: str) -> set[str]:
    """Do the same for a group of the consumer protocol: names, and the resolved names of regular expressions."""
    from odradek.coordinator.group.consumer.group import ConsumerGroup  # 12 ms

    group = broker.core.groups.runtime.read(group_id, lambda shard, _: shard.groups.find(group_id))
    return group.subscribed_names() if isinstance(group, ConsumerGroup) else set()


def _lag(broker: InProcessBroker, partition: Partition, offset: int | None) -> int:
    found = broker.core.partitions.get(*partition)
    if found is None or found.log is None:
        return 0
    return max(found.high_watermark - (found.log.log_start_offset if offset is None else offset), 0)


def _member(member: DescribedGroupMember, protocol_type: str) -> Member:
    partitions: list[Partition] = []
    if protocol_type == CONSUMER_PROTOCOL_TYPE:
        try:
            assigned = assigned_partitions(member.member_assignment)
        except MalformedMessage:
            assigned = []
        partitions = sorted((topic, index) for topic, indexes in assigned for index in indexes)
    return Member(member.member_id, member.group_instance_id, member.client_id, member.client_host, tuple(partitions))


def _newer_member(member: NewerMember | ShareMember, instance_id: str | None) -> Member:
    assigned = member.assignment.topic_partitions
    partitions = sorted((topic.topic_name, index) for topic in assigned for index in topic.partitions)
    return Member(member.member_id, instance_id, member.client_id, member.client_host, tuple(partitions))


def _transaction(described: TransactionState) -> Transaction:
    return Transaction(
        transactional_id=described.transactional_id,
        state=described.transaction_state,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        timeout_ms=described.transaction_timeout_ms,
        partitions=tuple(sorted((each.topic, index) for each in described.topics for index in each.partitions)),
    )


def _task_text(task: StreamsTask) -> str:
    standby = f", standby {', '.join(task.standby)}" if task.standby else ""
    moves_to = "" if task.moves_to is None else f", moves to {task.moves_to}"
    return f"task {task} {task.active or 'nobody'}{standby}{moves_to}"


def _text(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
