"""Moving a log to another data directory: it has all of its records all the time, wherever the broker is killed."""

from uuid import uuid4

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.directories.log_move import LogMove
from odradek.storage.errors import MoveCancelled, TargetFailed
from odradek.storage.log.log_config import LogConfig
from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.model import DiskModel
from tests.controller.metadata.storage_doubles import Killed, MortalFileSystem
from tests.storage.support import NOW_MS, Warnings, append, batch, read
from tests.storage.test_data_directories import TOPIC_ID, A, B, FailingFileSystem, started

CONFIG = LogConfig(segment_bytes=1024, index_interval_bytes=1)


def filled(file_system, count=40):
    """A manager with a log in A that has several segments, and an idempotent producer."""
    manager = started(file_system, A, B)
    log = manager.create("t", 0, TOPIC_ID, CONFIG, now_ms=NOW_MS)
    for number in range(count):
        append(log, batch(value=b"%d" % number * 30, producer_id=7, producer_epoch=0, base_sequence=number))
    log.delete_records_before(2)
    return manager, log


def move_to(manager, log, path):
    return LogMove(manager, log, manager.directories.with_path(path))


def contents(log):
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read(log, offset)
        found.append(data)
        offset = int.from_bytes(data[:8], "big")
        for segment in log.segments:
            if segment.base_offset > offset:
                offset = segment.base_offset
                break
        else:
            return found
    return found


def counts(manager, directory):
    return manager.counts()[directory.identity.directory_id]


def moved(manager, log, path):
    move = move_to(manager, log, path)
    task = move.next_task()
    task.run()
    move.copied(task)
    return move.finish(NOW_MS)


def test_a_log_that_moves_is_the_same_elsewhere():
    file_system = FailingFileSystem()
    manager, log = filled(file_system)
    before = (contents(log), log.log_start_offset, log.log_end_offset, log.leader_epochs.entries, len(log.segments))
    new = moved(manager, log, B)
    assert (manager.logs["t", 0] is new, manager.home_of(new).path, log.is_closed) == (True, B, True)
    assert (contents(new), new.log_start_offset, new.log_end_offset, new.leader_epochs.entries, len(new.segments)) == before
    assert new.topic_id == TOPIC_ID
    manager.removed_logs.remove_all()
    assert [path for path in file_system.files if path.startswith(f"{A}/t-0")] == []


def test_a_log_that_has_moved_is_counted_where_it_is():
    manager, log = filled(FailingFileSystem())
    home, target = manager.home_of(log), manager.directories.with_path(B)
    assert (counts(manager, home), counts(manager, target)) == (1, 0)
    moved(manager, log, B)
    assert (counts(manager, home), counts(manager, target)) == (0, 1)


def test_what_is_appended_while_a_log_moves_moves_too():
    manager, log = filled(FailingFileSystem())
    move = move_to(manager, log, B)
    for number in range(3):
        task = move.next_task()
        task.run()
        move.copied(task)
        append(log, batch(5, value=b"x" * 100))
        assert (move.offset_lag, move.end_offset) == (5, 40 + 5 * number)
    assert move.copied_bytes == log.size_bytes - move.next_task().size_bytes
    new = move.finish(NOW_MS)
    assert (new.log_end_offset, append(new).first_offset) == (55, 55)


def test_a_log_that_is_copied_in_parts_is_the_same_elsewhere():
    manager, log = filled(FailingFileSystem())
    before, size_bytes = contents(log), log.size_bytes
    move = move_to(manager, log, B)
    parts = []
    while not parts or parts[-1].end_offset is None:
        assert move.end_offset == 2
        parts.append(move.next_task(700))
        parts[-1].run()
        move.copied(parts[-1])
    assert all(part.size_bytes == 700 for part in parts[:-1])
    assert sum(part.size_bytes for part in parts) == move.copied_bytes == size_bytes
    assert move.end_offset == 40
    assert contents(move.finish(NOW_MS)) == before


def test_a_producer_goes_on_with_its_sequence():
    manager, log = filled(FailingFileSystem())
    new = moved(manager, log, B)
    again = batch(value=b"39" * 30, producer_id=7, producer_epoch=0, base_sequence=39)
    assert append(new, again).duplicate
    with pytest.raises(KafkaError) as refusal:
        append(new, batch(producer_id=7, producer_epoch=0, base_sequence=50))
    assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_no_segment_goes_while_its_log_moves():
    manager, log = filled(FailingFileSystem())
    move = move_to(manager, log, B)
    task = move.next_task()
    log.config = LogConfig(segment_bytes=1024, retention_bytes=0)
    assert manager.retention.run(NOW_MS) == 0
    task.run()
    move.copied(task)
    move.finish(NOW_MS)
    assert manager.retention.run(NOW_MS) > 0


def test_a_move_that_is_given_up_leaves_the_log_alone_and_nothing_behind():
    file_system = FailingFileSystem()
    manager, log = filled(file_system)
    move = move_to(manager, log, B)
    move.next_task().run()
    task = move.next_task()
    move.is_cancelled = True
    with pytest.raises(MoveCancelled):
        task.run()
    move.abandon()
    manager.removed_logs.remove_all()
    assert not any(path.startswith(f"{B}/t-0") for path in file_system.files)
    assert append(log).first_offset == 40


