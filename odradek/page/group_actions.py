"""Changes to groups and transactions, by Kafka's protocol, with the rights of the page's user.

Each function returns a plain result, or raises ActionFailed with one line for people.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.broker.share.share_sessions import TopicIdPartition
from odradek.client.admin_apis import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    OFFSET_DELETE,
    STREAMS_GROUP_HEARTBEAT,
    WRITE_TXN_MARKERS,
)
from odradek.client.api import RequestRefused
from odradek.client.apis import (
    EARLIEST_TIMESTAMP,
    GROUP,
    INIT_PRODUCER_ID,
    LATEST_TIMESTAMP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    TRANSACTIONAL_ID,
)
from odradek.client.cluster_client import check
from odradek.client.group_offsets import commit_request, refused_commits
from odradek.client.known_cluster import name_of
from odradek.page.actions import ActionFailed, failing
from odradek.page.facts.group import find_group
from odradek.page.facts.groups import CONSUMER, STREAMS, committed_offsets, described_groups
from odradek.page.facts.source import Missing, described_topic, leaders_of, list_offsets, metadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest
from odradek.protocol.message_types.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.message_types.share_acknowledge import AcknowledgementBatch
from odradek.protocol.message_types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from odradek.protocol.message_types.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek.testing.asking import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.page.facts.groups import Described
    from odradek.page.facts.source import Partition, Source
    from odradek.protocol.errors import KafkaError

# The epoch of a heartbeat that leaves the group (KIP-848).
_LEAVE_EPOCH: Final = -1
_PATIENCE_MS: Final = 10_000
# This producer never writes, and the next one sets its own timeout.
_TERMINATION_TIMEOUT_MS: Final = 60_000
# Kafka's acknowledge types.
_RELEASE: Final = 2
_REJECT: Final = 3
_REASON: Final = "removed on odradek's page"


@dataclass(frozen=True, slots=True)
class NewOffset:
    """A committed offset that was changed. ``before`` is None if nothing was committed."""

    topic: str
    partition: int
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class Target:
    """The place where offsets go: "start" or "end" of the log, or with a ``number`` "offset", "shift" or "time".

    ``number`` is the offset, or the number of offsets to shift by, or the time of the record to go to, in ms. An offset outside
    of the log becomes the nearer end of the log.
    """

    place: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Holding:
    """Records that a member of a share group has acquired."""

    group: str
    member_id: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int


async def set_offsets(source: Source, group: str, partitions: Sequence[Partition], target: Target) -> tuple[NewOffset, ...]:
    """Set committed offsets of a group that has no members. A group that does not exist is made by it."""
    with failing():
        before, described = await _group(source, group)
        if described is not None and described.members:
            raise RequestRefused(group, ErrorCode.NON_EMPTY_GROUP)
        after = await _targets(source, before, partitions, target)
        refused = await source.cluster.patiently(lambda: _commit(source, group, after), patience_ms=_PATIENCE_MS)
        for partition, code in refused.items():
            check(name_of(partition), code)
    return tuple(NewOffset(*partition, before.get(partition), offset) for partition, offset in after.items())


async def delete_offsets(source: Source, group: str, partitions: Iterable[Partition]) -> None:
    """Delete committed offsets. The group must not be subscribed to their topics."""
    topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=index))
    rows = [OffsetDeleteRequestTopic(name=name, partitions=asked) for name, asked in topics.items()]
    with failing():
        coordinator = await source.cluster.coordinator(group, GROUP)
        answer = await coordinator.request(OFFSET_DELETE, OffsetDeleteRequest(group_id=group, topics=rows))
        check(group, answer.error_code)
        for found in answer.topics:
            for one in found.partitions:
                check(f"{found.name}-{one.partition_index}", one.error_code)


async def delete_group(source: Source, group: str) -> None:
    """Delete a group without members, and its committed offsets."""
    with failing():
        coordinator = await source.cluster.coordinator(group, GROUP)
        [answer] = (await coordinator.request(DELETE_GROUPS, DeleteGroupsRequest(groups_names=[group]))).results
        check(group, answer.error_code)


async def remove_member(source: Source, group: str, member_id: str) -> None:
    """Remove a member from its group. A client that is alive joins again as a new member."""
    with failing():
        listed = await find_group(source, group)
        described = (await described_groups(source, [listed])).get(group)
        found = [member for member in (described.members if described else ()) if member.member_id == member_id]
        if not found:
            raise ActionFailed(f"{group}: there is no member {member_id}")
        coordinator = await source.cluster.coordinator(group, GROUP)
        instance_id = found[0].instance_id
        if listed.kind == CONSUMER:
            request = ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=member_id, member_epoch=_LEAVE_EPOCH, instance_id=instance_id
            )
            answer = await coordinator.request(CONSUMER_GROUP_HEARTBEAT, request)
            check(member_id, answer.error_code, answer.error_message)
        elif listed.kind == STREAMS:
            leave = StreamsGroupHeartbeatRequest(
                group_id=group, member_id=member_id, member_epoch=_LEAVE_EPOCH, instance_id=instance_id
            )
            gone = await coordinator.request(STREAMS_GROUP_HEARTBEAT, leave)
            check(member_id, gone.error_code, gone.error_message)
        else:
            identity = MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=_REASON)
            left = await coordinator.request(LEAVE_GROUP, LeaveGroupRequest(group_id=group, members=[identity]))
            check(group, left.error_code)
            check(member_id, left.members[0].error_code)


async def end_delivery(source: Source, holding: Holding, *, is_rejected: bool) -> None:
    """Release or reject records in the name of their holder. Only the leader of the partition can, on its own objects.

    The holder's own acknowledgement then fails with INVALID_RECORD_STATE.
    """
    place = f"{holding.topic}-{holding.partition}"
    shares = source.core.share_partitions_so_far
    found = {(each.partition.topic, each.key.partition): each.key for each in (shares.of_group(holding.group) if shares else ())}
    key = found.get((holding.topic, holding.partition))
    if shares is None or key is None:
        raise ActionFailed(f"{place}: {holding.group} has no records in flight at this broker")
    batch = AcknowledgementBatch(holding.first_offset, holding.last_offset, [_REJECT if is_rejected else _RELEASE])
    name = TopicIdPartition(key.topic_id, key.partition)
    ended = Answer()
    shares.acknowledge(holding.group, holding.member_id, {name: [batch]}, {}).when_done(ended.complete)
    error: KafkaError | None = (await ended)[name]
    if error is not None:
        raise ActionFailed(f"{place}: {error.code.name}: {error.reason}")


async def abort_transaction(source: Source, transactional_id: str) -> int:
    """Fence the producer of a transactional id, which aborts its open transaction. Return the new epoch."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_TERMINATION_TIMEOUT_MS)

    async def fence() -> int:
        coordinator = await source.cluster.coordinator(transactional_id, TRANSACTIONAL_ID)
        asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        # InitProducerId would make an id that is not there.
        [described] = (await coordinator.request(DESCRIBE_TRANSACTIONS, asked)).transaction_states
        check(transactional_id, described.error_code)
        answer = await coordinator.request(INIT_PRODUCER_ID, request)
        check(transactional_id, answer.error_code)
        return answer.producer_epoch

    with failing():
        return await source.cluster.patiently(fence, patience_ms=_PATIENCE_MS)


