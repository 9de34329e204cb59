"""Start-up: partition directories are made what the metadata says.

The metadata log is written first, always, so after a kill -9 at any point it knows what should be there:

- a partition without a directory is created empty;
- a directory that had not got its topic id yet, or lost it with the machine's power, gets it, and keeps its records;
- a directory of a topic that was deleted is removed;
- a directory of a topic that the log never heard of cannot come from a crash: it is renamed to `<name>.<id>-stray`, as by Kafka,
  and kept: the metadata may be what is lost.
"""

from collections.abc import Callable
from uuid import UUID, uuid4

from odradek.broker.controller.image import MetadataImage, Topic
from odradek.protocol.errors import KafkaError
from odradek.storage import checkpoints
from odradek.storage.filesystem import FileSystem
from odradek.storage.log_config import LogConfig
from odradek.storage.log_manager import LogManager
from odradek.storage.recovery import Warn

_STRAY_SUFFIX = "-stray"


class Reconciliation:
    """Opens ``log_manager``'s logs to be those of ``image``; ``now_ms`` is wall time."""

    def __init__(
        self,
        image: MetadataImage,
        log_manager: LogManager,
        file_system: FileSystem,
        *,
        log_config_for: Callable[[str], LogConfig],
        now_ms: int,
        warn: Warn,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._image = image
        self._log_manager = log_manager
        self._file_system = file_system
        self._log_config_for = log_config_for
        self._now_ms = now_ms
        self._warn = warn
        self._new_uuid = new_uuid

    def run(self) -> None:
        """Once, before anything is served. A log that cannot be opened or created goes offline. Raises OSError."""
        for topic, record in self._image.partitions():
            self._complete(topic, record.partition_id)
        self._log_manager.load_all(self._log_config_for, now_ms=self._now_ms)
        for topic_name, partition in sorted((*self._log_manager.logs, *self._log_manager.offline)):
            self._judge(topic_name, partition)
        for topic, record in self._image.partitions():
            key = (topic.name, record.partition_id)
            if key not in self._log_manager.logs and key not in self._log_manager.offline:
                self._create(topic, record.partition_id)
        self._log_manager.remove_deleted()

    def _complete(self, topic: Topic, partition: int) -> None:
        """Record the topic id in a directory that does not know it, if the directory is there at all."""
        directory = self._path(topic.name, partition)
        try:
            known_id = checkpoints.read_topic_id(self._file_system, directory)
        except ValueError:
            known_id = None
        if known_id is None and self._file_system.exists(directory):
            checkpoints.write_topic_id(self._file_system, directory, topic.topic_id)

    def _judge(self, topic_name: str, partition: int) -> None:
        """Keep, remove or set aside a directory that was found."""
        found_id = self._found_topic_id(topic_name, partition)
        topic = self._image.topics.get(topic_name)
        if topic is not None and partition in topic.partitions and found_id == topic.topic_id:
            return
        if found_id in self._image.removed_topic_ids:
            self._log_manager.delete(topic_name, partition)
        else:
            self._set_aside(topic_name, partition)

    def _found_topic_id(self, topic_name: str, partition: int) -> UUID | None:
        log = self._log_manager.logs.get((topic_name, partition))
        if log is not None:
            return log.topic_id
        try:
            return checkpoints.read_topic_id(self._file_system, self._path(topic_name, partition))
        except ValueError:
            return None

    def _set_aside(self, topic_name: str, partition: int) -> None:
        key = (topic_name, partition)
        log = self._log_manager.logs.pop(key, None)
        self._log_manager.offline.pop(key, None)
        if log is not None:
            log.close(clean=True, now_ms=self._now_ms)
        directory = self._path(topic_name, partition)
        deleted_path = checkpoints.deleted_path(directory, self._new_uuid().hex)
        stray_path = deleted_path.removesuffix(checkpoints.DELETED_SUFFIX) + _STRAY_SUFFIX
        self._file_system.rename(directory, stray_path)
        self._warn("a directory of no known topic was set aside", topic=topic_name, partition=partition, path=stray_path)

    def _create(self, topic: Topic, partition: int) -> None:
        config = self._log_config_for(topic.name)
        try:
            self._log_manager.create(topic.name, partition, topic.topic_id, config, now_ms=self._now_ms)
        except (KafkaError, OSError) as error:
            self._log_manager.offline[topic.name, partition] = str(error)
            self._warn("partition offline", topic=topic.name, partition=partition, reason=str(error))

    def _path(self, topic_name: str, partition: int) -> str:
        return f"{self._log_manager.log_dir}/{topic_name}-{partition}"
