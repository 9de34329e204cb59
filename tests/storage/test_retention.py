"""Which segments go, why, and what is left behind: of one log and its manager, at a time that the test says."""

from uuid import uuid4

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_truncation import LogRetention
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, Warnings, append, batch, names, open_log, read

HOUR_MS = 3_600_000
SIZE = len(batch())
# One batch of support's a segment.
ONE_EACH = {"segment_bytes": SIZE + 10, "message_timestamp_after_max_ms": 100 * HOUR_MS}


def filled(count=4, *, step_ms=HOUR_MS, **config):
    """A log of ``count`` segments with one record each, ``step_ms`` apart, the first one from NOW_MS."""
    log = open_log(config=LogConfig(**ONE_EACH, **config))
    for number in range(count):
        append(log, batch(timestamp=NOW_MS + number * step_ms))
    return log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def retain(log, now_ms):
    log.retention.release_old_segments(now_ms)
    return bases(log)


def test_segments_go_when_their_newest_record_is_older_than_retention_ms():
    log = filled(retention_ms=HOUR_MS)
    assert retain(log, NOW_MS + HOUR_MS) == [0, 1, 2, 3]
    assert retain(log, NOW_MS + HOUR_MS + 1) == [1, 2, 3]
    assert log.log_start_offset == 1


@each_case(("replicated_offset", "left"), [(0, [0, 1, 2, 3]), (2, [2, 3]), (3, [3]), (4, [4]), (None, [4])])
def test_what_followers_do_not_have_yet_stays_whatever_its_age(replicated_offset, left):
    log = filled(retention_ms=HOUR_MS)
    log.retention.release_old_segments(NOW_MS + 100 * HOUR_MS, replicated_offset)
    assert bases(log) == left


def test_the_check_of_all_logs_asks_how_far_each_is_replicated():
    managed = Managed(retention_ms=HOUR_MS)
    managed.manager.checkpoints.high_watermark_of = {managed.log.topic_partition: 1}.get
    managed.manager.retention.run(NOW_MS + 100 * HOUR_MS)
    assert bases(managed.log) == [1, 2, 3]


def test_the_largest_timestamp_of_a_segment_counts_not_the_last():
    log = open_log(config=LogConfig(**ONE_EACH | {"segment_bytes": 2 * SIZE}, retention_ms=HOUR_MS))
    for timestamp in (NOW_MS + 5 * HOUR_MS, NOW_MS, NOW_MS, NOW_MS):
        append(log, batch(timestamp=timestamp), now_ms=NOW_MS + 5 * HOUR_MS)
    assert retain(log, NOW_MS + 6 * HOUR_MS) == [0, 2]


def test_a_timestamp_in_the_future_keeps_its_segment_and_those_behind_it():
    log = open_log(config=LogConfig(**ONE_EACH, retention_ms=HOUR_MS))
    for timestamp in (NOW_MS + HOUR_MS, NOW_MS - 100 * HOUR_MS, NOW_MS):
        append(log, batch(timestamp=timestamp))
    assert retain(log, NOW_MS + 2 * HOUR_MS) == [0, 1, 2]
    assert retain(log, NOW_MS + 2 * HOUR_MS + 1) == [3]


def test_the_active_segment_is_rolled_where_it_goes_too():
    log = filled(retention_ms=HOUR_MS)
    assert retain(log, NOW_MS + 5 * HOUR_MS) == [4]
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    append(log)
    assert read(log, 4)


def test_an_empty_active_segment_stays():
    log = open_log(config=LogConfig(retention_ms=0, retention_bytes=0))
    assert retain(log, NOW_MS + HOUR_MS) == [0]


@pytest.mark.parametrize("config", [{"retention_ms": -1}, {"cleanup_policy": ("compact",)}, {"cleanup_policy": ()}])
def test_nothing_goes_by_age_where_retention_ms_is_none_or_the_policy_is_not_delete(config):
    log = open_log(config=LogConfig(**ONE_EACH, **config))
    for _ in range(3):
        append(log, batch(key=b"k"))
    assert retain(log, NOW_MS + 100_000 * HOUR_MS) == [0, 1, 2]


def test_compact_and_delete_deletes():
    log = open_log(config=LogConfig(**ONE_EACH, retention_ms=0, cleanup_policy=("compact", "delete")))
    append(log, batch(key=b"k"))
    append(log, batch(key=b"k"))
    assert retain(log, NOW_MS + 1) == [2]


@each_case(
    ("retention_bytes", "left"),
    [
        (4 * SIZE, [0, 1, 2, 3]),
        (4 * SIZE - 1, [0, 1, 2, 3]),
        (3 * SIZE, [1, 2, 3]),
        (SIZE - 1, [3]),
        (0, [4]),
        (-1, [0, 1, 2, 3]),
    ],
)
def test_segments_go_while_the_log_has_retention_bytes_without_them(retention_bytes, left):
    log = filled(retention_ms=-1, retention_bytes=retention_bytes)
    assert retain(log, NOW_MS) == left


