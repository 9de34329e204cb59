"""Directories are what the metadata says, wherever a kill -9 came between the two."""

import shutil
from uuid import uuid4

import pytest

from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.storage.filesystem import RealFileSystem
from tests.controller.metadata.storage_doubles import Storage


@pytest.fixture
def open_storage(tmp_path):
    opened = []

    def open_again(*, observed=True):
        if opened:
            opened[-1].kill()
        opened.append(Storage(RealFileSystem(), str(tmp_path), observed=observed))
        return opened[-1]

    yield open_again
    opened[-1].kill()


def partition_directories(data_dir):
    return sorted(path.name for path in data_dir.iterdir() if path.is_dir() and path.name != "__cluster_metadata-0")


@pytest.fixture
def storage(open_storage):
    return open_storage()


def test_a_created_topic_has_its_directories(storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t", partition_count=2, configs=[("segment.bytes", "1048577")])])
    assert partition_directories(tmp_path) == ["t-0", "t-1"]
    assert storage.log_manager.logs["t", 1].topic_id == storage.controller.image.topics["t"].topic_id
    assert storage.log_manager.logs["t", 1].config.segment_bytes == 1048577


def test_a_deleted_topic_leaves_nothing(storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t", partition_count=2), NewTopic(name="other")])
    storage.append("t", 0)
    storage.controller.delete_topics([storage.controller.image.topics["t"].topic_id])
    assert partition_directories(tmp_path) == ["other-0"]
    assert list(storage.log_manager.logs) == [("other", 0)]


def test_a_topic_killed_before_its_directories_is_there_whole_after_a_restart(open_storage, tmp_path):
    open_storage(observed=False).controller.create_topics([NewTopic(name="t", partition_count=3)])
    assert partition_directories(tmp_path) == []
    open_storage()
    assert partition_directories(tmp_path) == ["t-0", "t-1", "t-2"]


def test_a_topic_killed_amid_its_directories_is_there_whole_after_a_restart(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t", partition_count=3)])
    shutil.rmtree(tmp_path / "t-2")
    for file in (tmp_path / "t-1").iterdir():
        file.unlink()
    storage = open_storage()
    assert {log.topic_id for log in storage.log_manager.logs.values()} == {storage.controller.image.topics["t"].topic_id}
    assert partition_directories(tmp_path) == ["t-0", "t-1", "t-2"]
    assert all((tmp_path / f"t-{partition}" / "partition.metadata").exists() for partition in range(3))


def test_partitions_killed_before_their_directories_are_there_after_a_restart(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t")])
    storage.append("t", 0)
    storage = open_storage(observed=False)
    storage.controller.create_partitions([NewPartitions(name="t", partition_count=3)])
    storage = open_storage()
    assert partition_directories(tmp_path) == ["t-0", "t-1", "t-2"]
    assert storage.end_offset("t", 0) == 1


def test_a_topic_killed_before_its_directories_went_is_gone_after_a_restart(open_storage, tmp_path):
    open_storage().controller.create_topics([NewTopic(name="t", partition_count=2)])
    storage = open_storage(observed=False)
    storage.controller.delete_topics([storage.controller.image.topics["t"].topic_id])
    assert partition_directories(tmp_path) == ["t-0", "t-1"]
    open_storage()
    assert partition_directories(tmp_path) == []


def test_a_topic_created_again_has_none_of_the_deleted_ones_records(storage, open_storage):
    storage.controller.create_topics([NewTopic(name="t")])
    storage.append("t", 0)
    storage = open_storage(observed=False)
    storage.controller.delete_topics([storage.controller.image.topics["t"].topic_id])
    storage.controller.create_topics([NewTopic(name="t")])
    assert open_storage().end_offset("t", 0) == 0


def test_a_directory_under_deletion_is_removed_at_the_start(open_storage, tmp_path):
    open_storage().controller.create_topics([NewTopic(name="t")])
    storage = open_storage(observed=False)
    storage.controller.delete_topics([storage.controller.image.topics["t"].topic_id])
    (tmp_path / "t-0").rename(tmp_path / f"t-0.{'a' * 32}-delete")
    open_storage()
    assert partition_directories(tmp_path) == []


def test_a_directory_nobody_knows_is_set_aside_and_kept(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t"), NewTopic(name="other")])
    storage.append("t", 0)
    storage.kill()
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    storage = open_storage()
    assert [name.rpartition("-")[2] for name in partition_directories(tmp_path)] == ["stray", "stray"]
    assert (storage.log_manager.logs, storage.warnings) == ({}, ["a directory of an unknown topic was set aside"] * 2)
    assert any(path.stat().st_size for path in tmp_path.glob("t-0.*-stray/*.log"))
    open_storage()
    assert len(partition_directories(tmp_path)) == 2


def test_a_partition_whose_topic_id_is_unreadable_gets_it_back_and_keeps_its_records(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t")])
    storage.append("t", 0)
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"")
    storage = open_storage()
    assert storage.end_offset("t", 0) == 1
    assert storage.log_manager.logs["t", 0].topic_id == storage.controller.image.topics["t"].topic_id


def test_a_corrupt_partition_stays_offline_and_is_not_created_anew(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t", partition_count=2)])
    for _ in range(3):
        storage.append("t", 0)
    (segment,) = (tmp_path / "t-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    segment.write_bytes(data)
    storage = open_storage()
    assert list(storage.log_manager.offline) == [("t", 0)]
    assert segment.read_bytes() == data
    assert storage.end_offset("t", 1) == 0


def test_a_topic_with_a_corrupt_partition_can_be_deleted(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t")])
    for _ in range(3):
        storage.append("t", 0)
    (segment,) = (tmp_path / "t-0").glob("*.log")
    segment.write_bytes(b"x" * 100 + segment.read_bytes()[100:])
    storage = open_storage()
    storage.controller.delete_topics([storage.controller.image.topics["t"].topic_id])
    assert partition_directories(tmp_path) == []


def test_a_partition_whose_directory_cannot_be_made_is_offline(open_storage, monkeypatch):
    open_storage(observed=False).controller.create_topics([NewTopic(name="t", partition_count=2)])
    make_dirs = RealFileSystem.make_dirs

    def fail_for_one(self, path):
        if path.endswith("/t-0"):
            raise OSError("no inodes")
        make_dirs(self, path)

    monkeypatch.setattr(RealFileSystem, "make_dirs", fail_for_one)
    storage = open_storage()
    assert storage.log_manager.offline == {("t", 0): "no inodes"}
    assert list(storage.log_manager.logs) == [("t", 1)]


def test_a_directory_of_another_topic_of_that_name_is_set_aside(storage, open_storage, tmp_path):
    storage.controller.create_topics([NewTopic(name="t")])
    storage.append("t", 0)
    (tmp_path / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: " + "A" * 21 + "g")
    assert open_storage().end_offset("t", 0) == 0
    assert [name.rpartition("-")[2] for name in partition_directories(tmp_path)] == ["0", "stray"]


def test_a_replica_among_others_is_created_in_the_directory_that_is_its_own(open_storage, tmp_path):
    storage = open_storage(observed=False)
    storage.controller.create_topics([NewTopic(name="t")])
    topic = storage.controller.image.topics["t"]
    [directory] = storage.log_manager.directories.online
    assert directory.identity is not None
    own, others = directory.identity.directory_id, uuid4()
    record = topic.partitions[0]._replace(replicas=(2, 1), isr=(2, 1), leader=2, directories=(others, own))
    storage.controller.write([record])
    storage = open_storage()
    assert storage.log_manager.offline == {}
    assert partition_directories(tmp_path) == ["t-0"]


def test_configs_of_a_topic_survive_a_restart(storage, open_storage):
    storage.controller.create_topics([NewTopic(name="t", configs=[("max.message.bytes", "77")])])
    assert open_storage().log_manager.logs["t", 0].config.max_message_bytes == 77
