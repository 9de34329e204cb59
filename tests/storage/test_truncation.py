"""Cutting a log's end off: what is left, what was never there, and what the power leaves of it."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import iter_batches
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.log.log_config import LogConfig
from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.model import DiskModel
from tests.cases import each_case
from tests.memory_filesystem import MemoryFile, MemoryFileSystem
from tests.storage.replication import ACTIONS, SMALL, Leader, content, fetch, known_of
from tests.storage.support import NOW_MS, Warnings, append, batch, names, open_log, read

SEGMENTS = LogConfig(segment_bytes=3 * len(batch(2)))
TOPIC_ID = UUID(int=7)


def filled(count=10, *, config=SEGMENTS, **options):
    """A log of ``count`` batches of two records, three in a segment."""
    log = open_log(config=config, **options)
    for number in range(count):
        append(log, batch(2, timestamp=NOW_MS + number), leader_epoch=number // 4)
    return log


def boundaries(log):
    """The offsets at which batches begin, and the log end offset."""
    return [header.base_offset for _, header in iter_batches(content(log))] + [log.log_end_offset]


@settings(deadline=None)
@given(
    shared=st.lists(ACTIONS, min_size=1, max_size=30),
    diverged=st.lists(ACTIONS, max_size=20),
    later=st.lists(ACTIONS, max_size=20),
    within=st.integers(0, 3),
    clean=st.sampled_from([None, True, False]),
)
def test_a_log_that_was_truncated_and_caught_up_has_never_diverged(shared, diverged, later, within, clean):
    log, stale, mirror = (open_log(config=SMALL) for _ in range(3))
    leader = Leader(log)
    for action in shared:
        leader.do(*action)
    fetch(log, stale)
    fetch(log, mirror)
    end_offset = log.log_end_offset
    other = Leader(stale, epoch=leader.epoch, sequences=leader.sequences)
    for action in diverged:
        other.do(*action)
    leader.epoch = other.epoch + 1
    for action in later:
        leader.do(*action)
    fetch(log, mirror)
    after = [offset for offset in boundaries(stale) if offset > end_offset]
    # Within the first batch that is to go: that goes whole.
    target = min(end_offset + within, after[0] - 1) if after else end_offset
    assert stale.truncate_to(target, NOW_MS) == bool(after)
    if clean is not None:
        recovery_point = stale.recovery_point
        stale.close(clean=clean, now_ms=NOW_MS)
        stale = open_log(stale.file_system, config=SMALL, clean=clean, recovery_point=recovery_point)
    assert stale.log_end_offset == end_offset
    fetch(log, stale)
    assert known_of(stale) == known_of(mirror) == known_of(log)


@each_case("offset", range(21))
def test_a_log_ends_in_front_of_the_batch_that_holds_the_offset(offset):
    log = filled()
    before = content(log)
    assert log.truncate_to(offset, NOW_MS) == (offset < 20)
    end_offset = offset - offset % 2
    assert (log.log_start_offset, log.log_end_offset) == (0, end_offset)
    assert content(log) == before[: end_offset // 2 * len(batch(2))]
    assert log.leader_epochs.entries == tuple(entry for entry in ((0, 0), (1, 8), (2, 16)) if entry[1] < end_offset)
    if end_offset:
        assert log.max_timestamp_offset().timestamp == NOW_MS + end_offset // 2 - 1


def test_nothing_is_done_where_the_log_ends_already():
    log = filled()
    assert [log.truncate_to(offset, NOW_MS) for offset in (20, 25)] == [False, False]
    assert (log.log_end_offset, log.truncations) == (20, 0)


def test_an_epoch_without_records_is_forgotten_where_the_log_ends_already():
    log = filled()
    log.leader_epochs.assign(7, 20)
    assert not log.truncate_to(20, NOW_MS)
    assert log.leader_epochs.entries == ((0, 0), (1, 8), (2, 16))


def test_the_files_of_what_is_cut_off_are_given_away():
    log = filled()
    asked = []
    log.retention.removal.remove_later = lambda paths, delay_ms: asked.append((paths, delay_ms))
    log.truncate_to(7, NOW_MS)
    assert [name for name in names(log.file_system) if name.endswith(".log")] == [f"{base:020d}.log" for base in (0, 6)]
    assert {path.rpartition("/")[2][:20] for paths, _ in asked for path in paths} == {f"{base:020d}" for base in (12, 18)}
    assert {delay_ms for _, delay_ms in asked} == {log.config.file_delete_delay_ms}


def test_offsets_on_disk_and_in_readers_sight_are_moved_back_with_the_end():
    log = filled(config=LogConfig(segment_bytes=SEGMENTS.segment_bytes, flush_messages=1))
    log.flush_state.on_flush_due = lambda _: None
    append(log, batch(2))
    assert (log.flush_state.readable_offset, log.log_end_offset) == (20, 22)
    log.truncate_to(8, NOW_MS)
    assert (log.recovery_point, log.flushed_offset, log.flush_state.readable_offset, log.awaits_flush) == (8, 8, 8, False)


def test_a_sync_that_began_before_the_truncation_counts_for_nothing():
    log = filled()
    task = log.flush_state.commit_task()
    log.truncate_to(8, NOW_MS)
    append(log, batch(2))
    task.run()
    log.flush_state.flushed(task, NOW_MS)
    assert log.flushed_offset == 0


def test_a_fetch_that_had_read_everything_finds_what_is_appended_instead():
    log = filled(2, config=LogConfig())
    assert read(log, 4) is None
    log.truncate_to(2, NOW_MS)
    append(log, batch(2, value=b"a longer value than the one before"))
    append(log, batch(2))
    assert read(log, 4) == content(log)[-len(batch(2)) :]


def test_an_offset_in_front_of_the_first_segment_leaves_an_empty_log_there():
    log = open_log(config=SEGMENTS, log_start_offset=30)
    for _ in range(5):
        append(log, batch(2))
    assert log.truncate_to(12, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (12, 12, 0)


@each_case("offset", [0, 5, 12, 20, 500])
def test_a_log_begins_again_at_any_offset_with_nothing_of_before(offset):
    log = filled()
    append(log, batch(2, producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=3)
    log.truncate_fully_and_start_at(offset, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (offset, offset, 0)
    assert (log.leader_epochs.entries, log.producers.by_id, log.first_unstable_offset) == ((), {}, None)
    append(log, batch(2), leader_epoch=5)
    log.close(clean=True, now_ms=NOW_MS)
    again = open_log(log.file_system, config=SEGMENTS, clean=True, recovery_point=offset + 2, log_start_offset=offset)
    assert (again.log_start_offset, again.log_end_offset, again.leader_epochs.entries) == (offset, offset + 2, ((5, offset),))


@pytest.mark.parametrize("operation", ["truncate_to", "truncate_fully_and_start_at"])
def test_a_negative_offset_is_refused(operation):
    log = filled()
    with pytest.raises(ValueError, match="-1"):
        getattr(log, operation)(-1, NOW_MS)
    assert log.log_end_offset == 20


def test_after_an_error_half_way_the_log_is_out_of_service_and_the_next_start_has_it(monkeypatch):
    log = filled()

    def refuse(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(type(log.segments.active.file), "truncate", refuse)
        with pytest.raises(KafkaError) as refusal:
            log.truncate_to(7, NOW_MS)
    assert (refusal.value.code, log.has_lost_sync) == (ErrorCode.KAFKA_STORAGE_ERROR, True)
    with pytest.raises(KafkaError):
        append(log)
    assert open_log(log.file_system, config=SEGMENTS).log_end_offset == 12


# ------------------------------------------------------------------------------------------------------------- crashes


def managed(file_system, *, warn=None):
    manager = LogManager(file_system, "/data", node_id=1, new_uuid=uuid4, warn=warn or Warnings())
    manager.start()
    return manager


EPOCHS = ((0, 0), (1, 8), (2, 16), (3, 20))


def _recorded():
    """(a manager on a disk that writes everything down, its log, synced and written to the checkpoints, the disk's model)."""
    disk = RecordingDisk({}, ["/data"])
    manager = managed(disk)
    log = manager.create("t", 0, TOPIC_ID, SEGMENTS, now_ms=NOW_MS)
    for number in range(11):
        append(log, batch(2, timestamp=NOW_MS + number), leader_epoch=3 if number == 10 else number // 4)
        if number == 8:
            log.flush(NOW_MS)
            manager.checkpoints.write()
    model = DiskModel({}, ["/data"])
    for operation in disk.operations:
        model.apply(operation)
    disk.operations.clear()
    return disk, manager, log, model


def _found(state):
    """The log that a start finds in ``state``."""
    files = MemoryFileSystem()
    for path, data in state.items():
        if data is None:
            files.make_dirs(path)
        else:
            files.files[path] = MemoryFile()
            files.files[path].data += data
    manager = managed(files)
    manager.load_all(lambda _: SEGMENTS, NOW_MS, {("t", 0): TOPIC_ID})
    assert not manager.offline
    return manager.logs["t", 0]


def _logs_found(disk, model):
    """What each state is that a crash or a loss of power may leave, and the log that a start finds there."""
    seen = set()
    for operation in disk.operations:
        model.apply(operation)
        for left in [*states.after(model, operation), *states.between(model)]:
            key = hash(frozenset(left.state.items()))
            if key not in seen:
                seen.add(key)
                yield left.what, _found(left.state)


@pytest.mark.parametrize("offset", [0, 6, 8, 15, 19])
def test_a_truncation_that_is_interrupted_leaves_a_beginning_of_the_log(offset):
    disk, _, log, model = _recorded()
    before = content(log)
    log.truncate_to(offset, NOW_MS)
    looked_at = 0
    for what, found in _logs_found(disk, model):
        looked_at += 1
        assert before.startswith(content(found)), what
        # What was synced of what stays is there.
        assert min(log.log_end_offset, 18) <= found.log_end_offset <= 22, what
        assert found.leader_epochs.entries == tuple(entry for entry in EPOCHS if entry[1] < found.log_end_offset)
    assert looked_at > 10


@pytest.mark.parametrize(("offset", "epoch"), [(0, 9), (8, 2), (15, 9), (20, 2)])
def test_what_another_leader_has_is_never_mixed_with_what_was_cut_off(offset, epoch):
    disk, manager, log, model = _recorded()
    before = content(log)
    log.truncate_to(offset, NOW_MS)
    for number in range(8):
        append(log, batch(1, value=b"of another leader", timestamp=NOW_MS + 50 + number), leader_epoch=epoch)
        if number == 4:
            log.flush(NOW_MS)
            manager.checkpoints.write()
    after = content(log)
    for what, found in _logs_found(disk, model):
        assert before.startswith(content(found)) or after.startswith(content(found)), what
        first_of_other = offset - offset % 2
        is_other = found.log_end_offset > first_of_other and b"of another leader" in content(found)
        known = tuple(entry for entry in EPOCHS if entry[1] < (first_of_other if is_other else found.log_end_offset))
        begun = ((epoch, first_of_other),) if is_other and epoch not in dict(known) else ()
        assert found.leader_epochs.entries == known + begun, what


@pytest.mark.parametrize("offset", [0, 9, 22, 1000])
def test_a_log_that_begins_again_can_be_opened_wherever_it_is_interrupted(offset):
    disk, manager, log, model = _recorded()
    before = content(log)
    log.truncate_fully_and_start_at(offset, NOW_MS)
    manager.checkpoints.write()
    append(log, batch(1, value=b"of another leader"), leader_epoch=9)
    log.flush(NOW_MS)
    manager.checkpoints.write()
    after = content(log)
    for what, found in _logs_found(disk, model):
        assert before.startswith(content(found)) or after.startswith(content(found)), what
    assert (found.log_start_offset, found.log_end_offset) == (offset, offset + 1)


def test_producers_of_what_was_cut_off_do_not_come_back():
    disk, manager, log, model = _recorded()
    log.truncate_to(20, NOW_MS)
    append(log, batch(2, producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=3)
    log.write_out()
    log.flush(NOW_MS)
    for operation in disk.operations:
        model.apply(operation)
    disk.operations.clear()
    log.truncate_to(20, NOW_MS)
    append(log, batch(2, producer_id=8, producer_epoch=0, base_sequence=0), leader_epoch=2)
    append(log, batch(1), leader_epoch=2)
    log.flush(NOW_MS)
    manager.checkpoints.write()
    after = content(log)
    found_after = 0
    for what, found in _logs_found(disk, model):
        if content(found) == after:
            found_after += 1
            assert set(found.producers.by_id) == {8}, what
    assert found_after
