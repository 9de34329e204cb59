"""The share partitions of this broker, and the sessions and fetches of their members (KIP-932).

A share partition is created by the first fetch of its group, if this broker leads the partition. It is removed when the broker no
longer leads, when the share coordinator fences it, and when the group's last connection to this broker is lost. Then its state is
at the share coordinator only, and the next fetch loads it again. Kafka's class has the same name. Loop thread only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.share.delayed_share_fetch import DelayedShareFetch, Results, ShareFetch, ShareFetchParams
from odradek.broker.share.lock_expiry import LockExpiry
from odradek.broker.share.share_partition import SharePartition, SharePartitionServices, SharePartitionState
from odradek.broker.share.share_sessions import ShareSessionCache
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from odradek.timing.timer import Purgatory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.share.acknowledgement import AcknowledgementBatch
    from odradek.broker.share.in_flight import ShareLimits
    from odradek.broker.share.persister import SharePersister
    from odradek.broker.share.share_partition import DeadLetterQueue
    from odradek.broker.share.share_sessions import ShareSession, TopicIdPartition
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.timing.slices import Slices
    from odradek.timing.timer import Timer

# Errors after which the state here is worthless.
_FENCING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

# The outcome of an acknowledgement of each partition: its error, or None.
Outcomes = dict["TopicIdPartition", "KafkaError | None"]


class ShareConfigs(Protocol):
    """The configs of share groups (``share_group_configs``)."""

    @property
    def is_on(self) -> bool:
        """Return whether there are share groups."""

    @property
    def most_sessions(self) -> int:
        """Return the limit of share sessions."""

    def limits(self, group_id: str) -> ShareLimits:
        """Return the limits of a group."""

    def is_committed_only(self, group_id: str) -> bool:
        """Return whether a group reads committed records only."""

    def start_offset(self, group_id: str, partition: Partition) -> Reply[int | KafkaError]:
        """Find the offset at which a new group begins."""


class SharePartitionManager:
    """All share partitions of this broker. ``purgatory`` has the fetches that wait, ``sessions`` the members' sessions."""

    def __init__(
        self,
        partitions: Partitions,
        persister: SharePersister,
        timer: Timer,
        configs: ShareConfigs,
        slices: Slices,
        dead_letters: DeadLetterQueue | None = None,
    ) -> None:
        self.purgatory: Purgatory[DelayedShareFetch] = Purgatory("ShareFetch", timer)
        self.sessions = ShareSessionCache(lambda: configs.most_sessions, self._release, self.forget_group)
        self.configs = configs
        self._partitions = partitions
        self._timer = timer
        self._services = SharePartitionServices(
            persister=persister,
            timer=timer,
            limits=configs.limits,
            start_offset=configs.start_offset,
            wake=self.purgatory.check_and_complete,
            expiry=LockExpiry(slices),
            dead_letters=dead_letters,
        )
        # The share partitions of each partition, by group.
        self._shared: dict[tuple[UUID, int], dict[str, SharePartition]] = {}

    def __iter__(self) -> Iterator[SharePartition]:
        for groups in tuple(self._shared.values()):
            yield from tuple(groups.values())

    def get(self, group_id: str, partition: TopicIdPartition) -> SharePartition | None:
        """Return a share partition, or None."""
        return self._shared.get((partition.topic_id, partition.partition), {}).get(group_id)

    def of_group(self, group_id: str) -> list[SharePartition]:
        """Return the share partitions of a group."""
        return [shared for shared in self if shared.key.group_id == group_id]

    # ----------------------------------------------------------------------------------------------------------- fetches

    def fetch(
        self, group_id: str, params: ShareFetchParams, names: Sequence[TopicIdPartition], max_wait_ms: int
    ) -> Reply[Results]:
        """Fetch and acquire records. The reply has no data of partitions that were not read."""
        reply: Reply[Results] = Reply()
        if not names or params.max_records == 0 or params.max_bytes == 0:
            reply.complete({})
            return reply
        fetch = ShareFetch(params, {name: self._find(group_id, name) for name in names})
        deadline_ms = self._timer.clock.monotonic_ms() + max_wait_ms
        operation = DelayedShareFetch(deadline_ms, fetch, reply.complete)
        keys = [key for name in names for key in ((group_id, *name), (name.topic_id, name.partition))]
        if not self.purgatory.try_complete_else_watch(operation, keys) and max_wait_ms <= 0:
            operation.force_complete()
        return reply

    def _find(self, group_id: str, name: TopicIdPartition) -> SharePartition | KafkaError:
        """Return a share partition, created if need be, or the error if this broker does not lead the partition."""
        shared = self.get(group_id, name)
        if shared is not None and shared.state == SharePartitionState.FAILED:
            self._remove(shared)
            shared = None
        if shared is None:
            partition = self._partitions.find_by_id(name.topic_id, name.partition)
            if isinstance(partition, KafkaError):
                return partition
            try:
                partition.require_leader_log()
            except KafkaError as error:
                return error
            shared = SharePartition(SharePartitionKey(group_id, *name), partition, self._services)
            self._shared.setdefault((name.topic_id, name.partition), {})[group_id] = shared
            partition.on_shared_change = self._partition_changed
        shared.initialize()
        return shared

    def _partition_changed(self, partition: Partition) -> None:
        """Follow a change of a partition: new records, or this broker does not lead it any more."""
        key = (partition.topic_id, partition.index)
        if partition.leader is None or partition.log is None:
            for shared in tuple(self._shared.get(key, {}).values()):
                self._remove(shared)
        else:
            self.purgatory.check_and_complete(key)

    # -------------------------------------------------------------------------------------------------- acknowledgements

    def acknowledge(
        self,
        group_id: str,
        member_id: str,
        batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
        settled: Outcomes,
    ) -> Reply[Outcomes]:
        """Acknowledge records of a member. ``settled`` are outcomes of other partitions, for the reply."""
        changes = {name: partial(_acknowledge, member_id, of_partition) for name, of_partition in batches.items()}
        return self._gather(group_id, changes, settled)

    def release_session(self, session: ShareSession) -> None:
        """End a session, and release its member's records, unless the member has another session meanwhile."""
        if self.sessions.get(*session.key) is session:
            self.sessions.remove(session.key)
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        release = partial(_release, session.key.member_id)
        self._gather(session.key.group_id, dict.fromkeys(session.partitions, release), {})

    def _gather(
        self,
        group_id: str,
        changes: Mapping[TopicIdPartition, Callable[[SharePartition], Reply[KafkaError | None]]],
        settled: Outcomes,
    ) -> Reply[Outcomes]:
        """Change share partitions. The reply has the outcomes once all are known, and those that are ``settled``."""
        reply: Reply[Outcomes] = Reply()
        outcomes: Outcomes = {}

        def ended(name: TopicIdPartition, shared: SharePartition | None, error: KafkaError | None) -> None:
            if error is not None and shared is not None and error.code in _FENCING:
                self._remove(shared)
            outcomes[name] = error
            if len(outcomes) == len(changes):
                reply.complete(outcomes | settled)

        if not changes:
            reply.complete(settled)
        for name, change in changes.items():
            shared = self.get(group_id, name)
            if shared is None:
                ended(name, None, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the group fetches nothing from it here"))
            else:
                change(shared).when_done(partial(ended, name, shared))
        return reply

    # ----------------------------------------------------------------------------------------------------------- removal

    def forget_group(self, group_id: str) -> None:
        """Remove the share partitions of a group that has no session here any more."""
        for shared in self.of_group(group_id):
            self._remove(shared)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """End all sessions, and remove all share partitions, once share groups have been switched off."""
        if delta.features and not self.configs.is_on:
            self._forget_all()

    def _forget_all(self) -> None:
        self.sessions.remove_all()
        for shared in self:
            self._remove(shared)

    def close(self) -> None:
        """Answer all waiting fetches, and let no lock expire any more."""
        for operation in self.purgatory.waiting():
            operation.force_complete()
        for shared in self:
            shared.fence()

    def _remove(self, shared: SharePartition) -> None:
        key = (shared.key.topic_id, shared.key.partition)
        groups = self._shared.get(key, {})
        if groups.get(shared.key.group_id) is not shared:
            return
        del groups[shared.key.group_id]
        if not groups:
            del self._shared[key]
            shared.partition.on_shared_change = None
        shared.fence()
        self.purgatory.check_and_complete(shared.key)


def _acknowledge(member_id: str, batches: Sequence[AcknowledgementBatch], shared: SharePartition) -> Reply[KafkaError | None]:
    return shared.acknowledge(member_id, batches)


def _release(member_id: str, shared: SharePartition) -> Reply[KafkaError | None]:
    return shared.release(member_id)
