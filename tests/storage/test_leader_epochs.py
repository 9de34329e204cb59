import pytest

from odradek.storage.log.leader_epochs import LeaderEpochs
from tests.memory_filesystem import MemoryFileSystem


@pytest.fixture
def epochs(disk):
    found = LeaderEpochs(disk, "/d")
    for epoch, start in ((1, 0), (3, 10), (4, 25)):
        found.assign(epoch, start)
    return found


def test_the_file_reads_as_kafkas(disk, epochs):
    assert disk.read_bytes("/d/leader-epoch-checkpoint") == b"0\n3\n1 0\n3 10\n4 25\n"


def test_epochs_are_read_back(disk, epochs):
    again = LeaderEpochs(disk, "/d")
    assert (again.load(), again.entries, again.latest) == (True, ((1, 0), (3, 10), (4, 25)), 4)


@pytest.mark.parametrize("data", [None, b"", b"0\n2\n1 0\n", b"0\n1\n1 x\n"])
def test_a_file_that_cannot_be_read_is_reported(disk, data):
    if data is not None:
        disk.write_atomic("/d/leader-epoch-checkpoint", data)
    assert LeaderEpochs(disk, "/d").load() is False


def test_an_epoch_keeps_its_first_offset(epochs):
    epochs.assign(4, 40)
    assert epochs.entries == ((1, 0), (3, 10), (4, 25))


def test_an_epoch_without_records_is_superseded(epochs):
    epochs.assign(6, 25)
    assert epochs.entries == ((1, 0), (3, 10), (6, 25))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 10)), (2, (1, 10)), (3, (3, 25)), (4, (4, 99)), (5, (-1, -1))],
)
def test_the_end_of_an_epoch_is_where_the_next_begins(epochs, asked, answer):
    assert epochs.end_offset_for(asked, 99) == answer


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (24, 3), (25, 4), (99, 4)])
def test_an_offset_belongs_to_the_epoch_that_began_before_it(epochs, offset, epoch):
    assert epochs.epoch_for(offset) == epoch


def test_epochs_behind_a_truncated_end_are_forgotten(epochs):
    epochs.truncate_from_end(10)
    assert (epochs.entries, epochs.latest) == (((1, 0),), 1)


def test_epochs_before_a_new_start_are_forgotten_and_the_current_one_begins_there(epochs):
    epochs.truncate_from_start(12)
    assert epochs.entries == ((3, 12), (4, 25))


def test_an_epoch_that_could_not_be_written_has_not_begun(monkeypatch):
    file_system = MemoryFileSystem()
    file_system.make_dirs("/log")
    epochs = LeaderEpochs(file_system, "/log")

    def refuse(path, data, *, durable):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_system, "write_atomic", refuse)
        with pytest.raises(OSError, match="No space"):
            epochs.assign(3, 10)
    epochs.assign(3, 12)
    again = LeaderEpochs(file_system, "/log")
    assert (again.load(), again.entries) == (True, ((3, 12),))
