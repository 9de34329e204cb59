"""Several data directories: where logs go, whose the directories are, and what becomes of one that does not work."""

import errno
from uuid import UUID, uuid4

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.errors import InconsistentDataDirectory
from odradek.storage.log.log_config import LogConfig
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, Warnings, append, batch, read

A, B, C = "/a", "/b", "/c"
TOPIC_ID = UUID(int=1000)


class FailingFileSystem(MemoryFileSystem):
    """``failing`` directories answer everything with ``number``; ``failing_names`` are parts of paths that do."""

    def __init__(self):
        super().__init__()
        self.failing: set[str] = set()
        self.number = errno.EIO

    def check(self, path):
        if any(path == part or path.startswith(f"{part}/") for part in self.failing):
            raise OSError(self.number, "does not work", path)

    def open(self, path, *, create=False):
        self.check(path)
        return super().open(path, create=create)

    def make_dirs(self, path):
        self.check(path)
        super().make_dirs(path)

    def list_dir(self, path):
        self.check(path)
        return super().list_dir(path)

    def read_bytes(self, path):
        self.check(path)
        return super().read_bytes(path)

    def write_atomic(self, path, data, *, durable=True):
        self.check(path)
        super().write_atomic(path, data, durable=durable)

    def rename(self, source, target):
        self.check(source)
        super().rename(source, target)


def started(file_system, *paths, load=True, **options):
    manager = LogManager(file_system, *(paths or (A, B, C)), node_id=1, warn=Warnings(), **{"new_uuid": uuid4, **options})
    manager.start()
    if load:
        manager.load_all(lambda _: LogConfig(), now_ms=NOW_MS)
    return manager


def create(manager, partition, **options):
    return manager.create("t", partition, TOPIC_ID, LogConfig(), now_ms=NOW_MS, **options)


def homes(manager):
    return {key[1]: manager.home_of(log).path for key, log in manager.logs.items()}


def restarted(manager, file_system, **options):
    manager.shutdown(NOW_MS)
    return started(file_system, **options)


def test_a_new_log_goes_where_the_fewest_are():
    manager = started(FailingFileSystem())
    for partition in range(5):
        create(manager, partition)
    manager.delete("t", 1)
    create(manager, 5)
    assert homes(manager) == {0: A, 2: C, 3: A, 4: B, 5: B}


def counted(manager):
    """How many logs ``counts`` says each directory has, by its path."""
    return {manager.directories.with_id(each).path: count for each, count in manager.counts().items()}


def test_the_logs_of_each_directory_are_counted_whatever_becomes_of_them():
    file_system = FailingFileSystem()
    manager = started(file_system)
    for partition in range(8):
        create(manager, partition)
    create(manager, 7)
    assert counted(manager) == {A: 3, B: 3, C: 2}
    manager.delete("t", 0)
    manager.set_aside("t", 1, "-stray", NOW_MS)
    assert counted(manager) == {A: 2, B: 2, C: 2} == {path: list(homes(manager).values()).count(path) for path in (A, B, C)}
    manager = restarted(manager, file_system)
    assert counted(manager) == {A: 2, B: 2, C: 2}
    manager.directories.with_path(B).fail("broken")
    manager.take_offline(manager.directories.with_path(B))
    assert counted(manager) == {A: 2, C: 2}


def test_a_log_that_could_not_be_opened_counts_until_it_is_deleted():
    file_system = FailingFileSystem()
    manager = started(file_system)
    append(create(manager, 0))
    manager.shutdown(NOW_MS)
    file_system.write_atomic(f"{A}/t-0/partition.metadata", b"")
    manager = started(file_system)
    assert ("t", 0) in manager.offline
    assert counted(manager) == {A: 1, B: 0, C: 0}
    manager.delete("t", 0)
    assert counted(manager) == {A: 0, B: 0, C: 0}


