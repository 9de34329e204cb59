"""A data directory: who it belongs to, which logs are in it, and what a restart finds."""

import errno
from uuid import UUID, uuid4

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.errors import DataDirectoryLocked, InconsistentDataDirectory
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.flush_state import FlushState
from odradek.storage.log.log_config import LogConfig
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, Warnings, append, batch, read

ROOT = "/var/data"
FIRST, SECOND = UUID(int=1), UUID(int=2)


def started(file_system, *, warn=None, load=True, config=None, **options):
    manager = LogManager(file_system, ROOT, node_id=1, warn=warn or Warnings(), **{"new_uuid": uuid4, **options})
    manager.start()
    if load:
        manager.load_all(lambda _: config or LogConfig(), now_ms=NOW_MS)
    return manager


def flush_dirty(manager, now_ms):
    for log, task in manager.flusher.tasks(now_ms):
        task.run()
        manager.flusher.finished(log, task, None, now_ms)


def create(manager, topic="t", partition=0, topic_id=FIRST, config=None):
    return manager.create(topic, partition, topic_id, config or LogConfig(), now_ms=NOW_MS)


def test_a_new_directory_gets_an_identity_that_it_keeps():
    file_system = MemoryFileSystem()
    manager = LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings())
    identity = manager.start()
    manager.release()
    again = LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings())
    assert again.start() == identity
    lines = file_system.read_bytes(f"{ROOT}/meta.properties").decode().splitlines()
    assert [line.split("=")[0] for line in lines] == ["cluster.id", "directory.id", "node.id", "version"]


def test_a_cluster_id_can_be_given():
    manager = LogManager(MemoryFileSystem(), ROOT, node_id=1, new_uuid=uuid4, warn=Warnings(), cluster_id="mine")
    assert manager.start().cluster_id == "mine"


@each_case(
    "data", [b"cluster.id=other\nnode.id=1\ndirectory.id=5ywgRxySS3WGMcnaL1mjgw\n", b"node.id=1\n", b"",
             b"cluster.id=mine\nnode.id=2\ndirectory.id=5ywgRxySS3WGMcnaL1mjgw\n", b"cluster.id=mine\nnode.id=x\n"]
)  # fmt: skip
def test_the_directory_of_another_broker_is_refused_and_not_kept(data):
    file_system = MemoryFileSystem()
    file_system.make_dirs(ROOT)
    file_system.write_atomic(f"{ROOT}/meta.properties", data)
    for _ in range(2):
        with pytest.raises(InconsistentDataDirectory):
            LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings(), cluster_id="mine").start()


def test_meta_properties_of_a_later_version_are_refused():
    file_system = MemoryFileSystem()
    file_system.make_dirs(ROOT)
    lines = b"cluster.id=mine\nnode.id=1\ndirectory.id=5ywgRxySS3WGMcnaL1mjgw\nversion=%d\n"
    file_system.write_atomic(f"{ROOT}/meta.properties", lines % 9)
    with pytest.raises(InconsistentDataDirectory, match="its version is 9, but only versions 0 and 1 are supported"):
        LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings()).start()
    file_system.write_atomic(f"{ROOT}/meta.properties", lines % 1)
    assert LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings()).start().cluster_id == "mine"


@pytest.mark.parametrize("kind", [RealFileSystem, MemoryFileSystem])
def test_a_directory_serves_one_broker_at_a_time(kind, tmp_path):
    file_system, root = kind(), str(tmp_path / "data")
    first = LogManager(file_system, root, node_id=1, new_uuid=uuid4, warn=Warnings())
    first.start()
    with pytest.raises(DataDirectoryLocked):
        LogManager(file_system, root, node_id=1, new_uuid=uuid4, warn=Warnings()).start()
    first.shutdown(NOW_MS)
    LogManager(file_system, root, node_id=1, new_uuid=uuid4, warn=Warnings()).start()


def test_a_created_log_is_there_after_a_kill():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    append(create(manager, "a.b-c", 3), batch(value=b"kept"))
    manager.release()
    again = started(file_system)
    log = again.logs["a.b-c", 3]
    assert (log.topic, log.partition, log.topic_id, log.log_end_offset) == ("a.b-c", 3, FIRST, 1)


def test_a_clean_stop_leaves_its_marker_and_a_running_broker_none():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    during = ".kafka_cleanshutdown" in file_system.list_dir(ROOT)
    manager.shutdown(NOW_MS)
    after = ".kafka_cleanshutdown" in file_system.list_dir(ROOT)
    again = started(file_system)
    assert (during, after, manager.was_clean, again.was_clean) == (False, True, False, True)
    assert ".kafka_cleanshutdown" not in file_system.list_dir(ROOT)