def test_segments_below_the_log_start_go_whatever_the_policy():
    log = filled(cleanup_policy=())
    log.delete_records_before(2)
    assert retain(log, NOW_MS) == [2, 3]
    log.delete_records_before(4)
    assert retain(log, NOW_MS) == [3]


def test_the_log_start_does_not_go_back_to_a_segments_first_offset():
    log = open_log(config=LogConfig(segment_bytes=2 * SIZE, retention_ms=-1))
    for _ in range(4):
        append(log)
    log.delete_records_before(3)
    assert retain(log, NOW_MS) == [2]
    assert log.log_start_offset == 3


def test_records_without_a_timestamp_count_from_the_next_segments_beginning():
    log = open_log(config=LogConfig(**ONE_EACH, retention_ms=HOUR_MS))
    for hour in (0, 1, 2):
        append(log, batch(timestamp=-1), now_ms=NOW_MS + hour * HOUR_MS)
    assert retain(log, NOW_MS + 2 * HOUR_MS) == [0, 1, 2]
    assert retain(log, NOW_MS + 2 * HOUR_MS + 1) == [1, 2]
    assert retain(log, NOW_MS + 100 * HOUR_MS) == [2]


def test_after_a_restart_the_ages_are_the_same():
    log = filled(retention_ms=HOUR_MS)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(log.file_system, config=log.config, clean=True, now_ms=NOW_MS + 3 * HOUR_MS)
    assert retain(again, NOW_MS + 3 * HOUR_MS) == [2, 3]


def test_a_log_that_is_being_cleaned_loses_nothing_meanwhile():
    log = filled(retention_ms=0)
    log.is_being_cleaned = True
    assert retain(log, NOW_MS + 9 * HOUR_MS) == [0, 1, 2, 3]


def test_a_new_config_counts_from_the_next_check_on():
    log = filled(retention_ms=-1)
    assert retain(log, NOW_MS + 9 * HOUR_MS) == [0, 1, 2, 3]
    log.config = LogConfig(**ONE_EACH, retention_ms=7 * HOUR_MS)
    assert retain(log, NOW_MS + 9 * HOUR_MS) == [2, 3]


def test_what_is_gone_is_out_of_range_and_what_was_found_can_still_be_read():
    log = filled(retention_ms=HOUR_MS)
    found = log.read(0, 1 << 20, upper_offset=4, min_one_batch=True)
    before = found.read()
    retain(log, NOW_MS + 2 * HOUR_MS + 1)
    with pytest.raises(KafkaError) as raised:
        read(log, 1)
    assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(log, 2)
    assert found.read() == before


