"""What a loss of power leaves of a log that was not synced, and what only looks like it."""

import errno
from uuid import UUID, uuid4

import pytest

from odradek.protocol.errors import KafkaError
from odradek.protocol.record_batch import iter_batches
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.errors import InconsistentDataDirectory, LogCorrupt
from odradek.storage.log.log_config import LogConfig
from tests.campaigns.power_loss import states
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.model import DiskModel
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import DIRECTORY, NOW_MS, Warnings, append, batch, names, open_log, read
from tests.storage.transactional import SMALL_SEGMENTS, end, send, state_of, with_history

LARGE = batch(value=b"v" * 200)
SEGMENTS = LogConfig(segment_bytes=2 * len(LARGE), index_interval_bytes=1)


def filled(config=None, count=7):
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=config)
    for _ in range(count):
        append(log, LARGE)
    log.close(clean=False, now_ms=NOW_MS)
    return file_system


def log_file(file_system, base_offset=0):
    return file_system.files[f"{DIRECTORY}/{base_offset:020d}.log"]


def offsets(log):
    data = b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)
    return [header.base_offset for _, header in iter_batches(data)]


@pytest.mark.parametrize("left", [0, 1, len(LARGE), len(LARGE) + 1, 2 * len(LARGE) - 1])
def test_a_segment_that_lost_its_end_ends_the_log_there_and_the_segments_behind_it_go(left):
    file_system = filled(SEGMENTS)
    log_file(file_system, 2).truncate(left)
    warnings = Warnings()
    log = open_log(file_system, config=SEGMENTS, recovery_point=2, warn=warnings)
    whole = 2 + left // len(LARGE)
    assert (offsets(log), log.log_end_offset) == ([*range(whole)], whole)
    (fields,) = warnings.fields("segments after a lost end removed")
    assert (fields["next_offset"], fields["removed_bytes"]) == (whole, 3 * len(LARGE))
    assert append(log, LARGE).first_offset == whole
    assert not [name for name in names(file_system) if name.startswith(("00000000000000000004", "00000000000000000006"))]


def test_segments_that_were_removed_do_not_come_back_behind_what_took_their_place():
    disk = RecordingDisk(directories=["/data", DIRECTORY])
    log = open_log(disk, config=SEGMENTS)
    for _ in range(3):
        append(log, LARGE)
    log.close(clean=False, now_ms=NOW_MS)
    disk.sync_dir(DIRECTORY)
    disk.open(f"{DIRECTORY}/{0:020d}.log").truncate(len(LARGE))
    begun = len(disk.operations)
    append(open_log(disk, config=SEGMENTS), batch(3))
    model = DiskModel({}, ["/data", DIRECTORY])
    ends = set()
    for number, operation in enumerate(disk.operations):
        model.apply(operation)
        for left in states.after(model, operation) if number >= begun else ():
            files = {path: content for path, content in left.state.items() if content is not None}
            ends.add(open_log(RecordingDisk(files, ["/data", DIRECTORY]), config=SEGMENTS).log_end_offset)
    assert ends == {0, 1, 4}


@pytest.mark.parametrize("kept", [".index", ".timeindex"])
def test_no_index_of_a_segment_that_lost_all_its_records_tells_of_those_that_come_after(kept):
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=SEGMENTS)
    for number in range(3):
        append(log, batch(timestamp=NOW_MS + number))
    log.flush(NOW_MS)
    log.close(clean=False, now_ms=NOW_MS)
    for suffix in {".log", ".index", ".timeindex"} - {kept}:
        file_system.files[f"{DIRECTORY}/{0:020d}{suffix}"].truncate(0)
    log = open_log(file_system, config=SEGMENTS)
    for number in range(3):
        append(log, batch(timestamp=NOW_MS + 100 + number))
    assert [log.offset_for_timestamp(NOW_MS + 100 + number).offset for number in range(3)] == [0, 1, 2]
    assert log.offset_for_timestamp(NOW_MS).offset == 0
    assert all(read(log, offset) for offset in range(3))


def test_a_segment_that_lost_its_end_below_the_recovery_point_is_damage():
    file_system = filled(SEGMENTS)
    log_file(file_system, 2).truncate(len(LARGE))
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=SEGMENTS, recovery_point=4)


def test_aborted_transactions_that_an_index_has_are_not_written_again_and_are_synced_with_the_next_flush():
    file_system, log = with_history(SMALL_SEGMENTS)
    log.close(clean=False, now_ms=NOW_MS)
    files = {path: bytes(file.data) for path, file in file_system.files.items() if "snapshot" not in path}
    disk = RecordingDisk(files)
    again = open_log(disk, config=SMALL_SEGMENTS)
    indexes = {path for path in files if path.endswith(".txnindex")}
    assert len(indexes) > 2
    assert not {operation.path for operation in disk.operations} & indexes
    assert indexes <= {index.file.path for index in again.flush_state.flush_task().indexes}
    assert state_of(again) == state_of(log)


