"""A kill -9 at every single operation on files, of the change and of the start after it, ends in one consistent state."""

import pytest

from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from tests.controller.metadata.storage_doubles import Killed, MortalFileSystem, Storage

DATA_DIR = "/data"
MAX_OPERATIONS = 500


def create(storage):
    return storage.controller.create_topics([NewTopic(name="new", partition_count=3, configs=[("max.message.bytes", "77")])])


def delete(storage):
    return storage.controller.delete_topics([storage.controller.image.topics["old"].topic_id])


def create_again(storage):
    delete(storage)
    return storage.controller.create_topics([NewTopic(name="old", partition_count=2)])


def grow(storage):
    return storage.controller.create_partitions([NewPartitions(name="old", partition_count=5)])


def prepared():
    """A data directory with topic `old`, three partitions and a record in the first."""
    file_system = MortalFileSystem()
    storage = Storage(file_system, DATA_DIR)
    storage.controller.create_topics([NewTopic(name="old", partition_count=3)])
    storage.append("old", 0)
    storage.kill()
    return file_system


def killed_after(file_system, operations, act):
    """Whether ``act`` was killed, having had ``operations``."""
    file_system.operations_left = operations
    try:
        act()
    except Killed:
        return True
    finally:
        file_system.operations_left = None
    return False


def assert_consistent(storage, file_system):
    image = storage.controller.image
    partitions = {(topic.name, record.partition_id): topic.topic_id for topic, record in image.partitions()}
    assert {key: log.topic_id for key, log in storage.log_manager.logs.items()} == partitions
    assert storage.log_manager.offline == {}
    directories = {name for name in file_system.list_dir(DATA_DIR) if not file_system.files.get(f"{DATA_DIR}/{name}")}
    assert directories == {f"{topic}-{partition}" for topic, partition in partitions} | {"__cluster_metadata-0"}
    for topic in image.topics.values():
        assert len(topic.partitions) == {"new": 3, "old": len(topic.partitions)}[topic.name]
        assert storage.log_manager.logs[topic.name, 0].config.max_message_bytes == (77 if topic.name == "new" else 1048588)


@pytest.mark.parametrize("change", [create, delete, create_again, grow])
def test_a_change_killed_anywhere_is_done_or_not_done(change):
    outcomes = set()
    for operations in range(MAX_OPERATIONS):
        file_system = prepared()
        storage = Storage(file_system, DATA_DIR)
        before = storage.controller.image.topics["old"].topic_id
        killed = killed_after(file_system, operations, lambda storage=storage: change(storage))
        storage.kill()
        storage = Storage(file_system, DATA_DIR)
        assert_consistent(storage, file_system)
        old = storage.controller.image.topics.get("old")
        if old is not None:
            assert len(old.partitions) in ({3, 5} if old.topic_id == before else {2})
            assert storage.end_offset("old", 0) == (1 if old.topic_id == before else 0)
        outcomes.add(tuple((name, len(topic.partitions)) for name, topic in sorted(storage.controller.image.topics.items())))
        if not killed:
            break
    assert not killed
    assert len(outcomes) == (3 if change is create_again else 2)


@pytest.mark.parametrize("change", [create, delete, create_again, grow])
def test_a_start_killed_anywhere_is_made_good_by_the_next(change):
    for operations in range(MAX_OPERATIONS):
        file_system = prepared()
        storage = Storage(file_system, DATA_DIR, observed=False)
        change(storage)
        storage.kill()
        killed = killed_after(file_system, operations, lambda file_system=file_system: Storage(file_system, DATA_DIR).kill())
        storage = Storage(file_system, DATA_DIR)
        assert_consistent(storage, file_system)
        if not killed:
            break
    assert not killed


def test_producer_ids_of_a_killed_allocation_are_not_given_to_two():
    for operations in range(MAX_OPERATIONS):
        file_system = prepared()
        given = []
        storage = Storage(file_system, DATA_DIR)
        killed = killed_after(
            file_system, operations, lambda storage=storage, given=given: given.append(storage.controller.next_producer_id())
        )
        storage.kill()
        assert Storage(file_system, DATA_DIR).controller.next_producer_id() not in given
        if not killed:
            break
    assert not killed
