from uuid import UUID

import pytest

from odradek.protocol.texts import new_uuid_text, uuid_text
from odradek.storage.directories import checkpoints

TOPIC_ID = UUID("e72c2047-1c92-4b75-8631-c9da2f59a383")


def test_an_offset_checkpoint_reads_as_kafkas(disk):
    checkpoints.write_offsets(disk, "/d/c", {("a", 0): 5, ("b.c", 12): 7})
    assert disk.read_bytes("/d/c") == b"0\n2\na 0 5\nb.c 12 7\n"
    assert checkpoints.read_offsets(disk, "/d/c") == {("a", 0): 5, ("b.c", 12): 7}


def test_a_checkpoint_that_is_not_there_is_empty(disk):
    assert checkpoints.read_offsets(disk, "/d/c") == {}


@pytest.mark.parametrize(
    "data", [b"", b"0\n", b"1\n0\n", b"0\n2\na 0 5\n", b"0\n1\na 0\n", b"0\nx\n", b"\xff\xfe", b"0\n1\na 0 x\n", b"0\n1\na 0 1"]
)
def test_a_damaged_checkpoint_is_refused(disk, data):
    disk.write_atomic("/d/c", data)
    with pytest.raises(ValueError):
        checkpoints.read_offsets(disk, "/d/c")


def test_partition_metadata_reads_as_kafkas(disk):
    checkpoints.write_topic_id(disk, "/d", TOPIC_ID)
    assert disk.read_bytes("/d/partition.metadata") == b"version: 0\ntopic_id: 5ywgRxySS3WGMcnaL1mjgw"
    assert checkpoints.read_topic_id(disk, "/d") == TOPIC_ID


@pytest.mark.parametrize("data", [b"", b"version: 1\ntopic_id: 5ywgRxySS3WGMcnaL1mjgw", b"version: 0\ntopic_id: short"])
def test_damaged_partition_metadata_is_refused(disk, data):
    disk.write_atomic("/d/partition.metadata", data)
    with pytest.raises(ValueError):
        checkpoints.read_topic_id(disk, "/d")


def test_meta_properties_of_kafka_are_understood(disk):
    disk.write_atomic("/d/meta.properties", b"#\n#Sat Nov 21 12:44:12 UTC 2026\ncluster.id=x\nversion=1\nnode.id=1\n")
    assert checkpoints.read_meta_properties(disk, "/d") == {"cluster.id": "x", "version": "1", "node.id": "1"}


def test_a_deleted_directory_has_kafkas_name_whatever_the_length(disk):
    unique = "0123456789abcdef0123456789abcdef"
    assert checkpoints.deleted_path("/d/my-topic-3", unique) == f"/d/my-topic-3.{unique}-delete"
    longest = checkpoints.deleted_path(f"/d/{'t' * 249}-12", unique).rpartition("/")[2]
    assert (len(longest), longest.endswith(f"-12.{unique}-delete")) == (255, True)


def test_no_dash_begins_a_new_uuid():
    drawn = [UUID(int=0xF8 << 120), UUID(int=0xFB << 120), UUID(int=1)]
    texts = [uuid_text(each) for each in drawn]
    assert [text[0] for text in texts] == ["-", "-", "A"]
    assert new_uuid_text(iter(drawn).__next__) == texts[2]
