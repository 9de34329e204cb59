import os
import resource
from contextlib import contextmanager

import pytest

from odradek.storage.filesystem import RealFileSystem
from tests.memory_filesystem import MemoryFileSystem


@pytest.fixture(params=[RealFileSystem, MemoryFileSystem])
def disk(request, tmp_path):
    """A file system and an empty directory in it."""
    file_system = request.param()
    directory = str(tmp_path / "root")
    file_system.make_dirs(directory)
    return file_system, directory


@contextmanager
def full_at(size_bytes):
    """No file of this process grows beyond ``size_bytes``, as on a disk that fills up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_appended_buffers_lie_one_behind_the_other(disk):
    file_system, root = disk
    file = file_system.open(f"{root}/log", create=True)
    file.append([b"ab", memoryview(b"cd")])
    file.append([bytearray(b"ef")])
    assert (file.size(), file.pread(10, 1)) == (6, b"bcdef")


def test_more_buffers_are_appended_than_one_system_call_takes(disk):
    file_system, root = disk
    file = file_system.open(f"{root}/log", create=True)
    buffers = [b"%05d" % number for number in range(os.sysconf("SC_IOV_MAX") + 1)]
    file.append(buffers)
    assert file.pread(5 * len(buffers) + 1, 0) == b"".join(buffers)


def test_reading_beyond_the_end_gives_nothing(disk):
    file_system, root = disk
    file = file_system.open(f"{root}/log", create=True)
    assert file.pread(10, 5) == b""


def test_an_append_follows_a_truncation(disk):
    file_system, root = disk
    file = file_system.open(f"{root}/log", create=True)
    file.append([b"abcdef"])
    file.truncate(2)
    file.append([b"X"])
    assert file.pread(10, 0) == b"abX"


def test_a_file_that_is_not_there_is_not_opened(disk):
    file_system, root = disk
    with pytest.raises(FileNotFoundError):
        file_system.open(f"{root}/log")


def test_write_atomic_replaces_the_whole_file_and_leaves_nothing_else(disk):
    file_system, root = disk
    file_system.write_atomic(f"{root}/checkpoint", b"a long first content")
    file_system.write_atomic(f"{root}/checkpoint", b"short", durable=False)
    assert file_system.read_bytes(f"{root}/checkpoint") == b"short"
    assert file_system.list_dir(root) == ["checkpoint"]


def test_a_renamed_directory_takes_its_files_along(disk):
    file_system, root = disk
    file_system.make_dirs(f"{root}/a/b")
    file_system.write_atomic(f"{root}/a/b/file", b"x")
    file_system.rename(f"{root}/a", f"{root}/c")
    assert (file_system.exists(f"{root}/a"), file_system.read_bytes(f"{root}/c/b/file")) == (False, b"x")


def test_a_removed_tree_is_gone_with_all_that_was_in_it(disk):
    file_system, root = disk
    file_system.make_dirs(f"{root}/a/b")
    file_system.write_atomic(f"{root}/a/b/file", b"x")
    file_system.remove_tree(f"{root}/a")
    assert file_system.list_dir(root) == []


def test_a_lock_is_held_once_until_it_is_released(disk):
    file_system, root = disk
    lock = file_system.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        file_system.lock(f"{root}/.lock")
    lock.release()
    file_system.lock(f"{root}/.lock").release()


def test_an_open_file_outlives_its_directory(disk):
    file_system, root = disk
    file_system.make_dirs(f"{root}/a")
    file = file_system.open(f"{root}/a/log", create=True)
    file.append([b"abc"])
    file_system.remove_tree(f"{root}/a")
    assert file.pread(3, 0) == b"abc"


def take_one_byte_first(monkeypatch, then):
    """Have the system take one byte of an append, and call ``then`` for the rest."""
    write = os.pwrite
    taken = []

    def take(fd, data, offset):
        if taken:
            return then(fd, data, offset)
        taken.append(data)
        return write(fd, bytes(data)[:1], offset)

    monkeypatch.setattr(os, "pwrite", take)
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, offset: take(fd, b"".join(buffers), offset))


@pytest.mark.parametrize("buffers", [[b"abcdef"], [b"abc", b"def"]])
def test_an_append_that_the_disk_takes_in_parts_is_whole(tmp_path, monkeypatch, buffers):
    file = RealFileSystem().open(str(tmp_path / "log"), create=True)
    take_one_byte_first(monkeypatch, os.pwrite)
    file.append(buffers)
    assert (file.size(), file.pread(10, 0)) == (6, b"abcdef")


@pytest.mark.parametrize("buffers", [[b"abc"], [b"a", b"bc"]])
def test_an_append_that_the_disk_refuses_half_way_leaves_nothing(tmp_path, monkeypatch, buffers):
    file = RealFileSystem().open(str(tmp_path / "log"), create=True)
    file.append([b"kept"])

    def refuse(fd, data, offset):
        raise OSError(28, "No space left on device")

    take_one_byte_first(monkeypatch, refuse)
    with pytest.raises(OSError, match="No space"):
        file.append(buffers)
    assert (file.size(), (tmp_path / "log").stat().st_size) == (4, 4)


def test_a_dropped_file_gives_its_descriptor_back(tmp_path):
    file = RealFileSystem().open(str(tmp_path / "log"), create=True)
    descriptor = file.fileno()
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_small_file_that_the_disk_takes_in_part_replaces_nothing(tmp_path):
    file_system, path = RealFileSystem(), str(tmp_path / "checkpoint")
    file_system.write_atomic(path, b"old")
    with full_at(100), pytest.raises(OSError, match="File too large"):
        file_system.write_atomic(path, b"n" * 150)
    assert file_system.read_bytes(path) == b"old"


def test_an_append_that_a_full_disk_takes_in_part_leaves_nothing(tmp_path):
    file = RealFileSystem().open(str(tmp_path / "log"), create=True)
    file.append([b"first"])
    with full_at(100), pytest.raises(OSError, match="File too large"):
        file.append([b"x" * 60, b"y" * 60])
    assert os.fstat(file.fileno()).st_size == 5


def test_the_rest_of_a_failed_append_that_cannot_be_cut_is_cut_before_the_file_counts_as_synced(tmp_path, monkeypatch):
    file = RealFileSystem().open(str(tmp_path / "log"), create=True)
    file.append([b"first"])

    def refuse(fd, size):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        with full_at(100), pytest.raises(OSError, match="File too large"):
            file.append([b"x" * 120])
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
    file.sync()
    assert os.fstat(file.fileno()).st_size == 5
