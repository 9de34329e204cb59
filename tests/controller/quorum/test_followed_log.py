"""The copy of the metadata log: where it ends, what is committed, and what a start makes of what a stop has left."""

import pytest

from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC_ID
from odradek.controller.quorum.followed_log import FollowedLog, TruncationBelowCommitted
from odradek.storage.directories.checkpoints import read_topic_id
from odradek.storage.errors import LogCorrupt
from tests.controller.quorum.fake_quorum import DATA_DIR, LOG_DIR, METADATA_VERSION, NOW_MS, batch_of, topic


@pytest.fixture
def open_log(file_system):
    def opened():
        return FollowedLog.open_copy(file_system, DATA_DIR, now_ms=NOW_MS, warn=lambda event, **what: None)

    return opened


def append(log, *epochs):
    """A batch of one record for each leader epoch."""
    for epoch in epochs:
        log.append_fetched(batch_of(topic(log.end_offset), log.end_offset, epoch), leader_epoch=epoch, now_ms=NOW_MS)


def write_snapshot(file_system, snapshot, records=(METADATA_VERSION,)):
    SnapshotFiles(file_system, LOG_DIR).write(snapshot, records, [], contained_ms=NOW_MS, now_ms=NOW_MS)


@pytest.fixture
def log(open_log):
    return open_log()


def test_a_new_copy_has_the_metadata_topics_id(log, file_system):
    assert (log.start_offset, log.end_offset, log.last_fetched_epoch, log.high_watermark) == (0, 0, 0, None)
    assert read_topic_id(file_system, LOG_DIR) == CLUSTER_METADATA_TOPIC_ID


@pytest.mark.parametrize("kept", [b"", b"version: 0", b"version: 0\ntopic_id: AAAA"])
def test_a_topic_id_that_a_loss_of_power_has_torn_is_written_anew(open_log, file_system, kept):
    append(open_log(), 1, 1)
    file_system.write_atomic(f"{LOG_DIR}/partition.metadata", kept)
    assert open_log().end_offset == 2
    assert read_topic_id(file_system, LOG_DIR) == CLUSTER_METADATA_TOPIC_ID


@pytest.mark.parametrize(
    ("epoch", "end_offset", "expected"),
    [
        # The leader's epoch 2 ends in front of ours, or behind it.
        (2, 3, 3),
        (2, 9, 4),
        # It has no epoch 3: its largest below that is one that we have, or do not.
        (1, 2, 2),
        (0, 1, 1),
    ],
)
def test_the_log_ends_where_the_two_diverge(log, epoch, end_offset, expected):
    append(log, 1, 1, 2, 2, 5, 5)
    assert log.truncate(epoch, end_offset, now_ms=NOW_MS) == expected
    assert log.end_offset == expected


@pytest.mark.parametrize("end_offset", [1, 4])
def test_an_epoch_that_the_copy_does_not_have_ends_it_where_the_next_one_begins(log, end_offset):
    append(log, 1, 1, 5, 5)
    assert log.truncate(3, end_offset, now_ms=NOW_MS) == 2
    assert log.last_fetched_epoch == 1


def test_an_epoch_behind_those_of_the_copy_leaves_it_alone(log):
    append(log, 1, 1)
    assert log.truncate(9, 1, now_ms=NOW_MS) == 2


def test_what_was_committed_stays(log):
    append(log, 1, 1, 1)
    log.advance(2)
    with pytest.raises(TruncationBelowCommitted):
        log.truncate(1, 1, now_ms=NOW_MS)
    assert log.truncate(1, 2, now_ms=NOW_MS) == 2


def test_a_snapshot_says_what_was_committed_before_the_start(log, open_log, file_system):
    append(log, 1, 1, 1)
    write_snapshot(file_system, SnapshotId(2, 1))
    with pytest.raises(TruncationBelowCommitted):
        open_log().truncate(1, 1, now_ms=NOW_MS)


def test_the_high_watermark_lies_within_the_log_and_does_not_go_back(log):
    append(log, 1, 1)
    log.advance(7)
    assert log.high_watermark == 2
    append(log, 1)
    log.advance(1)
    assert log.high_watermark == 2


def test_a_snapshot_beyond_the_log_takes_its_place_at_a_start(open_log, file_system):
    """A loss of power has taken the log's end, or came before the log was ended."""
    append(open_log(), 1, 1)
    write_snapshot(file_system, SnapshotId(1, 1))
    write_snapshot(file_system, SnapshotId(5, 1))
    log = open_log()
    assert (log.start_offset, log.end_offset, log.last_fetched_epoch, log.high_watermark) == (5, 5, 1, 5)
    assert log.snapshots.ids == [SnapshotId(5, 1)]
    append(log, 2)
    assert open_log().end_offset == 6


def test_a_snapshot_in_front_of_the_log_is_removed_by_a_start(open_log, file_system):
    open_log()
    write_snapshot(file_system, SnapshotId(5, 1))
    append(open_log(), 2)
    write_snapshot(file_system, SnapshotId(3, 1))
    assert open_log().snapshots.ids == [SnapshotId(5, 1)]


def test_a_snapshot_that_takes_the_logs_place_removes_older_ones(log, file_system):
    append(log, 1, 1)
    for snapshot in (SnapshotId(1, 1), SnapshotId(5, 1)):
        write_snapshot(file_system, snapshot)
        log.snapshots.add(snapshot)
    log.begin_at(SnapshotId(5, 1), now_ms=NOW_MS)
    assert log.snapshots.ids == [SnapshotId(5, 1)]
    assert not file_system.exists(log.snapshots.path(SnapshotId(1, 1)))


def test_a_snapshot_within_the_log_leaves_it_alone(open_log, file_system):
    append(open_log(), 1, 1)
    write_snapshot(file_system, SnapshotId(1, 1))
    log = open_log()
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 2, None)


def test_a_log_that_begins_at_a_snapshot_needs_it(open_log, file_system):
    open_log()
    write_snapshot(file_system, SnapshotId(5, 1))
    append(open_log(), 2)
    file_system.remove(f"{LOG_DIR}/{SnapshotId(5, 1).name}")
    with pytest.raises(LogCorrupt, match="begins at offset 5, and no snapshot has the records before it"):
        open_log()


def test_the_end_of_a_batch_that_was_torn_is_fetched_again(open_log, file_system):
    append(open_log(), 1, 1)
    file_system.files[f"{LOG_DIR}/{0:020}.log"].truncate(150)
    assert open_log().end_offset == 1


def test_a_copy_that_was_closed_opens_as_it_was(log, open_log, file_system):
    append(log, 1, 1, 3)
    log.close(now_ms=NOW_MS)
    data = file_system.read_bytes(f"{LOG_DIR}/{0:020}.log")
    log = open_log()
    assert (log.end_offset, log.last_fetched_epoch, log.high_watermark) == (3, 3, None)
    assert file_system.read_bytes(f"{LOG_DIR}/{0:020}.log") == data


def test_a_large_batch_is_left_now_and_then_while_it_is_read(log):
    records = [record for number in range(1000) for record in topic(number)]
    log.append_fetched(batch_of(records, 0, 1), leader_epoch=1, now_ms=NOW_MS)
    log.advance(1000)
    *pauses, batch = log.committed(0)
    assert batch.records == records
    assert len(pauses) > 10
    assert set(pauses) == {None}


def test_the_next_snapshot_is_of_what_was_applied(log):
    append(log, 1, 1, 4)
    log.applied_offset = 2
    assert log.next_snapshot_id == SnapshotId(2, 1)
    log.applied_offset = 3
    assert log.next_snapshot_id == SnapshotId(3, 4)