@each_case(("marker", "epoch"), [(None, 41), (b"", -1), (b"{}", -1), (b'{"version":0,"brokerEpoch":-1}', -1)])
def test_the_next_start_knows_which_incarnation_has_stopped_in_good_order(marker, epoch):
    file_system = MemoryFileSystem()
    manager = started(file_system)
    manager.broker_epoch = 41
    manager.shutdown(NOW_MS)
    if marker is not None:
        file_system.write_atomic(f"{ROOT}/.kafka_cleanshutdown", marker)
    again = started(file_system)
    assert (again.was_clean, again.previous_broker_epoch) == (True, epoch)
    again.release()
    assert started(file_system).previous_broker_epoch == -1


def test_high_watermarks_are_written_for_a_broker_in_a_cluster_and_never_beyond_the_log():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    log = create(manager)
    for value in (b"a", b"b", b"c"):
        append(log, batch(value=value))
    manager.checkpoints.write()
    assert "replication-offset-checkpoint" not in file_system.list_dir(ROOT)
    manager.checkpoints.high_watermark_of = {("t", 0): 3}.get
    manager.checkpoints.write_high_watermarks()
    home = manager.home_of(log)
    assert home.held_offset("replication-offset-checkpoint", ("t", 0)) == 3
    log.truncate_to(2, NOW_MS)
    manager.release()
    again = started(file_system)
    held = again.home_of(again.logs["t", 0]).held_offset("replication-offset-checkpoint", ("t", 0))
    assert (held <= 2, again.logs["t", 0].log_end_offset) == (True, 2)


def test_after_a_clean_stop_logs_are_taken_as_they_are():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    log = create(manager)
    append(log, batch(3))
    append(log)
    manager.shutdown(NOW_MS)
    file_system.files[f"{ROOT}/t-0/{0:020d}.log"].data[70] ^= 1
    again = started(file_system)
    assert (again.logs["t", 0].log_end_offset, again.logs["t", 0].recovery_point, again.offline) == (4, 4, {})


def test_checkpoints_tell_where_logs_are_synced_and_where_they_start():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    first, second = create(manager, "a"), create(manager, "b", 2, SECOND)
    for log in (first, second):
        append(log, batch(5))
    first.flush(NOW_MS)
    second.delete_records_before(4)
    manager.checkpoints.write()
    manager.release()
    assert file_system.read_bytes(f"{ROOT}/recovery-point-offset-checkpoint") == b"0\n2\na 0 5\nb 2 0\n"
    assert file_system.read_bytes(f"{ROOT}/log-start-offset-checkpoint") == b"0\n1\nb 2 4\n"
    again = started(file_system)
    assert (again.logs["a", 0].recovery_point, again.logs["b", 2].log_start_offset) == (5, 4)


def test_checkpoints_that_say_nothing_new_are_not_written(monkeypatch):
    file_system = MemoryFileSystem()
    manager = started(file_system)
    create(manager)
    manager.checkpoints.write()
    written = []
    monkeypatch.setattr(file_system, "write_atomic", lambda path, *_, **__: written.append(path))
    manager.checkpoints.write()
    assert written == []


def test_a_checkpoint_that_cannot_be_read_costs_a_recovery_and_no_more():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    append(create(manager), batch(2))
    manager.release()
    file_system.write_atomic(f"{ROOT}/recovery-point-offset-checkpoint", b"0\n7\n")
    warnings = Warnings()
    again = started(file_system, warn=warnings)
    assert (again.logs["t", 0].log_end_offset, len(warnings.fields("checkpoint ignored"))) == (2, 1)


def test_a_cleaner_checkpoint_that_kafka_created_and_never_wrote_is_no_damage():
    file_system = MemoryFileSystem()
    started(file_system).release()
    for name in ("cleaner-offset-checkpoint", "recovery-point-offset-checkpoint"):
        file_system.write_atomic(f"{ROOT}/{name}", b"")
    warnings = Warnings()
    started(file_system, warn=warnings)
    assert [fields["path"] for fields in warnings.fields("checkpoint ignored")] == [f"{ROOT}/recovery-point-offset-checkpoint"]


def damaged(file_system):
    manager = started(file_system)
    for topic in ("bad", "good"):
        log = create(manager, topic)
        for _ in range(3):
            append(log)
    manager.release()
    file_system.files[f"{ROOT}/bad-0/{0:020d}.log"].data[70] ^= 1