@pytest.mark.parametrize("left", [0, 1, len(LARGE) + 1])
def test_what_is_torn_below_a_start_that_the_recovery_point_went_along_with_is_no_damage(left):
    file_system = filled(SEGMENTS, count=2)
    log_file(file_system).truncate(left)
    log = open_log(file_system, config=SEGMENTS, recovery_point=6, log_start_offset=7)
    assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (7, 7, [])
    assert append(log, LARGE).first_offset == 7


def test_what_is_torn_below_a_start_is_damage_where_a_good_batch_lies_behind_it():
    file_system = filled()
    log_file(file_system).data[len(LARGE) + 10] ^= 1
    with pytest.raises(LogCorrupt):
        open_log(file_system, recovery_point=3, log_start_offset=4)


@pytest.mark.parametrize("sector", [0, 1, 2])
def test_a_block_of_zeros_ends_the_log_whatever_lies_behind_it(sector):
    file_system = filled()
    log_file(file_system).data[sector * 512 : (sector + 1) * 512] = bytes(512)
    warnings = Warnings()
    log = open_log(file_system, warn=warnings)
    whole = sector * 512 // len(LARGE)
    assert offsets(log) == [*range(whole)]
    assert warnings.fields("torn tail truncated")[0]["truncated_bytes"] == (7 - whole) * len(LARGE)
    assert append(log, LARGE).first_offset == whole


def test_a_block_of_zeros_is_known_where_only_the_first_bytes_of_a_header_are_in_front_of_it():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    first = batch(value=b"v" * (505 - len(batch(value=b"v" * 300)) + 300))
    append(log, first)
    append(log, LARGE)
    append(log, LARGE)
    log.close(clean=False, now_ms=NOW_MS)
    data = log_file(file_system).data
    assert len(first) == 505
    data[512:1024] = bytes(len(data) - 512)
    assert offsets(open_log(file_system)) == [0]


def test_a_block_of_zeros_below_the_recovery_point_is_damage_though_the_indexes_be_gone():
    file_system = filled()
    log_file(file_system).data[512:1024] = bytes(512)
    file_system.remove(f"{DIRECTORY}/{0:020d}.index")
    with pytest.raises(LogCorrupt):
        open_log(file_system, recovery_point=7)
    assert log_file(file_system).size() == 7 * len(LARGE)


def test_zeros_that_end_nowhere_in_particular_are_damage():
    file_system = filled()
    log_file(file_system).data[600:620] = bytes(20)
    with pytest.raises(LogCorrupt):
        open_log(file_system)


def test_a_wrong_length_at_the_end_of_an_earlier_segment_is_damage():
    file_system = filled(SEGMENTS)
    log_file(file_system, 2).data[len(LARGE) + 10] ^= 1
    with pytest.raises(LogCorrupt):
        open_log(file_system, config=SEGMENTS)


def test_the_epochs_that_were_lost_are_written_when_all_indexes_have_been_made_anew_and_synced():
    file_system = filled(SEGMENTS)
    files = {path: bytes(file.data) for path, file in file_system.files.items() if "epoch" not in path}
    disk = RecordingDisk(files)
    log = open_log(disk, config=SEGMENTS, recovery_point=6)
    done = [(operation.kind, operation.path) for operation in disk.operations]
    first = min(number for number, (_, path) in enumerate(done) if "epoch" in path)
    for base_offset in (0, 2, 4):
        path = f"{DIRECTORY}/{base_offset:020d}.timeindex"
        assert ("sync", path) in done[:first]
        assert all(other != path for _, other in done[first:])
    assert log.leader_epochs.entries == ((0, 0),)


def test_what_recovery_cuts_off_is_synced_before_anything_is_appended():
    file_system = filled()
    log_file(file_system).truncate(7 * len(LARGE) - 1)
    synced = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(log_file(file_system)), "sync", lambda file: synced.append(file.size()))
        open_log(file_system)
    assert synced == [6 * len(LARGE)]


def test_zeros_in_the_index_of_aborted_transactions_are_no_transaction():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=False)
    expected = state_of(log)
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    file_system.files[path].data[:] = bytes(34)
    assert state_of(open_log(file_system)) == expected


def test_zeros_in_the_index_of_aborted_transactions_are_none_though_nothing_has_to_be_read_again():
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    send(log)
    end(log, commit=True)
    log.close(clean=True, now_ms=NOW_MS)
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    file_system.open(path, create=True).append([bytes(34)])
    again = open_log(file_system, recovery_point=2)
    assert again.aborted_transactions(0, 2) == []


def test_rubbish_in_the_index_of_aborted_transactions_does_not_matter_past_the_recovery_point():
    file_system, log = with_history()
    expected = state_of(log)
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    file_system.files[path].data[34:] = b"\xff" * 100
    assert state_of(open_log(file_system)) == expected