def test_a_log_whose_end_is_cut_off_does_not_move_any_more():
    manager, log = filled(FailingFileSystem())
    move = move_to(manager, log, B)
    task = move.next_task()
    log.truncate_to(30, NOW_MS)
    with pytest.raises(MoveCancelled):
        task.run()
    with pytest.raises(MoveCancelled):
        move.next_task()


def test_a_target_that_cannot_be_written_is_told_from_a_log_that_cannot_be_read():
    file_system = FailingFileSystem()
    manager, log = filled(file_system)
    task = move_to(manager, log, B).next_task()
    file_system.failing = {B}
    with pytest.raises(TargetFailed):
        task.run()
    file_system.failing = {A}
    with pytest.raises(OSError, match="does not work"):
        task.run()


def whole(file_system):
    """Start anew; the log's bytes and end, and whether the move has to be done again."""
    manager = LogManager(file_system, A, B, node_id=1, new_uuid=uuid4, warn=Warnings())
    manager.start()
    manager.load_all(lambda _: CONFIG, now_ms=NOW_MS, topic_ids={("t", 0): TOPIC_ID})
    assert manager.offline == {}
    log = manager.logs["t", 0]
    found = (contents(log), log.log_start_offset, log.log_end_offset)
    home, unfinished = manager.home_of(log).path, [(key, directory.path) for key, directory in manager.unfinished_moves]
    left = {path.split("/")[2] for path in file_system.files if "/t-0" in path}
    manager.release()
    return found, home, unfinished, left


def test_wherever_a_broker_is_killed_the_log_is_whole_at_the_next_start():
    outcomes = set()
    for operations in range(500):
        file_system = MortalFileSystem()
        manager, log = filled(file_system)
        before = (contents(log), log.log_start_offset, log.log_end_offset)
        manager.checkpoints.write()
        file_system.operations_left = operations
        try:
            moved(manager, log, B)
            is_done = True
        except Killed:
            is_done = False
        file_system.operations_left = None
        manager.release()
        found, home, unfinished, left = whole(file_system)
        assert found == before, f"killed after {operations} operations"
        assert left == {"t-0"}
        assert unfinished in ([], [(("t", 0), B)])
        assert not (unfinished and home == B)
        outcomes.add((home, bool(unfinished)))
        if is_done:
            break
    assert is_done
    assert outcomes == {(A, False), (A, True), (B, False)}


def starts_after_losses(disk, begun):
    """The operation, what is left, and a manager that has not loaded it, for each loss of power from operation ``begun`` on."""
    model = DiskModel({}, [])
    for number, operation in enumerate(disk.operations):
        model.apply(operation)
        for left in states.after(model, operation) if number >= begun else ():
            files = {path: content for path, content in left.state.items() if content is not None}
            directories = [path for path, content in left.state.items() if content is None]
            yield operation, left, started(RecordingDisk(files, directories), A, B, load=False)


def test_wherever_the_power_goes_a_log_that_moves_away_and_back_is_whole():
    disk = RecordingDisk()
    manager, log = filled(disk, count=4)
    log.flush(NOW_MS)
    manager.checkpoints.write()
    begun, expected = len(disk.operations), contents(log)
    moved(manager, moved(manager, log, B), A)
    for _, left, found in starts_after_losses(disk, begun):
        found.load_all(lambda _: CONFIG, NOW_MS, {("t", 0): TOPIC_ID})
        assert found.logs.keys() == {("t", 0)}, left.what
        assert contents(found.logs["t", 0]) == expected, left.what


def test_wherever_the_power_goes_nothing_tells_of_records_that_were_never_synced_without_their_log():
    disk = RecordingDisk()
    manager, log = filled(disk, count=4)
    begun = len(disk.operations)
    moved(manager, log, B)
    homes = set()
    for operation, left, found in starts_after_losses(disk, begun):
        told = any(directory.records_of(("t", 0)) for directory in found.directories)
        found.load_all(lambda _: CONFIG, NOW_MS, {("t", 0): TOPIC_ID})
        assert found.logs or not told, (operation, left.what)
        homes.update(found.home_of(log).path for log in found.logs.values())
    assert homes == {A, B}


def test_a_copy_whose_log_is_in_a_directory_that_is_offline_is_left_alone():
    file_system = FailingFileSystem()
    manager, log = filled(file_system)
    target = B
    manager.shutdown(NOW_MS)
    manager = started(file_system, B, A, metadata_dir=B, load=False)
    manager.load_all(lambda _: CONFIG, now_ms=NOW_MS)
    log = manager.logs["t", 0]
    move = move_to(manager, log, target)
    move.next_task().run()
    manager.release()
    file_system.failing = {A}
    manager = started(file_system, B, A, metadata_dir=B)
    assert ("t", 0) not in manager.logs
    manager.release()
    file_system.failing = set()
    manager = started(file_system, B, A, metadata_dir=B)
    assert (manager.home_of(manager.logs["t", 0]).path, [key for key, _ in manager.unfinished_moves]) == (A, [("t", 0)])
