"""Creates and deletes partitions' directories as the cluster's metadata change.

The metadata log is the truth; a partition's directory follows it. If the broker is killed between the two,
``metadata.reconcile`` finishes the work at the next start.

Creating a log takes 0.1 or 0.2 ms, deleting one 0.02 ms. So many partitions are created and deleted in slices. Until a
partition's turn has come, clients are told that it has no leader, as by Kafka while its brokers catch up.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partitions import Partitions
from odradek.common.config.dynamic import ResourceType
from odradek.common.logging import log
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import INTERNAL_TOPICS, Topic
from odradek.protocol.errors import KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST, Slices

T = TypeVar("T")

# The number of partitions that one change may add or remove without slices.
_AT_ONCE: Final = 16
_CREATED_TOGETHER: Final = 2
_DELETED_TOGETHER: Final = 8
_MANY: Final = 1_000

# Work that is done in slices.
Work = Generator[Reply[Any] | None, Any, None]


class PartitionRoles:
    """Gives partitions their roles. Loop thread only.

    This class is for a broker alone, without replication. A broker in a cluster has ``replicated_roles``.
    """

    def __init__(self, node_id: int) -> None:
        """``node_id`` is the id of this broker."""
        self.node_id = node_id

    def begin(self, partition: Partition, record: PartitionRecord, directory_id: UUID | None) -> None:
        """Begin with an opened ``partition``, in the data directory of that id; None if it is offline."""

    def take(self, partition: Partition, record: PartitionRecord) -> None:
        """Take the role that ``record``, the partition's current state, gives this broker."""
        if record.leader == self.node_id:
            partition.become_leader(record.leader_epoch)
        else:
            partition.become_follower(record.leader, record.leader_epoch)

    def leave(self, partition: Partition) -> None:
        """Give up ``partition``, which is about to be deleted."""


