"""Systems without what Linux has: the disk is synced by what is there."""

import errno
import fcntl
import importlib.util
import os

import pytest

from odradek.storage import posix

F_FULLFSYNC = 51


@pytest.fixture
def calls(monkeypatch):
    """The calls that sync or lock, in order; ``fcntl`` fails with the error that is put into ``refusals``."""
    made = []
    monkeypatch.setattr(os, "fsync", lambda _fd: made.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda _fd: made.append("fdatasync"))
    monkeypatch.setattr(fcntl, "flock", lambda _fd, _how: made.append("flock"))
    monkeypatch.setattr(fcntl, "lockf", lambda _fd, _how: made.append("lockf"))
    return made


def loaded_anew():
    """The module as it is on a system with what ``os`` and ``fcntl`` have now."""
    spec = importlib.util.spec_from_file_location("posix_elsewhere", posix.__file__.removesuffix("c"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_macos(monkeypatch, calls, refusal=None):
    def command(_fd, number):
        calls.append(number)
        if refusal is not None:
            raise OSError(refusal, os.strerror(refusal))

    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.delattr(os, "pwritev")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", command)
    return loaded_anew()


def test_linux_syncs_data_by_fdatasync_and_takes_both_locks(calls):
    system = loaded_anew()
    system.sync_data(0)
    system.sync(0)
    system.lock(0)
    assert calls == ["fdatasync", "fsync", "flock", "lockf"]


def test_a_system_without_fdatasync_syncs_data_by_fsync(calls, monkeypatch):
    monkeypatch.delattr(os, "fdatasync")
    loaded_anew().sync_data(0)
    assert calls == ["fsync"]


def test_macos_empties_the_drives_cache_and_takes_one_lock(calls, monkeypatch):
    system = on_macos(monkeypatch, calls)
    system.sync_data(0)
    system.sync(0)
    system.lock(0)
    assert calls == [F_FULLFSYNC, F_FULLFSYNC, "flock"]
    assert system.MOST_BUFFERS == 0


def test_a_file_system_that_does_not_know_the_command_is_synced_by_fsync(calls, monkeypatch):
    on_macos(monkeypatch, calls, errno.ENOTSUP).sync_data(0)
    assert calls == [F_FULLFSYNC, "fsync"]


def test_a_disk_that_fails_to_sync_is_not_asked_again(calls, monkeypatch):
    system = on_macos(monkeypatch, calls, errno.EIO)
    with pytest.raises(OSError, match="put/output"):
        system.sync_data(0)
    assert calls == [F_FULLFSYNC]
