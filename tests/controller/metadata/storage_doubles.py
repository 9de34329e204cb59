"""Controller and logs over a file system, as a broker opens them; and a file system that kills its process."""

from random import Random
from uuid import uuid4

from odradek.common.config import load
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.reconcile import Reconciliation
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord
from odradek.protocol.records import Record, build_batch
from odradek.storage.directories.log_manager import LogManager
from odradek.timing.clock import VirtualClock
from tests.memory_filesystem import MemoryFile, MemoryFileSystem

CONFIG = load()


class Storage:
    """What a broker opens. With ``observed=False`` nothing follows a decision, as if it were killed at once."""

    def __init__(self, file_system, data_dir, *, observed=True):
        self.file_system = file_system
        self.clock = VirtualClock()
        self.warnings = []
        self.log_manager = LogManager(file_system, data_dir, node_id=1, new_uuid=uuid4, warn=self.warn)
        try:
            self._open(data_dir, observed=observed)
        except BaseException:
            self.kill()
            raise

    def _open(self, data_dir, *, observed):
        self.log_manager.start()
        log = MetadataLog.open(self.file_system, data_dir, now_ms=self.clock.now_ms(), warn=self.warn)
        self.controller = LoneController(
            log,
            ControllerHost(CONFIG, self.clock, uuid4, Random(0)),
            broker=RegisterBrokerRecord(broker_id=1, fenced=False, log_dirs=tuple(self.log_manager.directories.online_ids)),
            directory_counts=self.log_manager.counts,
        )
        Reconciliation(
            image=self.controller.image,
            log_manager=self.log_manager,
            node_id=1,
            file_system=self.file_system,
            log_config_for=self.controller.log_config_for,
            now_ms=self.clock.now_ms(),
            warn=self.warn,
        ).run()
        if observed:
            self.controller.subscribe(self, PublishingOrder.PARTITIONS)

    def publish(self, delta, image):
        for topic, partitions in delta.new_partitions:
            for record in partitions:
                self.log_manager.create(
                    topic.name,
                    record.partition_id,
                    topic.topic_id,
                    self.controller.log_config_for(topic.name),
                    now_ms=self.clock.now_ms(),
                )
        for topic in delta.deleted_topics:
            for partition in topic.partitions:
                self.log_manager.delete(topic.name, partition)
            self.log_manager.removed_logs.remove_all()

    def warn(self, event, **_):
        self.warnings.append(event)

    def kill(self):
        self.log_manager.release()

    def append(self, topic, partition):
        batch = build_batch([Record(timestamp=self.clock.now_ms(), value=b"v")])
        self.log_manager.logs[topic, partition].append(batch, leader_epoch=0, now_ms=self.clock.now_ms())

    def end_offset(self, topic, partition):
        return self.log_manager.logs[topic, partition].log_end_offset


class Killed(BaseException):
    """The end of the process, which nothing catches."""


class MortalFileSystem(MemoryFileSystem):
    """Ends the process at the operation after ``operations_left``, half way through it where it has a half; None: lives."""

    def __init__(self):
        super().__init__()
        self.operations_left = None

    def live(self):
        """Count an operation; False where it is the last, which then raises Killed."""
        if self.operations_left is None:
            return True
        self.operations_left -= 1
        return self.operations_left >= 0

    def open(self, path, *, create=False):
        if create and path not in self.files:
            if not self.live():
                raise Killed
            super().open(path, create=True)
            self.files[path] = MortalFile(self)
        return super().open(path)

    def write_atomic(self, path, data, *, durable=True):
        if not self.live():
            super().write_atomic(f"{path}.tmp", data[: len(data) // 2])
            raise Killed
        super().write_atomic(path, data, durable=durable)

    def make_dirs(self, path):
        if not self.exists(path):
            if not self.live():
                raise Killed
            super().make_dirs(path)

    def rename(self, source, target):
        if not self.live():
            raise Killed
        super().rename(source, target)

    def remove(self, path):
        if not self.live():
            raise Killed
        super().remove(path)

    def remove_tree(self, path):
        if not self.live():
            for name in sorted(name for name in self.files if name.startswith(f"{path}/"))[::2]:
                super().remove(name)
            raise Killed
        super().remove_tree(path)


class MortalFile(MemoryFile):
    """A file of a MortalFileSystem."""

    __slots__ = ("_owner",)

    def __init__(self, owner):
        super().__init__()
        self._owner = owner

    def append(self, buffers):
        data = b"".join(buffers)
        if not self._owner.live():
            super().append([data[: len(data) // 2]])
            raise Killed
        super().append([data])

    def truncate(self, size):
        if not self._owner.live():
            raise Killed
        super().truncate(size)
