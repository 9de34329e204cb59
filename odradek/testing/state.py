"""What a broker holds, as a test looks at it: topics, groups, transactions. Each has a line of text, for failures and reports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.topic_names import INTERNAL_TOPICS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE, assigned_partitions
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from odradek.protocol.message_types.describe_groups import DescribedGroup, DescribedGroupMember
    from odradek.protocol.message_types.describe_transactions import TransactionState
    from odradek.testing.in_process import InProcessBroker

Partition = tuple[str, int]

_LIST_GROUPS_VERSION = 5
_DESCRIBE_GROUPS_VERSION = 6
_OFFSET_FETCH_VERSION = 9
_LIST_TRANSACTIONS_VERSION = 1
_DESCRIBE_TRANSACTIONS_VERSION = 0
# Before a coordinator that loads its log is asked again.
_LOADING_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; offsets by partition. An end offset is the high watermark, and counts the markers of transactions, too."""

    name: str
    start_offsets: dict[int, int]
    end_offsets: dict[int, int]

    @property
    def partitions(self) -> int:
        """How many."""
        return len(self.end_offsets)

    def __str__(self) -> str:
        ends = ", ".join(f"{index}: {self.start_offsets[index]} to {end}" for index, end in self.end_offsets.items())
        return f"topic {self.name!r}: offsets by partition {ends}"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, with the partitions that it was assigned."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        return f"{self.member_id} ({', '.join(_text(each) for each in self.partitions) or 'no partitions'})"


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group. ``lag`` has each partition that is assigned or has a committed offset.

    It is how many records are behind that offset; where nothing is committed, how many there are.
    """

    group_id: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    offsets: dict[Partition, int]
    lag: dict[Partition, int]

    @property
    def total_lag(self) -> int:
        """Of all partitions together."""
        return sum(self.lag.values())

    def __str__(self) -> str:
        members = ", ".join(map(str, self.members)) or "none"
        partitions = ", ".join(f"{_text(each)} {self.offsets.get(each)} (lag {lag})" for each, lag in self.lag.items()) or "none"
        return f"group {self.group_id!r}: {self.state}, members {members}; committed offsets {partitions}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id, and the transaction that it is in."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    partitions: tuple[Partition, ...]

    def __str__(self) -> str:
        partitions = ", ".join(map(_text, self.partitions)) or "none"
        return f"transactional id {self.transactional_id!r}: {self.state}, epoch {self.producer_epoch}, partitions {partitions}"


def topics(broker: InProcessBroker) -> dict[str, Topic]:
    """By name, without the coordinators' own."""
    core = broker.core
    found = {}
    for name in sorted(core.controller.image.topics):
        if name not in INTERNAL_TOPICS:
            partitions = dict(sorted(core.partitions.of_topic(name).items()))
            start_offsets = {index: 0 if each.log is None else each.log.log_start_offset for index, each in partitions.items()}
            found[name] = Topic(name, start_offsets, {index: each.high_watermark for index, each in partitions.items()})
    return found


async def groups(broker: InProcessBroker) -> dict[str, Group]:
    """By group id."""
    listed = await _listed(broker, ApiKey.LIST_GROUPS, ListGroupsRequest(), _LIST_GROUPS_VERSION)
    names = sorted(group.group_id for group in listed.groups)
    described = await broker.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=names), _DESCRIBE_GROUPS_VERSION)
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
    fetched = await broker.ask(ApiKey.OFFSET_FETCH, asked, _OFFSET_FETCH_VERSION)
    offsets = {
        group.group_id: {
            (topic.name, each.partition_index): each.committed_offset for topic in group.topics for each in topic.partitions
        }
        for group in fetched.groups
    }
    # A group may be gone since it was listed.
    return {each.group_id: _group(broker, each, offsets[each.group_id]) for each in described.groups if not each.error_code}


async def transactions(broker: InProcessBroker) -> dict[str, Transaction]:
    """By transactional id."""
    listed = await _listed(broker, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(), _LIST_TRANSACTIONS_VERSION)
    names = sorted(each.transactional_id for each in listed.transaction_states)
    asked = DescribeTransactionsRequest(transactional_ids=names)
    described = await broker.ask(ApiKey.DESCRIBE_TRANSACTIONS, asked, _DESCRIBE_TRANSACTIONS_VERSION)
    return {each.transactional_id: _transaction(each) for each in described.transaction_states if not each.error_code}


async def _listed(broker: InProcessBroker, api_key: ApiKey, request: Any, version: int) -> Any:
    """The response of a broker whose coordinators have loaded."""
    while True:
        response = await broker.ask(api_key, request, version)
        if response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return response
        await asyncio.sleep(_LOADING_PAUSE_S)


def _group(broker: InProcessBroker, described: DescribedGroup, offsets: dict[Partition, int]) -> Group:
    members = tuple(_member(member, described.protocol_type) for member in described.members)
    assigned = {each for member in members for each in member.partitions}
    return Group(
        group_id=described.group_id,
        state=described.group_state,
        protocol=described.protocol_data,
        members=members,
        offsets=dict(sorted(offsets.items())),
        lag={each: _lag(broker, each, offsets.get(each)) for each in sorted(assigned | offsets.keys())},
    )


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


def _transaction(described: TransactionState) -> Transaction:
    return Transaction(
        transactional_id=described.transactional_id,
        state=described.transaction_state,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        timeout_ms=described.transaction_timeout_ms,
        partitions=tuple(sorted((each.topic, index) for each in described.topics for index in each.partitions)),
    )


def _text(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"
