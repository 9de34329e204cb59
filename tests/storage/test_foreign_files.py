"""Links, pipes and directories in the place of a data directory's files: nothing hangs, and nothing outside is written."""

import errno
import os
import shutil

import pytest

from odradek.storage.directories.data_directory import RESERVE_BYTES, RESERVE_FILE, Reserve
from odradek.storage.errors import NotRegularFile
from odradek.storage.filesystem import RealFileSystem
from odradek.testing import Broker

PRECIOUS = b"precious"


@pytest.fixture
def outside(tmp_path):
    """A directory that nobody is to write to."""
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "file").write_bytes(PRECIOUS)
    yield directory
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == {"file": PRECIOUS}


def pipe(path, _):
    os.mkfifo(path)


def loop(path, _):
    path.symlink_to(path.name)


def link(path, outside):
    path.symlink_to(outside / "file")


def dangling_link(path, outside):
    path.symlink_to(outside / "new")


def directory(path, _):
    path.mkdir()


def file(path, _):
    path.write_bytes(b"junk")


ALL = (pipe, loop, link, dangling_link, directory)


@pytest.mark.parametrize("put", ALL)
@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_file_is_not_opened_to_be_written(tmp_path, outside, put, create):
    put(tmp_path / "it", outside)
    with pytest.raises(OSError, match="it'"):
        RealFileSystem().open(str(tmp_path / "it"), create=create)
    if put is not pipe:
        with pytest.raises(OSError, match="it'"):
            RealFileSystem().lock(str(tmp_path / "it"))


@pytest.mark.parametrize("put", [pipe, loop, directory])
def test_what_is_no_file_is_not_read(tmp_path, outside, put):
    put(tmp_path / "it", outside)
    with pytest.raises(NotRegularFile):
        RealFileSystem().read_bytes(str(tmp_path / "it"))


@pytest.mark.parametrize("put", [pipe, loop, link, dangling_link, file])
def test_a_file_is_replaced_whatever_is_there_and_beside_it(tmp_path, outside, put):
    for name in ("it", "it.tmp"):
        put(tmp_path / name, outside)
    RealFileSystem().write_atomic(str(tmp_path / "it"), b"new")
    assert ((tmp_path / "it").read_bytes(), (tmp_path / "it").is_symlink(), (tmp_path / "it.tmp").exists()) == (
        b"new",
        False,
        False,
    )


@pytest.mark.parametrize("put", [pipe, loop, link, dangling_link])
def test_the_reserve_is_made_in_the_place_of_a_link(tmp_path, outside, put):
    put(tmp_path / RESERVE_FILE, outside)
    reserve = Reserve(RealFileSystem(), str(tmp_path), RESERVE_BYTES)
    reserve.fill()
    assert not reserve.is_wanted
    assert not (tmp_path / RESERVE_FILE).is_symlink()
    assert (tmp_path / RESERVE_FILE).stat().st_size == RESERVE_BYTES


@pytest.fixture
async def stopped(tmp_path):
    """A data directory after a clean stop, with the topics "a" and "b"."""
    path = tmp_path / "data"
    async with Broker(str(path), topics={"a": 1, "b": 1}) as broker:
        await broker.produce("a", [b"1", b"2"])
        await broker.produce("b", [b"3"])
    return path


def put_in_place(path, put, outside):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    put(path, outside)


@pytest.mark.parametrize(
    ("name", "puts"),
    [
        ("a-0", (pipe, loop, link, dangling_link, file)),
        ("c-0", (pipe, loop, link, dangling_link, file)),
        ("a-0/00000000000000000000.log", ALL),
        ("a-0/00000000000000000000.index", ALL),
        ("a-0/00000000000000000000.timeindex", ALL),
        ("a-0/00000000000000000002.snapshot", (pipe, loop, link, dangling_link)),
        ("a-0/leader-epoch-checkpoint", ALL),
        ("a-0/partition.metadata", ALL),
        ("a-0/leader-epoch-checkpoint.tmp", ALL),
        ("recovery-point-offset-checkpoint", ALL),
        ("recovery-point-offset-checkpoint.tmp", ALL),
        (".kafka_cleanshutdown.tmp", ALL),
        (".odradek-reserve", ALL),
    ],
)
async def test_the_other_partitions_are_served(stopped, outside, name, puts):
    for put in puts:
        copy = stopped.with_name(put.__name__)
        shutil.copytree(stopped, copy)
        put_in_place(copy / name, put, outside)
        async with Broker(str(copy)) as broker:
            await broker.produce("b", [b"4"])
            assert [record.value for record in await broker.records("b")] == [b"3", b"4"]
            assert not [line for line in broker.lines if line.event == "data directory offline"]


@pytest.mark.parametrize("put", [pipe, loop, directory])
async def test_a_start_without_an_identity_ends_with_one_line(stopped, outside, put):
    put_in_place(stopped / "meta.properties", put, outside)
    with pytest.raises(Exception, match=r"meta\.properties cannot be used: "):
        await Broker(str(stopped)).start()


@pytest.mark.parametrize("put", [loop, link, dangling_link])
async def test_the_lock_is_not_taken_through_a_link(stopped, outside, put):
    put_in_place(stopped / ".lock", put, outside)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        await Broker(str(stopped)).start()