class PartitionDirectories:
    """Creates, leads, follows and deletes partitions as the metadata say. Loop thread only."""

    def __init__(
        self,
        partitions: Partitions,
        log_manager: LogManager,
        image: MetadataImage,
        *,
        roles: PartitionRoles,
        clock: Clock,
        log_config_for: Callable[[str], LogConfig],
        wake_fetches: Callable[[Partition], object],
        before_delete: Callable[[tuple[str, int]], object],
        after_delete: Callable[[], object],
        slices: Slices,
    ) -> None:
        """``before_delete`` is called with the key of each deleted partition, ``after_delete`` once per change."""
        self._partitions = partitions
        self._log_manager = log_manager
        self._image = image
        self._node_id = roles.node_id
        self._roles = roles
        self._clock = clock
        self._log_config_for = log_config_for
        self._wake_fetches = wake_fetches
        self._before_delete = before_delete
        self._after_delete = after_delete
        self._slices = slices
        # Called after every 1,000 created partitions: many long-lived objects.
        self.on_many_created: Callable[[], object] = lambda: None
        self._created = 0
        # The queue of work to do in slices, and the callbacks for when it is done.
        self._work: deque[Work] = deque()
        self._is_at_work = False
        self._when_caught_up: list[Callable[[], None]] = []

    def lead_all(self) -> None:
        """Take the roles of all partitions. Called at start, after the logs are open (``metadata.reconcile``)."""
        for topic in self._image.topics.values():
            self._lead(topic, [topic.partitions[index] for index in sorted(topic.partitions)])

    def places(self) -> list[tuple[UUID, int, UUID]]:
        """Return where the online logs are: (topic id, partition, directory id)."""
        found = []
        for partition in self._partitions:
            directory_id = None if partition.log is None else self._directory_id(partition.log)
            if directory_id is not None:
                found.append((partition.topic_id, partition.index, directory_id))
        return found

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Create, move and delete partitions as ``delta`` says."""
        if delta.deleted_topics:
            self._remove([partition for topic in delta.deleted_topics for partition in self._partitions.remove_topic(topic.name)])
        is_small = sum(len(partitions) for _, partitions in delta.new_partitions) <= _AT_ONCE
        for topic, partitions in delta.new_partitions:
            # Internal topics are created at once: their coordinators start with them.
            self._do(self._lead_new(topic.topic_id, partitions), at_once=is_small or topic.name in INTERNAL_TOPICS)
        for topic, partitions in delta.changed_partitions:
            self._change(topic, partitions)

    def when_caught_up(self, reply: Reply[T]) -> Reply[T]:
        """Return a Reply with the same outcome, completed after all changes that are pending at that time are applied."""
        caught_up: Reply[T] = Reply()

        def wait(outcome: T) -> None:
            if self._is_at_work:
                self._when_caught_up.append(lambda: caught_up.complete(outcome))
            else:
                caught_up.complete(outcome)

        reply.when_done(wait)
        return caught_up

    def _do(self, work: Work, *, at_once: bool) -> None:
        """Do ``work`` at once, or in slices behind the work that is already queued."""
        if at_once:
            for _ in work:
                pass
            return
        self._work.append(work)
        if not self._is_at_work:
            self._is_at_work = True
            self._slices.run(self._catch_up(), HEAVIEST).when_done(_tell_failure)

    def _catch_up(self) -> Work:
        try:
            while self._work:
                yield from self._work.popleft()
        finally:
            self._is_at_work = False
            waiting, self._when_caught_up = self._when_caught_up, []
            for tell in waiting:
                tell()

    def _lead_new(self, topic_id: UUID, partitions: Sequence[PartitionRecord]) -> Work:
        for first in range(0, len(partitions), _CREATED_TOGETHER):
            topic = self._image.topics_by_id.get(topic_id)
            if topic is None:
                # Deleted meanwhile.
                return
            created = [topic.partitions[each.partition_id] for each in partitions[first : first + _CREATED_TOGETHER]]
            self._lead(topic, created)
            self._created += len(created)
            if self._created >= _MANY:
                self._created = 0
                self.on_many_created()
            yield None

    def _change(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        """Update this broker's roles for ``partitions``. Replicas may be added to this broker or removed from it."""
        added = []
        removed = []
        for record in partitions:
            partition = self._partitions.get(topic.name, record.partition_id)
            has_replica = self._node_id in record.replicas
            if partition is not None and has_replica:
                self._roles.take(partition, record)
            elif partition is not None:
                removed.append(self._partitions.remove(partition))
            elif has_replica:
                added.append(record)
        if removed:
            self._remove(removed)
        if added:
            at_once = len(added) <= _AT_ONCE or topic.name in INTERNAL_TOPICS
            self._do(self._lead_new(topic.topic_id, added), at_once=at_once)

    def _lead(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        config = self._log_config_for(topic.name)
        known = self._partitions.of_topic(topic.name)
        for record in partitions:
            if self._node_id in record.replicas and record.partition_id not in known:
                self._partitions.add(self._partition(topic, record, config))

    def _remove(self, partitions: Sequence[Partition]) -> None:
        """Delete partitions that have been forgotten already."""
        for partition in partitions:
            self._roles.leave(partition)
        self._do(self._delete(partitions), at_once=len(partitions) <= _AT_ONCE)

    def _delete(self, partitions: Sequence[Partition]) -> Work:
        for place, partition in enumerate(partitions, 1):
            key = (partition.topic, partition.index)
            self._before_delete(key)
            its_log = partition.log
            partition.delete()
            # A new topic of the same name may have a log there by now. Then this log is already deleted.
            if its_log is None or self._log_manager.logs.get(key) is its_log:
                try:
                    self._log_manager.delete(*key)
                except OSError as error:
                    name = f"{partition.topic}-{partition.index}"
                    log.error("cannot remove a deleted partition's directory", partition=name, reason=str(error))
            if place % _DELETED_TOGETHER == 0:
                yield None
        try:
            self._log_manager.removed_logs.sync()
            gone = {(partition.topic, partition.index) for partition in partitions}
            self._log_manager.forget_offsets(gone.difference(self._log_manager.logs))
        except OSError as error:
            log.error("cannot sync the removal of partitions: a power loss may bring them back", reason=str(error))
        self._after_delete()

    def _partition(self, topic: Topic, record: PartitionRecord, config: LogConfig) -> Partition:
        key = (topic.name, record.partition_id)
        found = self._log_manager.logs.get(key)
        reason = self._log_manager.offline.get(key, "")
        if found is None and not reason:
            try:
                found = self._log_manager.create(
                    topic.name,
                    record.partition_id,
                    topic.topic_id,
                    config,
                    now_ms=self._clock.now_ms(),
                    directory=self._assigned_to(record),
                )
            except (KafkaError, OSError) as error:
                reason = str(error)
                log.error("cannot create a partition", topic=topic.name, partition=record.partition_id, reason=reason)
        partition = Partition(
            topic.name,
            record.partition_id,
            topic.topic_id,
            record.leader_epoch,
            found,
            self._wake_fetches,
            reason,
        )
        self._roles.begin(partition, record, None if found is None else self._directory_id(found))
        self._roles.take(partition, record)
        return partition

    def _assigned_to(self, record: PartitionRecord) -> DataDirectory | None:
        """Return the data directory that the controller has chosen; None if the broker may choose."""
        place = record.replicas.index(self._node_id)
        return self._log_manager.directories.with_id(record.directories[place]) if place < len(record.directories) else None

    def _directory_id(self, of_log: Log) -> UUID | None:
        identity = self._log_manager.home_of(of_log).identity
        return None if identity is None else identity.directory_id


def _tell_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        log.error("cannot create partitions", outcome)


class LogConfigs:
    """Applies topics' configs to the open logs. A topic's defaults are the broker's configs."""

    def __init__(self, partitions: Partitions, log_config_for: Callable[[str], LogConfig]) -> None:
        self._partitions = partitions
        self._log_config_for = log_config_for

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Put changed topic configs in force."""
        names = {name for kind, name in delta.configs if kind == ResourceType.TOPIC}
        if any(kind == ResourceType.BROKER for kind, _ in delta.configs):
            names |= image.topics.keys()
        for name in names:
            config = self._log_config_for(name)
            for partition in self._partitions.of_topic(name).values():
                if partition.log is not None:
                    partition.log.config = config


class DirectoryFailures:
    """Takes partitions offline when their data directory fails. Loop thread only."""

    def __init__(
        self,
        partitions: Partitions,
        log_manager: LogManager,
        *,
        wake_produces: Callable[[Partition], object],
        cancel_moves: Callable[[DataDirectory], object],
        tell: Callable[[UUID], object],
        fail: Callable[[str], None],
    ) -> None:
        """``tell`` is called with the id of each failed directory, ``fail`` with the reason why the broker cannot go on."""
        self._partitions = partitions
        self._log_manager = log_manager
        self._wake_produces = wake_produces
        self._cancel_moves = cancel_moves
        self._tell = tell
        self._fail = fail

    def failed(self, directory: DataDirectory) -> None:
        """Take a failed directory's partitions offline. The broker stops if it was the last one, or holds the metadata log."""
        for key in self._log_manager.take_offline(directory):
            partition = self._partitions.get(*key)
            if partition is not None:
                partition.take_offline(directory.failure)
                partition.flush_failed()
                self._wake_produces(partition)
        self._cancel_moves(directory)
        if directory is self._log_manager.directories.metadata:
            self._fail(f"the data directory of the metadata log, {directory.path}, failed: {directory.failure}")
        elif not self._log_manager.directories.online:
            self._fail(f"all data directories failed; the last, {directory.path}: {directory.failure}")
        elif directory.identity is not None:
            self._tell(directory.identity.directory_id)