def test_leader_epochs_begin_with_the_log():
    log = open_log(config=LogConfig(**ONE_EACH, retention_ms=HOUR_MS))
    for number in range(4):
        append(log, batch(timestamp=NOW_MS + number * HOUR_MS), leader_epoch=number // 2)
    retain(log, NOW_MS + 2 * HOUR_MS + 1)
    assert log.leader_epochs.entries == ((1, 2),)
    assert log.end_offset_for_epoch(0) == (0, 2)


def test_producers_outlive_their_records_and_a_restart():
    log = open_log(config=LogConfig(**ONE_EACH, retention_ms=0, retention_bytes=0))
    append(log, batch(producer_id=7, producer_epoch=3, base_sequence=0))
    append(log, batch(producer_id=7, producer_epoch=3, base_sequence=1))
    assert retain(log, NOW_MS + HOUR_MS) == [2]
    for clean in (False, True):
        log.close(clean=clean, now_ms=NOW_MS)
        log = open_log(log.file_system, config=log.config, log_start_offset=2, clean=clean)
        with pytest.raises(KafkaError) as raised:
            append(log, batch(producer_id=7, producer_epoch=2, base_sequence=2))
        assert raised.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert append(log, batch(producer_id=7, producer_epoch=3, base_sequence=1)).duplicate


def test_producers_outlive_records_that_were_deleted_up_to_the_end():
    log = open_log()
    append(log, batch(producer_id=7, producer_epoch=3, base_sequence=0))
    log.delete_records_before(1)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(log.file_system, log_start_offset=1, clean=True)
    assert append(again, batch(producer_id=7, producer_epoch=3, base_sequence=0)).duplicate


class Managed:
    """A manager with one log whose segments are one batch each; ``removed_later`` are the files it gave away, and the delay."""

    def __init__(self, count=4, **config):
        self.files = MemoryFileSystem()
        self.warn = Warnings()
        self.config = LogConfig(**ONE_EACH, **config)
        self.removed_later = []
        self.manager = self.start()
        self.log = self.manager.create("t", 0, uuid4(), self.config, now_ms=NOW_MS)
        for number in range(count):
            append(self.log, batch(timestamp=NOW_MS + number * HOUR_MS))

    def start(self):
        manager = LogManager(self.files, "/data", node_id=1, new_uuid=uuid4, warn=self.warn)
        manager.start()
        manager.removal.remove_later = lambda paths, delay_ms: self.removed_later.append((paths, delay_ms))
        manager.load_all(lambda _: self.config, now_ms=NOW_MS)
        return manager

    def crash(self):
        self.manager.release()
        self.manager = self.start()
        self.log = self.manager.logs["t", 0]

    def of_segment(self, offset):
        return [name for name in names(self.files, "/data/t-0") if name.startswith(f"{offset:020d}.")]


def test_files_are_renamed_at_once_and_given_away_to_be_removed_after_the_delay():
    managed = Managed(retention_ms=0, file_delete_delay_ms=5000)
    assert managed.manager.retention.run(NOW_MS + 1) == 1
    renamed = managed.of_segment(0)
    assert renamed == [f"{0:020d}.{kind}.deleted" for kind in ("index", "log", "timeindex")]
    ((paths, delay_ms),) = managed.removed_later
    assert sorted(paths) == [f"/data/t-0/{name}" for name in renamed]
    assert delay_ms == 5000
    managed.manager.removal.remove_files(paths)
    assert managed.of_segment(0) == []


def test_what_goes_with_its_directory_need_not_be_removed_again():
    managed = Managed(retention_ms=0)
    managed.manager.retention.run(NOW_MS + 1)
    managed.manager.delete("t", 0)
    managed.manager.removed_logs.remove_all()
    managed.manager.removal.remove_files(managed.removed_later[0][0])


def test_the_new_start_is_on_disk_before_a_file_is_renamed(monkeypatch):
    managed = Managed(retention_ms=0)
    checkpoint = "/data/log-start-offset-checkpoint"
    seen = []
    rename = managed.files.rename

    def watched(source, target):
        seen.append(managed.files.exists(checkpoint) and managed.files.read_bytes(checkpoint))
        rename(source, target)

    monkeypatch.setattr(managed.files, "rename", watched)
    managed.manager.retention.run(NOW_MS + HOUR_MS + 1)
    assert {content.splitlines()[-1] for content in seen} == {b"t 0 2"}


def test_segments_go_though_no_checkpoint_can_be_written_each_for_good(monkeypatch):
    managed = Managed(retention_ms=0)
    events = []
    rename, sync_dir = managed.files.rename, managed.files.sync_dir

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(managed.files, "write_atomic", refuse)
    monkeypatch.setattr(managed.files, "rename", lambda *paths: (events.append(paths[0][-24:-4]), rename(*paths)))
    monkeypatch.setattr(managed.files, "sync_dir", lambda path: (events.append(path), sync_dir(path)))
    assert managed.manager.retention.run(NOW_MS + HOUR_MS + 1) == 2
    assert events.index("/data/t-0") < events.index(f"{1:020d}")
    assert len(managed.removed_later[0][0]) == 6


def test_a_log_whose_files_cannot_be_renamed_is_rid_of_them_at_the_next_start(monkeypatch):
    managed = Managed(retention_ms=0)
    with monkeypatch.context() as patch:
        patch.setattr(managed.files, "rename", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        managed.manager.retention.run(NOW_MS + 1)
    assert managed.warn.fields("old segments stay until the next start")
    managed.crash()
    assert managed.of_segment(0) == []
    assert (managed.log.log_start_offset, managed.log.log_end_offset) == (1, 4)


@pytest.mark.parametrize("step", range(8))
def test_a_kill_at_any_step_of_a_deletion_is_finished_or_undone_by_the_next_start(monkeypatch, step):
    managed = Managed(retention_ms=0)
    kept = [read(managed.log, offset) for offset in range(4)]
    steps = iter(range(100))

    class Killed(BaseException):
        pass

    def counted(call):
        def run(*arguments, **options):
            if next(steps) == step:
                raise Killed
            return call(*arguments, **options)

        return run

    with monkeypatch.context() as patch:
        for name in ("rename", "write_atomic"):
            patch.setattr(managed.files, name, counted(getattr(managed.files, name)))
        with pytest.raises(Killed):
            managed.manager.retention.run(NOW_MS + HOUR_MS + 1)
    managed.crash()
    log = managed.log
    assert not managed.manager.offline
    assert log.log_start_offset in (0, 2)
    assert [read(log, offset) for offset in range(log.log_start_offset, 4)] == kept[log.log_start_offset :]
    left = {int(name[:20]) for name in names(managed.files, "/data/t-0") if name[:20].isdecimal() and "snapshot" not in name}
    assert left == {segment.base_offset for segment in log.segments}
    # The leader epochs are ahead of the checkpoint file for a moment: then the log starts where they do, and the files stay.
    assert min(left) in (log.log_start_offset, 0)
    assert not [name for name in names(managed.files, "/data/t-0") if name.endswith(".deleted")]


def test_a_hole_that_power_loss_left_below_the_log_start_is_no_corruption():
    managed = Managed(retention_ms=0)
    managed.manager.retention.run(NOW_MS + HOUR_MS + 1)
    # The rename of the older one did not outlive the machine, that of the younger one did.
    for name in managed.of_segment(0):
        managed.files.rename(f"/data/t-0/{name}", f"/data/t-0/{name.removesuffix('.deleted')}")
    managed.crash()
    assert not managed.manager.offline
    assert bases(managed.log) == [2, 3]


@pytest.mark.interpreted
def test_a_log_that_fails_holds_up_no_other(monkeypatch):
    managed = Managed(retention_ms=0)
    other = managed.manager.create("u", 0, uuid4(), managed.config, now_ms=NOW_MS)
    append(other)
    append(other)
    release = LogRetention.release_old_segments

    def fail(retention, now_ms, replicated_offset):
        if retention is managed.log.retention:
            raise OSError(5, "Input/output error")
        return release(retention, now_ms, replicated_offset)

    monkeypatch.setattr(LogRetention, "release_old_segments", fail)
    assert managed.manager.retention.run(NOW_MS + 1) == 2
    assert managed.warn.fields("cannot delete old segments")


def test_a_check_of_many_logs_is_made_in_steps_and_its_starts_are_written_once(monkeypatch):
    managed = Managed(retention_ms=0)
    for number in range(1, 50):
        append(managed.manager.create("t", number, uuid4(), managed.config, now_ms=NOW_MS))
    written = []
    write_start_offsets = managed.manager.checkpoints.write_start_offsets
    monkeypatch.setattr(managed.manager.checkpoints, "write_start_offsets", lambda: (written.append(1), write_start_offsets()))
    steps = list(managed.manager.retention.steps(NOW_MS + 1))
    assert (sum(steps), len(written), max(steps) <= 8) == (50, 1, True)


def test_a_log_that_takes_the_place_of_a_deleted_one_loses_no_file_to_it():
    managed = Managed(retention_ms=0)
    for number in range(1, 20):
        append(managed.manager.create("t", number, uuid4(), managed.config, now_ms=NOW_MS))
    steps = managed.manager.retention.steps(NOW_MS + 1)
    next(steps)
    managed.manager.delete("t", 0)
    log = managed.manager.create("t", 0, uuid4(), managed.config, now_ms=NOW_MS)
    append(log)
    list(steps)
    assert read(log, 0)
    assert f"{0:020d}.log" in managed.of_segment(0)


def test_of_a_log_that_lost_all_its_segments_only_the_name_of_the_new_one_is_synced_once():
    managed = Managed(retention_ms=0)
    managed.manager.retention.run(NOW_MS + 9 * HOUR_MS)
    ((log, task),) = managed.manager.flusher.tasks(NOW_MS)
    before = log.recovery_point
    task.run()
    managed.manager.flusher.finished(log, task, None, NOW_MS)
    assert (task.files, task.directories[0]) == ((), "/data/t-0")
    assert (before, log.recovery_point, list(managed.manager.flusher.tasks(NOW_MS))) == (0, 4, [])


def test_an_old_segment_that_a_loss_of_power_brings_back_torn_is_no_damage():
    managed = Managed(retention_ms=0)
    managed.manager.retention.run(NOW_MS + 9 * HOUR_MS)
    managed.manager.checkpoints.write()
    # Nothing of the log's directory was synced but the name of its first segment, and of that only the first bytes.
    for name in names(managed.files, "/data/t-0"):
        if name.endswith(".log.deleted") and name.startswith(f"{0:020d}."):
            managed.files.rename(f"/data/t-0/{name}", f"/data/t-0/{name.removesuffix('.deleted')}")
        elif name[:20].isdecimal():
            managed.files.remove(f"/data/t-0/{name}")
    managed.files.files[f"/data/t-0/{0:020d}.log"].truncate(50)
    managed.crash()
    assert not managed.manager.offline
    assert (managed.log.log_start_offset, managed.log.log_end_offset) == (4, 4)
    assert managed.warn.fields("log ends before its start offset, starting it again")


def test_no_file_of_a_removed_segment_is_kept_open():
    log = filled(retention_ms=HOUR_MS)
    removed = log.retention.release_old_segments(NOW_MS + 2 * HOUR_MS + 1)
    files = [segment.file for segment in removed]
    log.retention.removal.set_aside(log.directory, removed, delay_ms=0)
    assert [segment._file for segment in removed] == [None] * len(files) == [None, None]