async def abort_hanging(source: Source, topic: str, partition: int, producer_id: int) -> None:
    """Write the abort marker of a hanging transaction, which no coordinator ends, to one partition."""
    place = f"{topic}-{partition}"
    with failing():
        await metadata(source, ())
        leader = source.cluster.node(leaders_of([await described_topic(source, topic)]).get((topic, partition), -1))
        asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
        [[described]] = [each.partitions for each in (await leader.request(DESCRIBE_PRODUCERS, asked)).topics]
        check(place, described.error_code, described.error_message)
        found = [each for each in described.active_producers if each.producer_id == producer_id]
        if not found or found[0].current_txn_start_offset < 0:
            raise ActionFailed(f"{place}: producer {producer_id} has no open transaction there")
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=found[0].producer_epoch,
            # Before its first marker a producer has coordinator epoch -1. Epoch 0 does not exceed any coordinator's.
            coordinator_epoch=max(found[0].coordinator_epoch, 0),
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        answer = await leader.request(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=[marker]))
        check(place, answer.markers[0].topics[0].partitions[0].error_code)


async def _group(source: Source, group: str) -> tuple[dict[Partition, int], Described | None]:
    """Return a group's committed offsets, and the group; nothing for one that does not exist. Raises FactError."""
    try:
        listed = await find_group(source, group)
    except Missing:
        return {}, None
    committed, described = await asyncio.gather(committed_offsets(source, [listed]), described_groups(source, [listed]))
    return committed.get(group, {}), described.get(group)


async def _targets(
    source: Source, before: Mapping[Partition, int], partitions: Sequence[Partition], target: Target
) -> dict[Partition, int]:
    """Return the new offset of each partition, within its log. Raises ClientError, FactError."""
    dated_ones = partitions if target.place == "time" else ()
    leaders = leaders_of((await metadata(source, sorted({topic for topic, _ in partitions}))).topics)
    starts, ends, dated = await asyncio.gather(
        list_offsets(source, dict.fromkeys(partitions, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(partitions, LATEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(dated_ones, max(target.number, 0)), leaders),
    )
    for partition in partitions:
        if partition not in starts or partition not in ends:
            raise RequestRefused(name_of(partition), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {
        each: min(max(_chosen(target, starts[each], ends[each], dated.get(each, -1), before.get(each)), starts[each]), ends[each])
        for each in partitions
    }


def _chosen(target: Target, start: int, end: int, dated: int, current: int | None) -> int:
    """Return the new offset of a partition, not limited to its log. ``dated`` is the offset for the time, -1 for none."""
    match target.place:
        case "start":
            return start
        case "offset":
            return target.number
        case "shift":
            # Without a committed offset it counts from the log end, where a consumer begins by default.
            return (end if current is None else current) + target.number
        case "time" if dated >= 0:
            return dated
    return end


async def _commit(source: Source, group: str, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
    """Commit like a consumer outside the group. Return the error codes of the refused partitions. Raises ClientError."""
    coordinator = await source.cluster.coordinator(group, GROUP)
    return refused_commits(await coordinator.request(OFFSET_COMMIT, commit_request(group, offsets)))
