"""The groups of one partition of ``__consumer_offsets``: hosted by the runtime, called by the handlers.

Consists of the registry of groups by id (``groups``), the classic protocol (``classic``), the consumer protocol (``consumer``),
share and streams groups (``share``, ``streams``), and the committed offsets (``offsets``). The parts for newer groups are made
with their first record or request.

A JoinGroup or SyncGroup may be held. A later result then answers its ``reply``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from odradek.coordinator.group.classic.groups import ClassicGroups, Sessions
from odradek.coordinator.group.classic.join import join_group
from odradek.coordinator.group.classic.membership import heartbeat, leave_group, sync_group
from odradek.coordinator.group.classic.rebalance import expire_member, rebalance_downgraded, shrink_to_capacity
from odradek.coordinator.group.consumer import leave as consumer_leave
from odradek.coordinator.group.consumer.describe import describe_consumer_group
from odradek.coordinator.group.consumer.groups import ConsumerGroups, ConsumerGroupServices
from odradek.coordinator.group.consumer.heartbeat import heartbeat as consumer_heartbeat
from odradek.coordinator.group.migration.classic_members import (
    heartbeat_to_consumer_group,
    join_consumer_group,
    leave_consumer_group,
    sync_consumer_group,
)
from odradek.coordinator.group.offset_deletion import schedule_expiry
from odradek.coordinator.group.offsets import CommittedOffsets
from odradek.coordinator.group.registry import GroupRegistry, describe_group, list_groups
from odradek.coordinator.group.share import heartbeat as share_heartbeats
from odradek.coordinator.group.share.describe import describe_share_group
from odradek.coordinator.group.share.groups import ShareGroups, ShareGroupServices
from odradek.coordinator.group.share.offsets import begin_deletion
from odradek.coordinator.group.streams import heartbeat as streams_heartbeats
from odradek.coordinator.group.streams import leave as streams_leave
from odradek.coordinator.group.streams.describe import describe_streams_group
from odradek.coordinator.group.streams.groups import StreamsGroups, StreamsGroupServices
from odradek.coordinator.runtime.ports import WriteOrder
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupKey,
    ShareSnapshotKey,
    ShareUpdateKey,
    StreamsGroupKey,
    TransactionLogKey,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_groups import DeletableGroupResult

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.classic.member import JoinReply, SyncReply
    from odradek.coordinator.group.config import GroupConfig, GroupReports, MemberContext
    from odradek.coordinator.group.consumer.group import ConsumerGroup
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.group.offsets import OffsetConfig
    from odradek.coordinator.group.share.heartbeat import HeartbeatOutcome
    from odradek.coordinator.group.streams.leave import HeartbeatOutcome as StreamsHeartbeatOutcome
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import CoordinatorRecord, EndTxnMarker
    from odradek.protocol.coordinator_records import ConsumerGroupValue, GroupMetadataValue, ShareGroupValue, StreamsGroupValue
    from odradek.protocol.message_types.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
    from odradek.protocol.message_types.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from odradek.protocol.message_types.describe_groups import DescribedGroup
    from odradek.protocol.message_types.heartbeat import HeartbeatRequest, HeartbeatResponse
    from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupResponse
    from odradek.protocol.message_types.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from odradek.protocol.message_types.list_groups import ListedGroup
    from odradek.protocol.message_types.share_group_describe import DescribedGroup as DescribedShareGroup
    from odradek.protocol.message_types.share_group_heartbeat import ShareGroupHeartbeatRequest
    from odradek.protocol.message_types.streams_group_describe import DescribedGroup as DescribedStreamsGroup
    from odradek.protocol.message_types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupResponse
    from odradek.timing.reply import Reply


class GroupShard:
    """The shard of groups; see ``coordinator.runtime.ports.CoordinatorShard``. Loop thread only."""

    __slots__ = (
        "_consumer",
        "_context",
        "_new_id",
        "_reports",
        "_services",
        "_share",
        "_share_services",
        "_streams",
        "_streams_services",
        "classic",
        "groups",
        "offsets",
    )

    write_order: ClassVar[WriteOrder] = WriteOrder.REPLAY_THEN_APPEND

    def __init__(
        self,
        context: ShardContext,
        *,
        config: Callable[[], GroupConfig],
        reports: GroupReports,
        new_id: Callable[[], str],
        offset_config: OffsetConfig,
        consumer_services: Callable[[], ConsumerGroupServices] | None = None,
        share_services: Callable[[], ShareGroupServices] = ShareGroupServices,
        streams_services: Callable[[], StreamsGroupServices] = StreamsGroupServices,
    ) -> None:
        self.groups = GroupRegistry(context.snapshots)
        self.classic = ClassicGroups(
            self.groups,
            timers=context,
            config=config,
            reports=reports,
            new_id=new_id,
            make_sessions=lambda groups: Sessions(context, groups.member, partial(expire_member, groups)),
        )
        self.offsets = CommittedOffsets(self.groups, context, offset_config)
        self._consumer: ConsumerGroups | None = None
        self._context: Final = context
        self._reports: Final = reports
        self._new_id: Final = new_id
        self._services: Final = consumer_services
        self._share: ShareGroups | None = None
        self._share_services: Final = share_services
        self._streams: StreamsGroups | None = None
        self._streams_services: Final = streams_services

    @property
    def consumer(self) -> ConsumerGroups:
        """Return the consumer groups, made on first use."""
        return self._consumer or self._make_consumer()

    @property
    def consumer_if_made(self) -> ConsumerGroups | None:
        """Return the consumer groups, or None before their first use."""
        return self._consumer

    def _make_consumer(self) -> ConsumerGroups:
        services = ConsumerGroupServices() if self._services is None else self._services()
        context = self._context
        groups = self._consumer = ConsumerGroups(
            self.groups,
            services,
            classic=self.classic,
            timers=context,
            reports=self._reports,
            new_id=self._new_id,
            remove=consumer_leave.remove,
        )
        return groups

    @property
    def share(self) -> ShareGroups:
        """Return the share groups, made on first use."""
        return self._share or self._make_share()

    @property
    def share_if_made(self) -> ShareGroups | None:
        """Return the share groups, or None before their first use."""
        return self._share

    def _make_share(self) -> ShareGroups:
        context = self._context
        groups = self._share = ShareGroups(
            self.groups,
            self._share_services(),
            timers=context,
            reports=self._reports,
            remove=share_heartbeats.remove,
        )
        return groups

    @property
    def streams(self) -> StreamsGroups:
        """Return the streams groups, made on first use."""
        return self._streams or self._make_streams()

    @property
    def streams_if_made(self) -> StreamsGroups | None:
        """Return the streams groups, or None before their first use."""
        return self._streams

    def _make_streams(self) -> StreamsGroups:
        context = self._context
        groups = self._streams = StreamsGroups(
            self.groups,
            self._streams_services(),
            timers=context,
            reports=self._reports,
            remove=streams_leave.remove,
        )
        return groups

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record to the part it belongs to."""
        key, value = record
        if type(key) is OffsetCommitKey:
            if value is not None:
                self.classic.replay_offset_of(key.group)
            self.offsets.replay(key, cast("OffsetCommitValue | None", value), offset)
        elif isinstance(key, GroupMetadataKey):
            stored = cast("GroupMetadataValue | None", value)
            if self._consumer is not None:
                self._consumer.note_classic(key.group, has_members=stored is not None and bool(stored.members))
            self.classic.replay(key.group, stored)
            if value is None and key.group in self.offsets.by_group:
                # The group became a consumer group, whose records follow, or one of Kafka's newer kinds. Its offsets stay.
                self.classic.replay_offset_of(key.group)
        elif isinstance(key, ShareGroupKey):
            self.share.replay(key, cast("ShareGroupValue | None", value))
        elif isinstance(key, StreamsGroupKey):
            self.streams.replay(key, cast("StreamsGroupValue | None", value))
        elif not isinstance(key, OffsetCommitKey | TransactionLogKey | ShareSnapshotKey | ShareUpdateKey):
            self.consumer.replay(key, cast("ConsumerGroupValue | None", value))

    def replay_in_transaction(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Note an offset that takes effect when its producer's transaction is committed."""
        key, value = record
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            self.classic.replay_offset_of(key.group)
            self.offsets.pending.replay(producer_id, key, value, offset)

    def replay_marker(self, marker: EndTxnMarker) -> None:
        """Apply or drop the offsets of a producer's transaction."""
        self.offsets.replay_marker(marker.producer_id, is_commit=marker.is_commit)

    def on_loaded(self, now_ms: int) -> None:  # noqa: ARG002  sessions are measured on the monotonic clock
        """Restore the groups. A classic group with more than group.max.size members begins a rebalance that shrinks it."""
        self.groups.load()
        for group in list(self.classic.each()):
            shrink_to_capacity(self.classic, group)
        if self._consumer is not None:
            # A consumer group that became a classic one must still rebalance if its log ends there.
            self._consumer.begin_sessions()
            for group_id in self._consumer.take_downgraded():
                rebalance_downgraded(self.classic, group_id)
        if self._share is not None:
            self._share.begin_sessions()
        if self._streams is not None:
            self._streams.begin_sessions()
        schedule_expiry(self.offsets)

    def on_unloaded(self) -> Iterable[tuple[Reply[Any], object]]:
        """Answer the held JoinGroups and SyncGroups."""
        responses = self.classic.unload()
        self.groups.unload()
        return responses

    def join_group(
        self, context: MemberContext, request: JoinGroupRequest, reply: JoinReply
    ) -> CoordinatorResult[JoinGroupResponse]:
        """Handle JoinGroup."""
        group = self._consumer_group(request.group_id)
        # An empty consumer group makes way for a classic one.
        if self._consumer is None or group is None or not group.members:
            return join_group(self.classic, context, request, reply)
        return join_consumer_group(self._consumer, group, context, request, reply)

    def sync_group(
        self, context: MemberContext, request: SyncGroupRequest, reply: SyncReply
    ) -> CoordinatorResult[SyncGroupResponse]:
        """Handle SyncGroup."""
        group = self._consumer_group(request.group_id)
        if self._consumer is None or group is None:
            return sync_group(self.classic, context, request, reply)
        return sync_consumer_group(self._consumer, group, context, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        """Handle Heartbeat. HOT."""
        group = self._consumer_group(request.group_id)
        if self._consumer is None or group is None:
            return heartbeat(self.classic, request)
        return heartbeat_to_consumer_group(self._consumer, group, request)

    def leave_group(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        """Handle LeaveGroup."""
        group = self._consumer_group(request.group_id)
        if self._consumer is None or group is None:
            return leave_group(self.classic, request)
        return leave_consumer_group(self._consumer, group, request)

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group of this id, which may have members of the classic protocol. HOT."""
        return None if self._consumer is None else self._consumer.find(group_id)

    def consumer_group_heartbeat(
        self, context: MemberContext, request: ConsumerGroupHeartbeatRequest
    ) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """Handle ConsumerGroupHeartbeat."""
        return consumer_heartbeat(self.consumer, context, request)

    def describe_consumer_group(self, group_id: str, committed_offset: int) -> Generator[None, None, DescribedConsumerGroup]:
        """Return the DescribedGroup of ConsumerGroupDescribe, in a generator that pauses after each member."""
        return describe_consumer_group(self.consumer, group_id, committed_offset)

    def share_group_heartbeat(
        self, context: MemberContext, request: ShareGroupHeartbeatRequest
    ) -> CoordinatorResult[HeartbeatOutcome]:
        """Handle ShareGroupHeartbeat."""
        return share_heartbeats.heartbeat(self.share, context, request)

    def describe_share_group(self, group_id: str, committed_offset: int) -> Generator[None, None, DescribedShareGroup]:
        """Return the DescribedGroup of ShareGroupDescribe, in a generator that pauses after each member."""
        return describe_share_group(self.share, group_id, committed_offset)

    def streams_group_heartbeat(
        self, context: MemberContext, request: StreamsGroupHeartbeatRequest
    ) -> CoordinatorResult[StreamsHeartbeatOutcome]:
        """Handle StreamsGroupHeartbeat."""
        return streams_heartbeats.heartbeat(self.streams, context, request)

    def describe_streams_group(self, group_id: str, committed_offset: int) -> Generator[None, None, DescribedStreamsGroup]:
        """Return the DescribedGroup of StreamsGroupDescribe, in a generator that pauses after each member."""
        return describe_streams_group(self.streams, group_id, committed_offset)

    def begin_share_deletion(self, group_id: str) -> CoordinatorResult[Partitions]:
        """Return the share partitions whose state must be deleted before the group is; none for a group of another kind."""
        return CoordinatorResult((), {}) if self._share is None else begin_deletion(self._share, group_id)

    def drop_share_topics(self, topic_ids: AbstractSet[UUID]) -> CoordinatorResult[None]:
        """Have share groups forget the partitions of deleted topics."""
        return CoordinatorResult((), None) if self._share is None else self._share.drop_topics(topic_ids)

    def note_topics(self, changed: Sequence[str], *, has_new: bool) -> None:
        """Note created, deleted or changed topics."""
        if self._consumer is not None:
            self._consumer.note_topics(changed, has_new=has_new)
        if self._share is not None:
            self._share.note_topics(changed)
        if self._streams is not None:
            self._streams.note_topics(changed)

    def describe_group(self, group_id: str, version: int, committed_offset: int) -> DescribedGroup:
        """Return the DescribedGroup of DescribeGroups."""
        return describe_group(self.groups, group_id, version, committed_offset)

    def list_groups(
        self, states: AbstractSet[str], types: AbstractSet[str], committed_offset: int
    ) -> Generator[None, None, list[ListedGroup]]:
        """Return the ListedGroups of ListGroups, in a generator that may be abandoned."""
        return list_groups(self.groups, states, types, committed_offset)

    def delete_group(self, group_id: str) -> CoordinatorResult[DeletableGroupResult]:
        """Return the DeletableGroupResult of DeleteGroups. Deletes the group together with its offsets."""
        group = self.groups.find_stored(group_id)
        error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.validate_delete()
        response = DeletableGroupResult(group_id=group_id, error_code=error)
        if group is None or error is not ErrorCode.NONE:
            return CoordinatorResult((), response)
        self.groups.groups_deleted += 1
        return CoordinatorResult([*self.offsets.tombstones(group_id), *group.tombstones()], response)
