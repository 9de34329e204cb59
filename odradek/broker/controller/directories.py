"""Partition directories follow the image: created and deleted as topics are, and put right at the start.

The metadata log is written first, always, so after a kill -9 at any point it knows what should be there:

- a partition without a directory, or with one that had not got its topic id yet, is created empty;
- a directory of a topic that was deleted is removed;
- a directory of a topic that the log never heard of cannot come from a crash: it is renamed to `<name>.<id>-stray`, as by Kafka,
  and kept: the metadata may be what is lost.
"""

from collections.abc import Callable, Sequence
from uuid import UUID, uuid4

from odradek.broker.controller.controller import Controller
from odradek.broker.controller.image import TOPIC_RESOURCE, Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import PartitionRecord
from odradek.storage import checkpoints
from odradek.storage.filesystem import FileSystem
from odradek.storage.log_manager import LogManager
from odradek.storage.recovery import Warn

_STRAY_SUFFIX = "-stray"
_FAILURES = (KafkaError, OSError, ValueError)


class PartitionDirectories:
    """Observes the controller and keeps ``log_manager``'s logs to what the image says; a log that fails goes offline.

    ``run_slowly`` is called with the removal of deleted files, to be run at once or in a thread.
    """

    def __init__(
        self,
        controller: Controller,
        log_manager: LogManager,
        file_system: FileSystem,
        *,
        warn: Warn,
        run_slowly: Callable[[Callable[[], None]], object] = lambda action: action(),
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._controller = controller
        self._image = controller.image
        self._log_manager = log_manager
        self._file_system = file_system
        self._warn = warn
        self._run_slowly = run_slowly
        self._new_uuid = new_uuid

    def reconcile(self) -> None:
        """Make directories what the image says; once, after ``LogManager.load_all`` and before anything is served."""
        for topic_name, partition in sorted((*self._log_manager.logs, *self._log_manager.offline)):
            self._judge(topic_name, partition)
        for topic, record in self._image.partitions():
            key = (topic.name, record.partition_id)
            if key not in self._log_manager.logs and key not in self._log_manager.offline:
                self._create(topic, record.partition_id)
        self._remove_deleted()

    def partitions_created(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        """Create a log for each of ``partitions``."""
        for record in partitions:
            self._create(topic, record.partition_id)

    def topic_deleted(self, topic: Topic) -> None:
        """Take the topic's logs out of service and free their disk."""
        for partition in topic.partitions:
            self._delete(topic.name, partition)
        self._run_slowly(self._remove_deleted)

    def configs_changed(self, resources: Sequence[tuple[int, str]]) -> None:
        """Let the logs act on their new configs; a change of the broker's defaults reaches all of them."""
        changed = {name for resource_type, name in resources if resource_type == TOPIC_RESOURCE}
        is_default_changed = any(resource_type != TOPIC_RESOURCE for resource_type, _ in resources)
        for name in self._image.topics if is_default_changed else changed & self._image.topics.keys():
            config = self._controller.log_config_for(name)
            for partition in self._image.topics[name].partitions:
                log = self._log_manager.logs.get((name, partition))
                if log is not None:
                    log.config = config

    def _judge(self, topic_name: str, partition: int) -> None:
        """Keep, adopt, remove or set aside a directory that was found at the start."""
        found_id = self._found_topic_id(topic_name, partition)
        topic = self._image.topics.get(topic_name)
        if topic is not None and partition in topic.partitions and found_id in (topic.topic_id, None):
            if found_id is None:
                self._adopt(topic, partition)
        elif found_id in self._image.removed_topic_ids:
            self._delete(topic_name, partition)
        else:
            self._set_aside(topic_name, partition)

    def _found_topic_id(self, topic_name: str, partition: int) -> UUID | None:
        log = self._log_manager.logs.get((topic_name, partition))
        if log is not None:
            return log.topic_id
        try:
            return checkpoints.read_topic_id(self._file_system, self._path(topic_name, partition))
        except (OSError, ValueError):
            return None

    def _adopt(self, topic: Topic, partition: int) -> None:
        """Give a directory whose ``partition.metadata`` is missing or unreadable its topic's id."""
        key = (topic.name, partition)
        checkpoints.write_topic_id(self._file_system, self._path(topic.name, partition), topic.topic_id)
        log = self._log_manager.logs.get(key)
        if log is not None:
            log.topic_id = topic.topic_id
        else:  # perhaps that was all that was wrong: it is opened again
            del self._log_manager.offline[key]

    def _create(self, topic: Topic, partition: int) -> None:
        key = (topic.name, partition)
        try:
            log = self._log_manager.create(
                topic.name,
                partition,
                topic.topic_id,
                self._controller.log_config_for(topic.name),
                now_ms=self._controller.clock.now_ms(),
            )
            if log.topic_id != topic.topic_id:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"its directory belongs to topic id {log.topic_id}")
        except _FAILURES as error:
            self._log_manager.logs.pop(key, None)
            self._log_manager.offline[key] = str(error)
            self._warn("partition offline", topic=topic.name, partition=partition, reason=str(error))

    def _delete(self, topic_name: str, partition: int) -> None:
        try:
            self._log_manager.delete(topic_name, partition)
        except _FAILURES as error:  # the next start removes it
            self._warn("partition not removed", topic=topic_name, partition=partition, reason=str(error))

    def _set_aside(self, topic_name: str, partition: int) -> None:
        key = (topic_name, partition)
        log = self._log_manager.logs.pop(key, None)
        self._log_manager.offline.pop(key, None)
        directory = self._path(topic_name, partition)
        try:
            if log is not None:
                log.close(clean=True, now_ms=self._controller.clock.now_ms())
            deleted_path = checkpoints.deleted_path(directory, self._new_uuid().hex)
            self._file_system.rename(directory, deleted_path.removesuffix(checkpoints.DELETED_SUFFIX) + _STRAY_SUFFIX)
        except _FAILURES as error:
            self._warn("stray partition", topic=topic_name, partition=partition, reason=str(error))
        else:
            self._warn("stray partition", topic=topic_name, partition=partition)

    def _remove_deleted(self) -> None:
        try:
            self._log_manager.remove_deleted()
        except OSError as error:  # the next start removes it
            self._warn("deleted partitions not removed", reason=str(error))

    def _path(self, topic_name: str, partition: int) -> str:
        return f"{self._log_manager.log_dir}/{topic_name}-{partition}"
