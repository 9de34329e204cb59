"""A metadata log is asked for its voters without being opened, torn as it may be."""

import pytest

from odradek.cli.grow_out import has_voters
from odradek.protocol.records import Record, build_batch
from tests.cases import each_case
from tests.memory_filesystem import MemoryFileSystem

LOG = f"/data/__cluster_metadata-0/{0:020}.log"
SNAPSHOT = "/data/__cluster_metadata-0/{:020}-0000000001.checkpoint"
VOTERS = build_batch([Record(key=b"\0\0\0\6", value=b"voters")], control=True)
LEADER = build_batch([Record(key=b"\0\0\0\2", value=b"leader")], control=True)
DATA = build_batch([Record(value=b"\0\0\0\6")])


def found(**files):
    disk = MemoryFileSystem()
    if files:
        disk.make_dirs("/data/__cluster_metadata-0")
    for path, data in files.items():
        disk.open({"log": LOG, "older": SNAPSHOT.format(5), "newer": SNAPSHOT.format(9)}[path], create=True).append([data])
    return has_voters(disk, "/data")


@pytest.mark.parametrize(
    "files", [{"log": LEADER + DATA + VOTERS}, {"log": LEADER, "newer": VOTERS + DATA}, {"log": VOTERS + DATA[:-1]}]
)
def test_voters_are_found_in_the_log_and_in_its_newest_snapshot(files):
    assert found(**files)


@each_case("files", [{}, {"log": LEADER + DATA}, {"log": DATA, "older": VOTERS, "newer": LEADER}, {"log": bytes(200)}])
def test_no_other_record_is_taken_for_them(files):
    assert not found(**files)
