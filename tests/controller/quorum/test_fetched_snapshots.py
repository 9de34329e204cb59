"""A snapshot of the leader's takes the place of log and image."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from odradek.controller.metadata.snapshot_files import SnapshotId
from odradek.controller.metadata.snapshot_generator import write_bootstrap
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch_snapshot
from odradek.protocol.metadata_records import ConfigRecord, RemoveTopicRecord
from odradek.protocol.metadata_records.log_control import BeginTransactionRecord
from odradek.timing.clock import VirtualClock
from tests.client.net import settle
from tests.controller.metadata.storage_doubles import Killed, MortalFileSystem
from tests.controller.quorum.fake_quorum import DATA_DIR, LOG_DIR, METADATA_VERSION, Following, Quorum, topic
from tests.memory_filesystem import MemoryFile

SNAPSHOT = SnapshotId(100, 4)
RETENTION = ConfigRecord(resource_type=2, resource_name="t1", name="retention.ms", value="1")
CONTENT = [METADATA_VERSION, *topic(1), RETENTION, *topic(2)]


@pytest.fixture
def leader(quorum):
    """A leader whose log begins at a snapshot, with one change behind it."""
    leader = quorum.elect(1, epoch=5)
    leader.begin_at(SNAPSHOT, CONTENT)
    leader.append(topic(3))
    return leader


def names(file_system):
    return sorted(name for name in file_system.list_dir(LOG_DIR) if name.endswith((".log", ".checkpoint", ".part")))


async def test_an_empty_copy_begins_at_the_leaders_snapshot(leader, file_system, follow):
    following = await follow(fetch_snapshot_max_bytes=10)
    await following.caught_up(leader)
    assert names(file_system) == ["00000000000000000100-0000000004.checkpoint", "00000000000000000100.log"]
    assert file_system.read_bytes(f"{LOG_DIR}/{SNAPSHOT.name}") == leader.snapshots[SNAPSHOT]
    assert file_system.read_bytes(f"{LOG_DIR}/{100:020}.log") == leader.data
    assert sorted(following.image.topics) == ["t1", "t2", "t3"]
    assert following.image.configs(2, "t1") == {"retention.ms": "1"}
    assert [len(delta.topics) for delta in following.told.deltas] == [3]


async def test_a_copy_has_the_leaders_records_and_not_those_its_own_directory_was_formatted_with(quorum, file_system, follow):
    write_bootstrap(file_system, DATA_DIR, topic(9), 0)
    leader = quorum.elect(1, epoch=4)
    leader.append([METADATA_VERSION], topic(1))
    for _ in range(2):
        following = await follow()
        await following.caught_up(leader)
        assert sorted(following.image.topics) == ["t1"]
        assert following.image.features == {"metadata.version": METADATA_VERSION.feature_level}


async def test_a_copy_that_lags_is_replaced_and_the_difference_told(quorum, file_system, follow):
    leader = quorum.elect(1, epoch=4)
    leader.append([METADATA_VERSION], topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    kept = following.image.topics["t1"]
    # The observer hears nothing meanwhile.
    leader.instead = [None]
    await following.until(lambda: not leader.instead)
    leader.begin_at(SNAPSHOT, CONTENT)
    await following.until(lambda: following.log.start_offset == SNAPSHOT.end_offset)
    await following.caught_up(leader)
    assert names(file_system) == ["00000000000000000100-0000000004.checkpoint", "00000000000000000100.log"]
    assert sorted(following.image.topics) == ["t1", "t2"]
    assert following.image.topics["t1"] is kept
    delta = following.told.deltas[-1]
    assert [each.topic.name for each in delta.topics.values()] == ["t2"]
    assert [each.name for each in delta.deleted_topics] == ["t0"]
    assert list(delta.configs) == [(2, "t1")]
    assert delta.features == {}
    leader.append([RemoveTopicRecord(topic_id=kept.topic_id)])
    await following.caught_up(leader)
    assert list(following.image.topics) == ["t2"]


async def test_a_restart_begins_with_the_snapshot(leader, file_system, follow):
    following = await follow()
    await following.caught_up(leader)
    leader.append(topic(4))
    following = await follow()
    assert following.log.start_offset == SNAPSHOT.end_offset
    await following.caught_up(leader)
    assert sorted(following.image.topics) == ["t1", "t2", "t3", "t4"]
    assert [len(delta.topics) for delta in following.told.deltas] == [4]


async def test_a_snapshot_that_the_leader_has_removed_is_asked_for_anew(leader, follow):
    following = await follow(fetch_snapshot_max_bytes=1)
    await following.until(lambda: following.observer.is_fetching_snapshot)
    later = SnapshotId(200, 5)
    leader.begin_at(later, [*CONTENT, *topic(9)])
    await following.caught_up(leader)
    assert (following.log.start_offset, sorted(following.image.topics)) == (200, ["t1", "t2", "t9"])


async def test_a_snapshot_is_fetched_anew_from_the_next_leader(quorum, leader, file_system, follow):
    following = await follow(fetch_snapshot_max_bytes=1)
    await following.until(lambda: following.observer.is_fetching_snapshot)
    quorum.kill(1)
    successor = quorum.elect(2, epoch=6, told=(2, 3))
    successor.begin_at(SnapshotId(150, 5), [*CONTENT, *topic(7)])
    await following.caught_up(successor)
    assert names(file_system) == ["00000000000000000150-0000000005.checkpoint", "00000000000000000150.log"]
    assert sorted(following.image.topics) == ["t1", "t2", "t7"]


async def test_a_snapshot_is_not_put_together_of_two_leaders(quorum, leader, file_system, follow):
    following = await follow(fetch_snapshot_max_bytes=1)
    await following.until(lambda: following.observer.is_fetching_snapshot)
    quorum.kill(1)
    successor = quorum.elect(2, epoch=6, told=(2, 3))
    # The same records, in another order.
    successor.begin_at(SNAPSHOT, [METADATA_VERSION, *topic(2), *topic(1), RETENTION])
    successor.append(topic(3))
    assert len(successor.snapshots[SNAPSHOT]) == len(leader.snapshots[SNAPSHOT])
    await following.caught_up(successor)
    assert successor.positions[0] == 0
    assert file_system.read_bytes(f"{LOG_DIR}/{SNAPSHOT.name}") == successor.snapshots[SNAPSHOT]


async def test_a_snapshot_is_synced_before_it_has_its_name(leader, file_system, follow):
    happened = []

    class RecordedFile(MemoryFile):
        __slots__ = ()

        def sync(self):
            happened.append(("sync", bytes(self.data)))

    open_file, rename = file_system.open, file_system.rename

    def recorded_open(path, *, create=False):
        if create and path.endswith(".part"):
            file_system.files[path] = RecordedFile()
        return open_file(path, create=create)

    def recorded_rename(source, target):
        happened.append(("rename", source))
        rename(source, target)

    file_system.open, file_system.rename = recorded_open, recorded_rename
    following = await follow(fetch_snapshot_max_bytes=50)
    await following.caught_up(leader)
    path = f"{LOG_DIR}/{SNAPSHOT.name}.part"
    assert happened[:2] == [("sync", leader.snapshots[SNAPSHOT]), ("rename", path)]


async def test_a_transaction_that_was_open_when_a_snapshot_came_is_forgotten(quorum, follow):
    leader = quorum.elect(1, epoch=4)
    leader.append(topic(0), [BeginTransactionRecord(name="t")], topic(9))
    following = await follow()
    await following.caught_up(leader)
    leader.instead = [None]
    await following.until(lambda: not leader.instead)
    leader.begin_at(SNAPSHOT, CONTENT)
    leader.append(topic(3))
    await following.caught_up(leader)
    assert sorted(following.image.topics) == ["t1", "t2", "t3"]


def spoilt(data):
    return {"a bit": data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], "no footer": data[: len(data) - 79], "empty": b""}


@pytest.mark.parametrize("damage", ["a bit", "no footer", "empty"])
async def test_a_spoilt_snapshot_is_fetched_again(leader, file_system, follow, damage):
    whole = leader.snapshots[SNAPSHOT]
    chunk = spoilt(whole)[damage]
    answer = fetch_snapshot.PartitionSnapshot(
        snapshot_id=fetch_snapshot.SnapshotId(*SNAPSHOT),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(1, 5),
        size=len(chunk),
        unaligned_records=chunk,
    )
    topics = [fetch_snapshot.TopicSnapshot(name="__cluster_metadata", partitions=[answer])]
    leader.instead_of_chunks = [fetch_snapshot.FetchSnapshotResponse(topics=topics)]
    following = await follow()
    await following.caught_up(leader)
    assert leader.instead_of_chunks == []
    assert file_system.read_bytes(f"{LOG_DIR}/{SNAPSHOT.name}") == whole
    assert sorted(following.image.topics) == ["t1", "t2", "t3"]


async def killed_at(quorum, operations):
    """Whether the process is killed, at that operation of its disk, while a snapshot replaces its log; then it starts again."""
    leader = quorum.elect(1, epoch=4)
    leader.append([METADATA_VERSION], topic(0), topic(1))
    disk = MortalFileSystem()
    first = Following(quorum, disk, VirtualClock())
    async with running(first):
        await first.caught_up(leader)
        leader.begin_at(SNAPSHOT, CONTENT)
        leader.append(topic(3))
        disk.operations_left = operations
        with suppress(Killed):
            await first.caught_up(leader)
    disk.operations_left = None
    second = Following(quorum, disk, VirtualClock())
    async with running(second):
        await second.caught_up(leader)
    assert sorted(second.image.topics) == ["t1", "t2", "t3"]
    assert names(disk) == ["00000000000000000100-0000000004.checkpoint", "00000000000000000100.log"]
    return first.log.applied_offset != leader.high_watermark


@asynccontextmanager
async def running(following):
    following.task = asyncio.get_running_loop().create_task(following.observer.run())
    try:
        yield
    finally:
        following.task.cancel()
        with suppress(asyncio.CancelledError, Killed):
            await following.task
        await settle()


async def test_killed_anywhere_while_a_snapshot_takes_the_logs_place_a_start_goes_on():
    operations = 0
    while await killed_at(Quorum(), operations):
        operations += 1
    assert operations > 10


async def test_an_unknown_position_begins_the_snapshot_anew(leader, follow):
    following = await follow(fetch_snapshot_max_bytes=1)
    await following.until(lambda: following.observer.is_fetching_snapshot)
    answer = fetch_snapshot.PartitionSnapshot(
        error_code=ErrorCode.POSITION_OUT_OF_RANGE, current_leader=fetch_snapshot.LeaderIdAndEpoch(1, 5), unaligned_records=b""
    )
    topics = [fetch_snapshot.TopicSnapshot(name="__cluster_metadata", partitions=[answer])]
    leader.instead_of_chunks = [fetch_snapshot.FetchSnapshotResponse(topics=topics)]
    await following.caught_up(leader)
    assert sorted(following.image.topics) == ["t1", "t2", "t3"]