def test_what_a_closed_segments_indexes_got_last_is_synced_with_the_next_flush():
    file_system = MemoryFileSystem()
    log = open_log(file_system, config=LogConfig(segment_bytes=2 * len(LARGE)))
    append(log, LARGE)
    append(log, batch(value=b"v" * 200, timestamp=NOW_MS + 1))
    log.flush(NOW_MS)
    append(log, LARGE)
    assert file_system.files[f"{DIRECTORY}/{0:020d}.timeindex"] in [index.file for index in log.flush_state.flush_task().indexes]


def test_a_segment_that_ends_at_the_recovery_point_is_indexed_anew():
    file_system = filled(SEGMENTS, count=3)
    path = f"{DIRECTORY}/{0:020d}.timeindex"
    before = file_system.read_bytes(path)
    file_system.files[path].truncate(0)
    log = open_log(file_system, config=SEGMENTS, recovery_point=2)
    assert file_system.read_bytes(path) == before
    assert read(log, 0) is not None


@pytest.mark.parametrize(("recovery_point", "told"), [(2, 0), (3, 1)])
def test_an_index_is_said_not_to_be_its_segments_only_if_it_was_synced(recovery_point, told):
    file_system = filled(SEGMENTS, count=4)
    path = f"{DIRECTORY}/{2:020d}.timeindex"
    file_system.files[path].data[4:] = bytes(len(file_system.files[path].data) - 4)
    file_system.files[path].data[:4] = (1).to_bytes(4, "big")
    before = file_system.read_bytes(path)
    warnings = Warnings()
    log = open_log(file_system, config=SEGMENTS, recovery_point=recovery_point, warn=warnings)
    assert len(warnings.fields("indexes do not match their segment, rebuilding them")) == told
    assert file_system.read_bytes(path) != before
    assert log.offset_for_timestamp(NOW_MS).offset == 0


class SyncedDirectories(MemoryFileSystem):
    """One that remembers of which directories the names were synced."""

    def __init__(self):
        super().__init__()
        self.synced = []

    def sync_dir(self, path):
        self.synced.append(path)


def test_the_name_of_a_data_directory_that_is_new_is_synced_and_those_above_it():
    file_system = SyncedDirectories()
    DataDirectory(file_system, "/var/lib/odradek", Warnings()).take(1)
    assert set(file_system.synced) == {"/", "/var", "/var/lib"}


def test_the_name_of_a_data_directory_that_was_made_and_not_used_is_synced():
    file_system = SyncedDirectories()
    file_system.make_dirs("/var/lib/odradek")
    DataDirectory(file_system, "/var/lib/odradek", Warnings()).take(1)
    assert file_system.synced == ["/var/lib"]


def test_deleted_logs_are_synced_to_be_gone_before_others_get_their_names():
    file_system = SyncedDirectories()
    manager = LogManager(file_system, "/data", node_id=1, new_uuid=uuid4, warn=Warnings())
    manager.start()
    manager.create("t", 0, UUID(int=1), LogConfig(), now_ms=NOW_MS)
    file_system.synced.clear()
    manager.delete("t", 0)
    manager.removed_logs.sync()
    manager.removed_logs.sync()
    assert file_system.synced == ["/data"]


class NoRoom(MemoryFileSystem):
    """One that can be full for files of some names."""

    suffix = "\0"

    def open(self, path, *, create=False):
        if create and path.endswith(self.suffix):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open(path, create=create)

    def write_atomic(self, path, data, *, durable=True):
        if path.endswith(self.suffix):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().write_atomic(path, data, durable=durable)


@pytest.mark.parametrize("suffix", [".txnindex", "leader-epoch-checkpoint"])
def test_records_are_synced_and_acknowledged_though_there_is_no_room_for_what_can_be_made_anew(suffix):
    file_system = NoRoom()
    log = open_log(file_system, config=LogConfig(flush_messages=1))
    send(log)
    log.leader_epochs._is_synced = False
    file_system.suffix = suffix
    end(log, commit=False)
    append(log)
    assert (log.flushed_offset, log.recovery_point, log.has_lost_sync) == (3, 1, False)
    with pytest.raises((KafkaError, OSError)):
        log.close(clean=True, now_ms=NOW_MS)
    file_system.suffix = "\0"
    append(log)
    assert log.recovery_point == 4


def test_a_damaged_identity_is_told_with_its_file():
    file_system = MemoryFileSystem()
    file_system.make_dirs("/data")
    file_system.write_atomic("/data/meta.properties", b"cluster.id=\xe1\n")
    with pytest.raises(InconsistentDataDirectory, match=r"/data/meta\.properties"):
        DataDirectory(file_system, "/data", Warnings()).take(1)