def test_a_damaged_log_goes_offline_and_the_others_serve():
    file_system = MemoryFileSystem()
    damaged(file_system)
    warnings = Warnings()
    manager = started(file_system, warn=warnings)
    assert set(manager.logs) == {("good", 0)}
    assert ErrorCode.KAFKA_STORAGE_ERROR.name in manager.offline["bad", 0]
    assert [fields["topic"] for fields in warnings.fields("partition offline")] == ["bad"]


def test_an_offline_log_is_not_taken_for_sound_by_the_next_start():
    file_system = MemoryFileSystem()
    damaged(file_system)
    started(file_system).shutdown(NOW_MS)
    assert set(started(file_system).offline) == {("bad", 0)}


def test_an_offline_log_can_be_deleted_and_created_anew():
    file_system = MemoryFileSystem()
    damaged(file_system)
    manager = started(file_system)
    manager.delete("bad", 0)
    log = create(manager, "bad", 0, SECOND)
    assert (log.log_end_offset, manager.offline) == (0, {})


def test_unreadable_partition_metadata_takes_a_log_offline():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    create(manager)
    manager.release()
    file_system.write_atomic(f"{ROOT}/t-0/partition.metadata", b"")
    assert set(started(file_system).offline) == {("t", 0)}


def test_a_deleted_log_leaves_a_directory_that_is_removed_later():
    file_system = MemoryFileSystem()
    manager = started(file_system, new_uuid=lambda: UUID(int=255))
    append(create(manager))
    manager.delete("t", 0)
    left = [name for name in file_system.list_dir(ROOT) if name.startswith("t-")]
    manager.removed_logs.remove_all()
    assert (left, manager.logs) == ([f"t-0.{UUID(int=255).hex}-delete"], {})
    assert not [name for name in file_system.list_dir(ROOT) if name.startswith("t-")]


def test_a_deleted_log_that_a_kill_left_behind_is_removed_by_the_next_start():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    create(manager)
    manager.delete("t", 0)
    manager.release()
    again = started(file_system)
    assert (again.logs, [name for name in file_system.list_dir(ROOT) if name.startswith("t-")]) == ({}, [])


def test_a_topic_created_again_has_nothing_of_the_one_before_it():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    old = create(manager)
    append(old, batch(9))
    old.flush(NOW_MS)
    old.delete_records_before(8)
    manager.checkpoints.write()
    manager.delete("t", 0)
    append(create(manager, topic_id=SECOND))
    manager.release()
    again = started(file_system).logs["t", 0]
    assert (again.topic_id, again.log_start_offset, again.log_end_offset) == (SECOND, 0, 1)


def test_creating_what_is_there_keeps_it_and_replaces_another_topics():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    log = create(manager)
    append(log)
    same = create(manager)
    other = create(manager, topic_id=SECOND)
    assert (same is log, other.topic_id, other.log_end_offset, manager.logs["t", 0] is other) == (True, SECOND, 0, True)


def test_directories_that_are_no_logs_and_the_metadata_log_are_left_alone():
    file_system = MemoryFileSystem()
    for name in ("__cluster_metadata-0", "lost+found", "notes", "x-y", "-1"):
        file_system.make_dirs(f"{ROOT}/{name}")
    manager = started(file_system)
    assert (manager.logs, manager.offline) == ({}, {})
    assert {"__cluster_metadata-0", "lost+found", "notes", "x-y", "-1"} <= set(file_system.list_dir(ROOT))


def test_each_log_gets_its_topics_config():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    create(manager, "a")
    create(manager, "b")
    manager.release()
    again = LogManager(file_system, ROOT, node_id=1, new_uuid=uuid4, warn=Warnings())
    again.start()
    again.load_all(lambda topic: LogConfig(segment_bytes=ord(topic)), now_ms=NOW_MS)
    assert [log.config.segment_bytes for log in again.logs.values()] == [ord("a"), ord("b")]


def test_a_rolled_segment_is_flushed_and_the_active_one_is_left():
    manager = started(MemoryFileSystem())
    log = create(manager)
    append(log)
    log.roll(NOW_MS)
    append(log)
    flush_dirty(manager, NOW_MS)
    assert log.recovery_point == 1


def test_flush_ms_is_how_long_an_append_waits_to_be_synced():
    manager = started(MemoryFileSystem())
    log = create(manager, config=LogConfig(flush_ms=1000))
    append(log)
    flush_dirty(manager, NOW_MS + 999)
    before = log.recovery_point
    flush_dirty(manager, NOW_MS + 1000)
    assert (before, log.recovery_point, list(manager.flusher.tasks(NOW_MS + 5000))) == (0, 1, [])


