"""Snapshots hold what the image holds, are written when they are due, and let the log go that they contain."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.config import load
from odradek.controller.cluster.lone_controller import LoneController
from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.features import BOOTSTRAP_RECORDS
from odradek.controller.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.metadata_log import MetadataLog, MetadataUnreadable
from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
from odradek.controller.metadata.snapshot_generator import records_of
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.metadata_records import FeatureLevelRecord, TopicRecord
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord
from odradek.protocol.metadata_records.security import ClientQuotaRecord, QuotaEntity
from odradek.protocol.quorum_records import KRAFT_VERSION, control_type
from odradek.protocol.records import Record
from odradek.storage.errors import LogCorrupt
from odradek.storage.log.log_config import LogConfig
from odradek.timing.clock import VirtualClock
from tests.controller.metadata.doubles import ALONE, DIRECTORY_ID, done
from tests.controller.metadata.storage_doubles import Killed, MortalFileSystem
from tests.memory_filesystem import MemoryFileSystem

# Of segments, each of which takes one batch.
SMALL = 400
DIRECTORY = "/data/__cluster_metadata-0"
QUOTA = ClientQuotaRecord(entity=(QuotaEntity(entity_type="user", entity_name=None),), key="k", value=0.5, remove=False)
BROKER = RegisterBrokerRecord(
    broker_id=1, incarnation_id=UUID(int=5), broker_epoch=7, end_points=(), features=(), rack=None, fenced=False
)


def state(image):
    # Each start registers the broker anew.
    return (
        {topic.name: (topic.topic_id, topic.partitions) for topic in image.topics.values()},
        sorted(image.overrides),
        image.features,
        image.next_producer_id,
        # A start registers the broker anew.
        [
            record._replace(broker_epoch=0) if isinstance(record, RegisterBrokerRecord) else record
            for record in image.kept.records()
        ],
        list(image.quotas.records()),
    )


class Bed:
    """A controller over a file system, opened again and again; each snapshot is written where it is due."""

    def __init__(self, file_system=None, segment_bytes=1 << 30, **settings):
        self.file_system = file_system or MemoryFileSystem()
        self.clock = VirtualClock()
        self.segment_bytes = segment_bytes
        self.config = load(overrides={name.replace("_", "."): value for name, value in settings.items()})
        self.ids = iter(range(1000, 10**9))
        self.open()

    def open(self):
        config = LogConfig(segment_bytes=self.segment_bytes)
        self.log = MetadataLog.open(
            self.file_system, "/data", now_ms=self.clock.now_ms(), warn=lambda *_, **__: None, config=config
        )
        self.controller = LoneController(
            self.log,
            ControllerHost(self.config, self.clock, lambda: UUID(int=next(self.ids)), Random(0)),
            broker=ALONE._replace(features=()),
            directory_counts=lambda: {DIRECTORY_ID: 0},
        )

    def create(self, *names):
        results = done(self.controller.create_topics([NewTopic(name=name, configs=[("retention.ms", "5")]) for name in names]))
        assert all(result.error is None for result in results)

    def delete(self, name):
        self.controller.delete_topics([self.controller.image.topics[name].topic_id])

    @property
    def snapshots(self):
        return self.log.snapshots.ids

    def files(self, suffix):
        return sorted(name for name in self.file_system.list_dir(DIRECTORY) if name.endswith(suffix))


@pytest.fixture
def every_time():
    """Every change is followed by a snapshot."""
    return Bed(metadata_log_max_record_bytes_between_snapshots="1")


NAMES = st.sampled_from("abcdef")
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("config"), NAMES),
        st.tuples(st.just("ids"), NAMES),
        st.tuples(st.just("open"), NAMES),
    ),
    max_size=25,
)


@given(CHANGES, st.sampled_from([1, 300, 1000]), st.sampled_from([1, 1500, -1]), st.sampled_from([SMALL, 700, 1 << 30]))
def test_whatever_is_snapshot_and_removed_a_restart_finds_what_was_there(changes, between, retained, segment_bytes):
    plain = Bed()
    bed = Bed(
        segment_bytes=segment_bytes,
        metadata_log_max_record_bytes_between_snapshots=str(between),
        metadata_max_retention_bytes=str(retained),
    )
    for kind, name in changes:
        for each in (plain, bed):
            topics = each.controller.image.topics
            if kind == "create" and name not in topics:
                each.create(name)
            elif kind == "delete" and name in topics:
                each.delete(name)
            elif kind == "config":
                each.controller.alter_configs([(BROKER_RESOURCE, "", name, "1"), (TOPIC_RESOURCE, name, "x", None)])
            elif kind == "ids":
                each.controller.allocate_producer_id_block()
        if kind == "open":
            bed.controller.close()
            bed.open()
        assert state(bed.controller.image) == state(plain.controller.image)
    bed.open()
    assert state(bed.controller.image) == state(plain.controller.image)


def test_a_snapshot_makes_the_same_image_of_an_empty_one():
    image = MetadataImage()
    image.replay(BOOTSTRAP_RECORDS)
    image.replay([BROKER, QUOTA, TopicRecord(name="t", topic_id=UUID(int=3))])
    again = MetadataImage()
    again.replay(records_of(image))
    assert state(again) == state(image)
    assert next(records_of(image)) == FeatureLevelRecord(name="metadata.version", feature_level=33)


def test_a_snapshot_is_due_by_the_bytes_appended_since_the_last_one():
    bed = Bed(metadata_log_max_record_bytes_between_snapshots="2000")
    appended = bed.log.size_bytes
    while not bed.snapshots:
        appended = bed.log.size_bytes
        bed.create(f"t{appended}")
    assert appended < 2000 <= bed.log.size_bytes
    assert bed.snapshots == [(bed.log.end_offset, 1)]


def test_bytes_behind_the_snapshot_count_after_a_restart():
    bed = Bed(metadata_log_max_record_bytes_between_snapshots="2000")
    number = 0
    while not bed.snapshots:
        bed.controller.close()
        bed.open()
        bed.create(f"t{number}")
        number += 1
    assert bed.log.size_bytes < 2400


def test_a_snapshot_is_due_by_the_age_of_the_last_one():
    bed = Bed(metadata_log_max_snapshot_interval_ms="1000")
    bed.create("a")
    assert bed.snapshots == []
    bed.clock.advance(1000)
    bed.create("b")
    assert bed.snapshots == [(bed.log.end_offset, 1)]
    bed.clock.advance(999)
    bed.create("c")
    assert len(bed.snapshots) == 1


def test_no_snapshot_is_due_by_age_where_the_interval_is_0():
    bed = Bed(metadata_log_max_snapshot_interval_ms="0")
    bed.clock.advance(10**9)
    bed.create("a")
    assert bed.snapshots == []


def test_the_log_goes_that_retention_does_not_keep():
    bed = Bed(segment_bytes=SMALL, metadata_log_max_record_bytes_between_snapshots="1", metadata_max_retention_bytes="1")
    for number in range(5):
        bed.create(f"t{number}")
    assert bed.files(".checkpoint") == [SnapshotId(bed.log.end_offset, 1).name]
    # The active segment, which is begun with the next append, is all that is left.
    assert len(bed.files(".log")) == 1
    assert bed.files(".deleted") == []


def test_snapshots_that_are_too_old_go_and_the_newest_never():
    bed = Bed(metadata_log_max_record_bytes_between_snapshots="1", metadata_max_retention_ms="1000")
    bed.create("a")
    bed.clock.advance(500)
    bed.create("b")
    first, second = bed.snapshots[-2:]
    bed.clock.advance(501)
    bed.create("c")
    assert first not in bed.snapshots
    assert second in bed.snapshots
    bed.clock.advance(10**6)
    bed.create("d")
    assert bed.snapshots == [(bed.log.end_offset, 1)]


def test_a_quorums_version_and_voters_are_carried_on(every_time):
    version = (b"\0\0\0\5", b"\0\0\0\1\0")
    every_time.log.quorum[KRAFT_VERSION] = version
    every_time.create("a")
    every_time.open()
    assert every_time.log.quorum == {KRAFT_VERSION: version}
    assert control_type(Record(timestamp=0, key=version[0], value=version[1])) == KRAFT_VERSION


@pytest.mark.parametrize("damage", ["cut", "byte", "empty"])
def test_a_damaged_snapshot_stops_the_start(every_time, damage):
    every_time.create("a")
    path = every_time.log.snapshot_path
    data = every_time.file_system.read_bytes(path)
    changed = {"cut": data[:-10], "byte": data[:80] + bytes([data[80] ^ 1]) + data[81:], "empty": b""}[damage]
    every_time.file_system.write_atomic(path, changed)
    with pytest.raises((MetadataUnreadable, LogCorrupt)) as caught:
        every_time.open()
    assert path in str(caught.value)


def test_a_log_that_does_not_reach_back_to_the_snapshot_stops_the_start():
    bed = Bed(segment_bytes=SMALL, metadata_log_max_record_bytes_between_snapshots="1", metadata_max_retention_bytes="1")
    bed.create("a", "b")
    bed.create("c")
    bed.file_system.remove(bed.log.snapshot_path)
    with pytest.raises(LogCorrupt, match="records are missing"):
        bed.open()


def test_parts_of_snapshots_are_removed_by_the_next_start(every_time):
    part = f"{DIRECTORY}/{SnapshotId(3, 1).name}.part"
    every_time.file_system.open(part, create=True).append([b"half"])
    every_time.open()
    assert not every_time.file_system.exists(part)


def test_a_snapshot_that_cannot_be_written_is_tried_again(every_time, monkeypatch, capfd):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    before = list(every_time.snapshots)
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFiles, "write", fail)
        every_time.create("a")
    assert every_time.snapshots == before
    assert "No space left" in capfd.readouterr().err
    every_time.create("b")
    assert every_time.snapshots[-1] == (every_time.log.end_offset, 1)


def killed_at_each_operation():
    """A broker that is killed at one operation after the other of a change, its snapshot and what that removes."""
    for operations in range(200):
        file_system = MortalFileSystem()
        bed = Bed(
            file_system,
            segment_bytes=SMALL,
            metadata_log_max_record_bytes_between_snapshots="1",
            metadata_max_retention_bytes="1",
        )
        bed.create("before")
        file_system.operations_left = operations
        try:
            bed.create("after")
        except Killed:
            file_system.operations_left = None
            yield file_system, bed
        else:
            return
    raise AssertionError("it is never done")


def test_a_kill_at_any_operation_leaves_the_whole_change_or_none_of_it():
    outcomes = []
    for _, bed in killed_at_each_operation():
        bed.open()
        outcomes.append(sorted(bed.controller.image.topics))
        bed.create("later")
        bed.open()
        assert "later" in bed.controller.image.topics
    assert len(outcomes) > 5
    assert {tuple(names) for names in outcomes} == {("before",), ("after", "before")}


def test_a_snapshot_is_read_as_it_was_written(tmp_path):
    from odradek.storage.filesystem import RealFileSystem

    files = SnapshotFiles(RealFileSystem(), str(tmp_path))
    snapshot = SnapshotId(5000, 3)
    records = [TopicRecord(name=f"t{number}", topic_id=UUID(int=number + 1)) for number in range(3000)]
    files.write(snapshot, records, [], contained_ms=77, now_ms=99)
    files.recover()
    assert (files.ids, files.last_contained_ms(snapshot)) == ([snapshot], 77)
    batches = list(files.read(snapshot))
    assert [(is_control, len(found)) for is_control, found in batches] == [
        *((True, 1), (False, 1024), (False, 1024)),
        *((False, 952), (True, 1)),
    ]
    offsets = [record.offset for _, found in batches for record in found]
    assert offsets == list(range(3002))