def test_a_new_log_is_placed_without_a_look_at_the_others(monkeypatch):
    manager = started(FailingFileSystem())
    looks = []
    home_of = LogManager.home_of
    monkeypatch.setattr(LogManager, "home_of", lambda self, log: looks.append(log) or home_of(self, log))
    for partition in range(20):
        create(manager, partition)
        manager.counts()
    assert len(looks) < 20


def test_logs_are_found_again_wherever_they_are():
    file_system = FailingFileSystem()
    manager = started(file_system)
    for partition in range(3):
        append(create(manager, partition), batch(partition + 1))
    again = restarted(manager, file_system)
    assert (homes(again), again.was_clean) == ({0: A, 1: B, 2: C}, True)
    assert [again.logs["t", partition].log_end_offset for partition in range(3)] == [1, 2, 3]


def test_each_directory_has_the_checkpoints_of_its_own_logs():
    file_system = FailingFileSystem()
    manager = started(file_system)
    for partition in range(2):
        append(create(manager, partition), batch(3))
        manager.logs["t", partition].flush(NOW_MS)
    manager.checkpoints.write()
    assert file_system.read_bytes(f"{A}/recovery-point-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert file_system.read_bytes(f"{B}/recovery-point-offset-checkpoint") == b"0\n1\nt 1 3\n"


def test_directories_are_of_one_cluster_and_have_an_id_each():
    file_system = FailingFileSystem()
    manager = started(file_system, A)
    manager.release()
    more = started(file_system)
    identities = [directory.identity for directory in more.directories]
    assert len({identity.cluster_id for identity in identities}) == 1
    assert len({identity.directory_id for identity in identities}) == 3


def test_directories_of_two_clusters_are_refused():
    file_system = FailingFileSystem()
    for path in (A, B):
        started(file_system, path).release()
    with pytest.raises(InconsistentDataDirectory, match=r"/b/meta\.properties has the data of cluster"):
        started(file_system)


def test_two_directories_of_one_id_are_refused():
    file_system = FailingFileSystem()
    started(file_system, A).release()
    file_system.make_dirs(B)
    file_system.write_atomic(f"{B}/meta.properties", file_system.read_bytes(f"{A}/meta.properties"))
    with pytest.raises(InconsistentDataDirectory, match=r"the same directory\.id"):
        started(file_system, A, B)


def test_a_log_in_two_directories_is_refused():
    file_system = FailingFileSystem()
    manager = started(file_system)
    create(manager, 0)
    file_system.make_dirs(f"{C}/t-0")
    file_system.write_atomic(f"{C}/t-0/partition.metadata", b"")
    manager.release()
    with pytest.raises(InconsistentDataDirectory, match="t-0 is in /a and in /c"):
        started(file_system)


def test_a_metadata_log_in_another_directory_than_the_configured_is_refused():
    file_system = FailingFileSystem()
    started(file_system).release()
    file_system.make_dirs(f"{B}/__cluster_metadata-0")
    file_system.open(f"{B}/__cluster_metadata-0/x", create=True)
    with pytest.raises(InconsistentDataDirectory, match="the metadata log is in /b, not in /a"):
        started(file_system)
    assert started(file_system, metadata_dir=B).directories.metadata.path == B


def test_the_metadata_log_may_have_a_directory_of_its_own():
    manager = started(FailingFileSystem(), metadata_dir="/m")
    for partition in range(4):
        create(manager, partition)
    assert (manager.directories.metadata.path, set(homes(manager).values())) == ("/m", {A, B, C})


def test_a_directory_that_fails_at_the_start_is_offline_and_the_others_serve():
    file_system = FailingFileSystem()
    manager = started(file_system)
    for partition in range(3):
        append(create(manager, partition))
    manager.shutdown(NOW_MS)
    file_system.failing = {B}
    manager = started(file_system)
    assert sorted(manager.logs) == [("t", 0), ("t", 2)]
    assert [directory.path for directory in manager.directories.online] == [A, C]
    manager = restarted(manager, file_system)
    assert homes(manager) == {0: A, 2: C}
    file_system.failing = set()
    manager.release()
    assert read(started(file_system).logs["t", 1], 0) is not None


@pytest.mark.parametrize("failing", [{A}, {A, B, C}])
def test_there_is_no_start_without_the_metadata_logs_directory(failing):
    file_system = FailingFileSystem()
    started(file_system).shutdown(NOW_MS)
    file_system.failing = failing
    with pytest.raises(OSError, match="does not work"):
        started(file_system)


def test_a_directory_that_fails_while_its_logs_are_opened_takes_all_of_them_offline():
    file_system = FailingFileSystem()
    manager = started(file_system)
    for partition in range(6):
        append(create(manager, partition))
    manager.shutdown(NOW_MS)
    file_system.failing = {f"{B}/t-4"}
    manager = started(file_system)
    assert sorted(manager.offline) == [("t", 1), ("t", 4)]
    assert sorted(manager.logs) == [("t", 0), ("t", 2), ("t", 3), ("t", 5)]


def failed(file_system, number):
    """A manager with a log in each directory, after an append to that in B met an error."""
    manager = started(file_system)
    manager.failures = []
    manager.on_failure = manager.failures.append
    for partition in range(3):
        create(manager, partition)
    file_system.failing, file_system.number = {B}, number
    with pytest.raises(KafkaError) as refusal:
        append(manager.logs["t", 1])
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    return manager


@each_case("number", [errno.EIO, errno.EROFS, errno.ENODEV, errno.ESTALE, errno.ENOTDIR])
def test_an_error_that_says_that_the_disk_is_broken_fails_its_directory(number):
    manager = failed(FailingFileSystem(), number)
    assert [directory.path for directory in manager.failures] == [B]
    assert manager.take_offline(manager.failures[0]) == [("t", 1)]
    assert sorted(manager.logs) == [("t", 0), ("t", 2)]
    assert "does not work" in manager.offline["t", 1]


@each_case("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_an_error_that_says_that_there_is_no_room_is_that_of_one_write(number):
    file_system = FailingFileSystem()
    manager = failed(file_system, number)
    file_system.failing = set()
    assert (manager.failures, append(manager.logs["t", 1]).first_offset) == ([], 0)


def test_what_is_in_a_failed_directory_is_not_written_any_more():
    file_system = FailingFileSystem()
    manager = failed(file_system, errno.EIO)
    log = manager.logs["t", 1]
    manager.take_offline(manager.failures[0])
    file_system.failing = set()
    with pytest.raises(KafkaError):
        append(log)
    append(manager.logs["t", 0])
    manager.shutdown(NOW_MS)
    again = started(file_system)
    assert [directory.was_clean for directory in again.directories] == [True, False, True]


def test_a_new_log_does_not_go_to_a_failed_directory():
    file_system = FailingFileSystem()
    manager = failed(file_system, errno.EIO)
    manager.take_offline(manager.failures[0])
    for partition in range(3, 7):
        create(manager, partition)
    assert {homes(manager)[partition] for partition in range(3, 7)} == {A, C}
    with pytest.raises(KafkaError):
        create(manager, 7, directory=manager.failures[0])


def test_a_log_of_a_failed_directory_can_be_deleted_and_what_is_left_of_it_is_found_later():
    file_system = FailingFileSystem()
    manager = failed(file_system, errno.EIO)
    manager.take_offline(manager.failures[0])
    manager.delete("t", 1)
    assert manager.offline == {}
    manager.release()
    file_system.failing = set()
    assert ("t", 1) in started(file_system).logs


def test_records_that_cannot_be_read_fail_their_directory(monkeypatch):
    file_system = FailingFileSystem()
    manager = started(file_system)
    manager.failures = []
    manager.on_failure = manager.failures.append
    log = create(manager, 0)
    append(log)
    found = log.read(0, 1000, upper_offset=1, min_one_batch=True)

    class Broken:
        def pread(self, length, offset):
            raise OSError(errno.EIO, "does not work")

    monkeypatch.setattr(found, "file", Broken())
    with pytest.raises(OSError, match="does not work"):
        found.read()
    assert [directory.path for directory in manager.failures] == [A]
