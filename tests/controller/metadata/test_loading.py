"""What the image has after the start: of metadata transactions all or nothing, and a line about what cannot be read."""

from uuid import UUID

import pytest

from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.protocol.metadata_records import FeatureLevelRecord, PartitionRecord, TopicRecord, decode, encode
from odradek.protocol.metadata_records.log_control import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.controller.metadata.doubles import DIRECTORY_ID, NODE_ID, RecordedLog, make_controller

FEATURE = FeatureLevelRecord(name="metadata.version", feature_level=30)
ONE, OTHER = TopicRecord(name="one", topic_id=UUID(int=1)), TopicRecord(name="other", topic_id=UUID(int=2))


def log_of(*batches):
    return RecordedLog([[encode(record) for record in batch] for batch in batches])


def test_records_of_a_transaction_are_there_when_it_has_ended():
    log = log_of([BeginTransactionRecord(name="x"), FEATURE], [ONE], [EndTransactionRecord()], [OTHER])
    image = make_controller(log).image
    assert (list(image.topics), image.features) == (["one", "other"], {"metadata.version": 30})


def test_records_of_an_aborted_transaction_never_are():
    log = log_of([FEATURE, BeginTransactionRecord(), ONE, AbortTransactionRecord(reason="x"), OTHER])
    assert list(make_controller(log).image.topics) == ["other"]


def test_a_transaction_that_the_log_ends_in_is_aborted_before_anything_else_is_appended():
    log = log_of([FEATURE, BeginTransactionRecord()], [ONE])
    controller = make_controller(log)
    assert list(controller.image.topics) == []
    (abort,) = (decode(value) for value in log.batches[2])
    assert isinstance(abort, AbortTransactionRecord)
    controller.allocate_producer_id_block()
    assert make_controller(log).image.next_producer_id == controller.image.next_producer_id


@pytest.mark.parametrize(
    "batch",
    [
        [BeginTransactionRecord(), BeginTransactionRecord()],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [PartitionChangeRecord(topic_id=UUID(int=9), partition_id=0)],
        [ONE, ONE],
    ],
    ids=lambda batch: "-".join(type(record).__name__ for record in batch),
)
def test_records_that_make_no_sense_are_named_by_file_and_offset(batch):
    with pytest.raises(MetadataUnreadable) as caught:
        make_controller(log_of([FEATURE], batch))
    assert f"recorded.log, offset {len(batch)}: " in str(caught.value)


def partition(**fields):
    known = {"replicas": (NODE_ID,), "isr": (NODE_ID,), "leader": NODE_ID, "directories": (DIRECTORY_ID,)}
    return PartitionRecord(partition_id=0, topic_id=UUID(int=1), leader_epoch=1, partition_epoch=1, **(known | fields))


def test_a_partition_that_a_kafka_broker_gave_up_is_led_again_at_the_next_leader_epoch():
    log = log_of([FEATURE, ONE, partition(isr=(), leader=-1, eligible_leader_replicas=(NODE_ID,))])
    found = make_controller(log).image.topics["one"].partitions[0]
    assert (found.leader, found.isr, found.leader_epoch, found.eligible_leader_replicas) == (NODE_ID, (NODE_ID,), 2, None)
    before = len(log.batches)
    make_controller(log)
    assert len(log.batches) == before


def test_a_partition_without_a_replica_here_stays_as_it_is():
    given = partition(replicas=(7, 8), isr=(7,), leader=7)
    assert make_controller(log_of([FEATURE, ONE, given])).image.topics["one"].partitions[0] == given


def test_a_log_that_a_kafka_broker_led_goes_on_at_its_leader_epoch(tmp_path):
    from odradek.controller.metadata.metadata_log import LEADER_EPOCH, MetadataLog
    from odradek.protocol.records import Record, build_batch
    from odradek.storage.filesystem import RealFileSystem
    from odradek.storage.log.log import Log
    from odradek.storage.log.log_config import LogConfig

    directory = str(tmp_path / "__cluster_metadata-0")

    def open_log():
        return Log.open(
            RealFileSystem(), directory, "__cluster_metadata", 0, LogConfig(), clean=False, now_ms=0, warn=lambda *_, **__: None
        )

    log = open_log()
    log.append(build_batch([Record(timestamp=0, value=encode(FEATURE))]), leader_epoch=5, now_ms=0)
    log.close(clean=True, now_ms=0)
    metadata_log = MetadataLog.open(RealFileSystem(), str(tmp_path), now_ms=0, warn=lambda *_, **__: None)
    metadata_log.append([ONE], now_ms=0)
    assert metadata_log.leader_epoch == 5 > LEADER_EPOCH
    metadata_log.close(now_ms=0)
    assert open_log().leader_epochs.latest == 5


def test_every_record_that_was_read_is_written_again_as_it_was():
    for record in (ONE, BeginTransactionRecord(name="n"), EndTransactionRecord(), partition()):
        assert decode(encode(record)) == record


@pytest.mark.parametrize(
    ("name", "level", "known"),
    [
        ("metadata.version", 34, "knows it at 7 to 33"),
        ("group.version", 2, "knows it at 0 to 1"),
        ("time.travel.version", 1, "has no such feature"),
    ],
)
def test_a_feature_that_a_newer_kafka_has_raised_too_high_ends_the_start_with_a_line_that_names_it(name, level, known):
    with pytest.raises(MetadataUnreadable) as caught:
        make_controller(log_of([FEATURE], [FeatureLevelRecord(name=name, feature_level=level)]))
    assert f"recorded.log: the feature {name} is finalized at {level}, and odradek {known}; a newer broker" in str(caught.value)


def test_a_feature_that_was_raised_too_high_and_lowered_again_does_not():
    higher = FeatureLevelRecord(name="group.version", feature_level=2)
    lower = FeatureLevelRecord(name="group.version", feature_level=1)
    assert make_controller(log_of([FEATURE], [higher], [lower])).image.features["group.version"] == 1
