"""Start-up: brings the partition directories in line with the metadata.

The metadata log is always written first. So after a kill -9 at any point it knows which directories must exist:

- A partition without a directory is created empty, in its assigned data directory, with a line in the log. But if a checkpoint
  file shows that it had records, they are lost, and the partition is offline.
- A directory that has not got its topic id yet, or lost it in a power failure, gets it, and keeps its records.
- A directory of a deleted topic is removed.
- A directory of a topic unknown to the log cannot come from a crash. It is renamed to `<name>.<id>-stray`, as in Kafka, and kept:
  the metadata may be what was lost.

If a data directory is offline, or no longer in ``log.dirs``, missing partitions that may be in it are not created anew. They are
offline until their records are back.
"""

from collections.abc import Callable
from uuid import UUID

from odradek.controller.metadata.cluster_view import directory_of, is_reserved
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.protocol.texts import uuid_text
from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.storage.recovery.recovery import Warn

_STRAY_SUFFIX = "-stray"


class Reconciliation:
    """Opens the logs of ``log_manager`` to match ``image``; ``now_ms`` is wall time.

    ``node_id`` is this broker's id. Partitions without a replica here are ignored.
    """

    def __init__(
        self,
        image: MetadataImage,
        log_manager: LogManager,
        file_system: FileSystem,
        *,
        node_id: int,
        log_config_for: Callable[[str], LogConfig],
        now_ms: int,
        warn: Warn,
    ) -> None:
        self._image = image
        self._log_manager = log_manager
        self._file_system = file_system
        self._node_id = node_id
        self._is_complete = True
        self._log_config_for = log_config_for
        self._now_ms = now_ms
        self._warn = warn

    def run(self) -> None:
        """Run once, before anything is served. A log that cannot be opened or created goes offline.

        Raises InconsistentDataDirectory if a log is in two data directories; OSError.
        """
        manager = self._log_manager
        topic_ids = {(topic.name, record.partition_id): topic.topic_id for topic, record in self._image.partitions()}
        manager.load_all(self._log_config_for, now_ms=self._now_ms, topic_ids=topic_ids)
        for key in sorted((*manager.logs, *manager.offline_homes)):
            try:
                self._judge(*key)
            except OSError as error:
                self._warn(
                    "cannot check a partition's directory: it is left unchanged",
                    topic=key[0],
                    partition=key[1],
                    reason=str(error),
                )
        manager.removed_logs.sync()
        manager.forget_all_but(topic_ids)
        self._is_complete = manager.directories.are_online
        for topic, record in self._image.partitions():
            key = (topic.name, record.partition_id)
            if self._node_id in record.replicas and key not in manager.logs and key not in manager.offline:
                self._create(topic, record)
        manager.removed_logs.remove_all()

    def _judge(self, topic_name: str, partition: int) -> None:
        """Keep, remove or set aside a directory found on disk."""
        found_id = self._found_topic_id(topic_name, partition)
        topic = self._image.topics.get(topic_name)
        if topic is not None and partition in topic.partitions and found_id == topic.topic_id:
            return
        if found_id in self._image.topics_by_id:
            self._refuse((topic_name, partition), found_id)
        elif found_id in self._image.removed_topic_ids:
            self._log_manager.delete(topic_name, partition)
        else:
            self._set_aside(topic_name, partition)

    def _refuse(self, key: tuple[str, int], found_id: UUID | None) -> None:
        """Take a log offline whose directory has the topic id of another existing topic."""
        assert found_id is not None  # noqa: S101  it is a topic's id
        other = self._image.topics_by_id[found_id].name
        reason = f"its partition.metadata has the topic id of {other}"
        self._log_manager.close_offline(key, reason)
        self._warn("partition offline", topic=key[0], partition=key[1], reason=reason)

    def _found_topic_id(self, topic_name: str, partition: int) -> UUID | None:
        key = (topic_name, partition)
        log = self._log_manager.logs.get(key)
        if log is not None:
            return log.topic_id
        try:
            return checkpoints.read_topic_id(self._file_system, self._log_manager.offline_homes[key].log_path(key))
        except OSError:
            # A NotRegularFile is also a ValueError, and says nothing about the log.
            raise
        except ValueError:
            return None

    def _set_aside(self, topic_name: str, partition: int) -> None:
        path = self._log_manager.set_aside(topic_name, partition, _STRAY_SUFFIX, self._now_ms)
        self._warn("a directory of an unknown topic was set aside", topic=topic_name, partition=partition, path=path)

    def _create(self, topic: Topic, record: PartitionRecord) -> None:
        key = (topic.name, record.partition_id)
        try:
            directory = self._directory_for(record)
            self._ensure_new(key)
            self._warn("a partition had no directory: created empty", topic=topic.name, partition=record.partition_id)
            config = self._log_config_for(topic.name)
            self._log_manager.create(*key, topic.topic_id, config, now_ms=self._now_ms, directory=directory)
        except (KafkaError, OSError) as error:
            reason = error.reason if isinstance(error, KafkaError) else str(error)
            self._log_manager.offline[key] = reason
            self._warn("partition offline", topic=topic.name, partition=record.partition_id, reason=reason)

    def _ensure_new(self, key: tuple[str, int]) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) for a partition that has had records."""
        for directory in self._log_manager.directories.online:
            end_offset = directory.records_of(key)
            if end_offset:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{directory.log_path(key)} is missing, but it had records up to offset {end_offset}",
                )

    def _directory_for(self, record: PartitionRecord) -> DataDirectory | None:
        """Return the assigned data directory of a missing partition; None for any. KafkaError: KAFKA_STORAGE_ERROR."""
        found = directory_of(record, self._node_id)
        assigned = None if is_reserved(found) else found
        directory = None if assigned is None else self._log_manager.directories.with_id(assigned)
        if assigned is not None and directory is None:
            text = uuid_text(assigned)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"its data directory, with id {text}, is offline or not in log.dirs")
        if not self._is_complete:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, "its directory was not found, and may be in an offline data directory"
            )
        return directory