def test_a_log_that_cannot_be_flushed_makes_the_stop_unclean(monkeypatch):
    file_system = MemoryFileSystem()
    manager = started(file_system)
    log = create(manager)
    append(log)

    def refuse(self):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(log.segments.active.file), "sync", refuse)
    manager.shutdown(NOW_MS)
    assert ".kafka_cleanshutdown" not in file_system.list_dir(ROOT)


def test_a_failed_flush_of_a_deleted_log_is_nobodys_worry():
    warn = Warnings()
    manager = started(MemoryFileSystem(), warn=warn)
    log = create(manager, config=LogConfig(flush_ms=0))
    append(log)
    ((_, task),) = manager.flusher.tasks(NOW_MS)
    manager.delete("t", 0)
    manager.flusher.finished(log, task, FileNotFoundError(2, "No such file or directory"), NOW_MS)
    assert warn.events == []


def test_a_log_for_which_there_were_too_many_open_files_is_flushed_the_next_time():
    warn = Warnings()
    manager = started(MemoryFileSystem(), warn=warn)
    log = create(manager, config=LogConfig(flush_ms=0))
    append(log)
    ((_, task),) = manager.flusher.tasks(NOW_MS)
    manager.flusher.finished(log, task, OSError(errno.EMFILE, "Too many open files"), NOW_MS)
    assert [event for event, _ in warn.events] == ["cannot flush a log"]
    append(log)
    flush_dirty(manager, NOW_MS)
    assert log.recovery_point == 2


def test_a_log_whose_flush_failed_is_out_of_service_and_the_stop_is_unclean():
    file_system, warn = MemoryFileSystem(), Warnings()
    manager = started(file_system, warn=warn)
    log = create(manager, config=LogConfig(flush_ms=0))
    append(log)
    ((_, task),) = manager.flusher.tasks(NOW_MS)
    manager.flusher.finished(log, task, OSError(5, "Input/output error"), NOW_MS)
    with pytest.raises(KafkaError, match="Input/output error") as refusal:
        append(log)
    assert (refusal.value.code, log.recovery_point, list(manager.flusher.tasks(NOW_MS))) == (ErrorCode.KAFKA_STORAGE_ERROR, 0, [])
    manager.shutdown(NOW_MS)
    assert ".kafka_cleanshutdown" not in file_system.list_dir(ROOT)


@pytest.mark.interpreted
def test_a_log_whose_flush_cannot_be_prepared_holds_up_no_other(monkeypatch):
    warn = Warnings()
    manager = started(MemoryFileSystem(), warn=warn)
    logs = [create(manager, topic, config=LogConfig(flush_ms=0)) for topic in ("a", "b")]
    for log in logs:
        append(log)

    prepare = FlushState.flush_task

    def refuse(state, *, active):
        if state is logs[0].flush_state:
            raise OSError(24, "Too many open files")
        return prepare(state, active=active)

    monkeypatch.setattr(FlushState, "flush_task", refuse)
    assert [log.topic for log, _ in manager.flusher.tasks(NOW_MS)] == ["b"]
    assert [fields["topic"] for fields in warn.fields("cannot flush a log")] == ["a"]


def test_producers_expire_in_all_logs():
    manager = started(MemoryFileSystem())
    for topic in ("a", "b"):
        append(create(manager, topic), batch(producer_id=1, producer_epoch=0, base_sequence=0))
    create(manager, "c")
    assert manager.expire_producers(NOW_MS + LogConfig().producer_id_expiration_ms) == 2


def test_a_real_directory_keeps_its_records_over_a_kill_and_a_clean_stop(tmp_path):
    file_system = RealFileSystem()
    for stop in (LogManager.release, lambda manager: manager.shutdown(NOW_MS), LogManager.release):
        manager = LogManager(file_system, str(tmp_path), node_id=1, new_uuid=uuid4, warn=Warnings())
        manager.start()
        manager.load_all(lambda _: LogConfig(segment_bytes=300), now_ms=NOW_MS)
        log = create(manager, config=LogConfig(segment_bytes=300))
        for _ in range(5):
            append(log)
        stop(manager)
    manager.start()
    manager.load_all(lambda _: LogConfig(segment_bytes=300), now_ms=NOW_MS)
    log = manager.logs["t", 0]
    assert log.log_end_offset == 15
    assert all(read(log, offset) is not None for offset in range(15))


def test_a_log_that_a_kill_left_unflushed_is_flushed_as_it_is_opened():
    file_system = MemoryFileSystem()
    manager = started(file_system)
    append(create(manager))
    manager.release()
    again = started(file_system, load=False)
    asked = []
    again.on_flush_due = asked.append
    again.load_all(lambda _: LogConfig(flush_messages=1), now_ms=NOW_MS)
    assert (again.logs["t", 0].flushed_offset, asked) == (1, [])
