"""The share partitions of this broker, and the sessions and fetches of their members (KIP-932).

A share partition is created by the first fetch of its group, if this broker leads the partition. It is removed with the leader
epoch, when the share coordinator fences it, and when the group's last connection to this broker is lost. Then its state is
at the share coordinator only, and the next fetch loads it again. Kafka's class has the same name. Loop thread only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.share.delayed_share_fetch import DelayedShareFetch, Results, ShareFetch, ShareFetchParams
from odradek.broker.share.release_queue import ReleaseQueue
from odradek.broker.share.share_partition import SharePartition, SharePartitionServices, SharePartitionState
from odradek.broker.share.share_sessions import ShareSessionCache
from odradek.common.logging import log
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply, all_of, replied
from odradek.timing.timer import Purgatory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from uuid import UUID

    from odradek.broker.replica.partition import Partition
    from odradek.broker.share.acknowledgement import AcknowledgementBatch
    from odradek.broker.share.share_group_configs import ShareGroupConfigs
    from odradek.broker.share.share_partition import DeadLetterQueue
    from odradek.broker.share.share_persister import SharePersister
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

_MOST_COUNTED_GROUPS: Final = 10_000
# Acknowledgements of so many partitions take a millisecond or two.
_PARTITIONS_AT_ONCE: Final = 25
# The outcome of an acknowledgement of each partition: its error, or None.
Outcomes = dict["TopicIdPartition", "KafkaError | None"]


class SharePartitionManager:
    """All share partitions of this broker. ``purgatory`` has the fetches that wait, ``sessions`` the members' sessions."""

    def __init__(
        self,
        find_partition: Callable[[UUID, int], Partition | KafkaError],
        persister: SharePersister,
        timer: Timer,
        configs: ShareGroupConfigs,
        slices: Slices,
        call_soon: Callable[[Callable[[], None]], object],
        dead_letters: DeadLetterQueue | None = None,
    ) -> None:
        """``find_partition`` finds a partition by its topic's id and its index."""
        self.purgatory: Purgatory[DelayedShareFetch] = Purgatory("ShareFetch", timer)
        self.sessions = ShareSessionCache(lambda: configs.most_sessions, self._release, self.forget_group)
        self.configs = configs
        self._find_partition = find_partition
        self._timer = timer
        self._slices = slices
        self._call_soon = call_soon
        # Share partitions whose load has ended in this turn of the loop.
        self._loaded: list[SharePartitionKey] = []
        self._releases = ReleaseQueue(slices)
        self._services = SharePartitionServices(
            persister=persister,
            timer=timer,
            limits=configs.limits,
            start_offset=configs.start_offset,
            wake=self.purgatory.check_and_complete,
            wake_soon=self._wake_soon,
            releases=self._releases,
            note_accepted=self._note_accepted,
            dead_letters=dead_letters,
        )
        # The number of records that members have accepted here, by group. The longest unchanged groups are dropped.
        self._accepted: dict[str, int] = {}
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

    def accepted_records(self, group_id: str) -> int:
        """Return the number of records that members of a group have accepted since this broker started."""
        return self._accepted.get(group_id, 0)

    def _note_accepted(self, group_id: str, records: int) -> None:
        if records:
            self._accepted[group_id] = self._accepted.pop(group_id, 0) + records
            if len(self._accepted) > _MOST_COUNTED_GROUPS:
                del self._accepted[next(iter(self._accepted))]

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

    def _wake_soon(self, key: SharePartitionKey) -> None:
        """Try the waiting fetches once for all loads of this turn: a fetch reads all its partitions each time."""
        if not self._loaded:
            self._call_soon(self._wake_loaded)
        self._loaded.append(key)

    def _wake_loaded(self) -> None:
        loaded, self._loaded = self._loaded, []
        self.purgatory.check_together(loaded)

    def _find(self, group_id: str, name: TopicIdPartition) -> SharePartition | KafkaError:
        """Return a share partition, created if need be, or the error if this broker does not lead the partition."""
        shared = self.get(group_id, name)
        if shared is not None and shared.state == SharePartitionState.FAILED:
            self._remove(shared)
            shared = None
        if shared is None:
            partition = self._find_partition(name.topic_id, name.partition)
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
        """Follow a change of a partition: new records, or another leader epoch. Another broker may have led meanwhile."""
        key = (partition.topic_id, partition.index)
        is_led_here = partition.leader is not None and partition.log is not None
        for shared in tuple(self._shared.get(key, {}).values()):
            # In the very next epoch nobody else can have led: what is in flight stays so.
            if not is_led_here or partition.leader_epoch - shared.leader_epoch not in (0, 1):
                self._remove(shared)
            else:
                shared.leader_epoch = partition.leader_epoch
        if is_led_here:
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
        reply: Reply[Outcomes] = Reply()
        work = self._acknowledge(group_id, member_id, batches, settled, reply)
        if next(work, True) is None:
            self._slices.run(work)
        return reply

    def _acknowledge(
        self,
        group_id: str,
        member_id: str,
        batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
        settled: Outcomes,
        reply: Reply[Outcomes],
    ) -> Generator[None, None, None]:
        replies: list[Reply[KafkaError | None]] = []
        for name, of_partition in batches.items():
            shared = self.get(group_id, name)
            if shared is None:
                reason = "the group fetches nothing from it here"
                replies.append(replied(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)))
                continue
            try:
                stored = yield from shared.acknowledge(member_id, of_partition)
                replies.append(stored.then(partial(self._remove_if_fenced, shared)))
            except Exception as error:  # noqa: BLE001  the request has other partitions
                log.error("cannot acknowledge records", error, group=group_id, partition=name)
                replies.append(replied(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)))
            if not len(replies) % _PARTITIONS_AT_ONCE:
                yield
        all_of(replies).when_done(lambda errors: reply.complete(dict(zip(batches, errors, strict=True)) | settled))

    def release_session(self, session: ShareSession) -> None:
        """End a session, and release its member's records, unless the member has another session meanwhile."""
        if self.sessions.get(*session.key) is session:
            self.sessions.remove(session.key)
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        for name in session.partitions:
            shared = self.get(group_id, name)
            if shared is not None:
                shared.release(member_id, partial(self._remove_if_fenced, shared))

    # ----------------------------------------------------------------------------------------------------------- removal

    def forget_group(self, group_id: str) -> None:
        """Remove the share partitions of a group that has no session here any more, once its members' records are released."""
        self._releases.add(self._forget_group(group_id))

    def _forget_group(self, group_id: str) -> Generator[None, None, None]:
        if not self.sessions.has_group(group_id):
            for shared in self.of_group(group_id):
                self._remove(shared)
        yield

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

    def _remove_if_fenced(self, shared: SharePartition, error: KafkaError | None) -> KafkaError | None:
        """Remove a share partition whose state is worthless after an error. Return the error."""
        if error is not None and error.code in _FENCING:
            self._remove(shared)
        return error

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
