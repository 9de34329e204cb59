"""An observer follows the leader's log, byte for byte, through elections, divergence, snapshots and restarts."""

import pytest

from odradek.controller.metadata.snapshot_files import SnapshotId
from odradek.controller.quorum.leader_discovery import Leader
from odradek.controller.quorum.observer import ObserverFailed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch
from odradek.protocol.metadata_records.log_control import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from odradek.protocol.records import Record, build_batch
from tests.client.net import settle
from tests.controller.quorum.fake_quorum import CLUSTER_ID, LOG_DIR, METADATA_VERSION, NOW_MS, OBSERVER_ID, batch_of, topic


def segment(file_system, base_offset=0):
    return file_system.read_bytes(f"{LOG_DIR}/{base_offset:020}.log")


async def test_the_copy_is_the_leaders_log(quorum, file_system, follow):
    leader = quorum.elect(2, epoch=3)
    leader.append([METADATA_VERSION], topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    assert segment(file_system) == leader.data
    assert sorted(following.image.topics) == ["t0", "t1"]
    assert following.observer.leader == Leader(2, "c2", 9093, 3)


async def test_the_leader_is_told_who_asks_and_from_where(quorum, follow):
    leader = quorum.elect(2, epoch=3)
    leader.append(topic(0))
    following = await follow(fetch_max_wait_ms=123, fetch_max_bytes=4567)
    await following.caught_up(leader)
    await following.until(lambda: leader.asked.topics[0].partitions[0].high_watermark == 1)
    request = leader.asked
    [partition] = request.topics[0].partitions
    assert (request.cluster_id, request.replica_state.replica_id) == (CLUSTER_ID, OBSERVER_ID)
    assert (request.max_wait_ms, request.max_bytes) == (123, 4567)
    assert (partition.fetch_offset, partition.current_leader_epoch, partition.last_fetched_epoch) == (1, 3, 3)
    assert partition.replica_directory_id.int == 99


@pytest.fixture
def leader(quorum):
    return quorum.elect(1, epoch=1)


async def test_what_is_not_committed_is_kept_and_not_replayed(leader, file_system, follow):
    leader.append(topic(0))
    leader.append(topic(1), commits=False)
    following = await follow()
    await following.until(lambda: following.log.end_offset == 2)
    await following.until(lambda: following.log.high_watermark == 1)
    assert segment(file_system) == leader.data
    assert list(following.image.topics) == ["t0"]
    leader.high_watermark = 2
    await following.caught_up(leader)
    assert list(following.image.topics) == ["t0", "t1"]


async def test_nobody_is_told_of_half_an_image(leader, follow):
    leader.append(*(topic(number) for number in range(20)))
    following = await follow(fetch_max_bytes=1)
    await following.caught_up(leader)
    assert following.told.topics == [sorted(f"t{number}" for number in range(20))]
    [delta] = following.told.deltas
    assert len(delta.topics) == 20
    leader.append(topic(20), topic(21))
    await following.caught_up(leader)
    assert [len(delta.topics) for delta in following.told.deltas[1:]] == [1, 1]


async def test_a_record_of_a_transaction_takes_effect_when_it_ends(leader, follow):
    leader.append(topic(0))
    following = await follow()
    await following.caught_up(leader)
    before = len(leader.data)
    leader.append([BeginTransactionRecord(name="t")], topic(1))
    await following.caught_up(leader)
    assert list(following.image.topics) == ["t0"]
    # No snapshot may be written now: it could not say what the transaction has so far.
    assert following.generator.appended_bytes == []
    leader.append([EndTransactionRecord()])
    await following.caught_up(leader)
    assert list(following.image.topics) == ["t0", "t1"]
    assert following.generator.appended_bytes == [len(leader.data) - before]
    leader.append([BeginTransactionRecord(name="t")], topic(2), [AbortTransactionRecord(reason="no")], topic(3))
    await following.caught_up(leader)
    assert list(following.image.topics) == ["t0", "t1", "t3"]


async def test_what_is_no_metadata_is_committed_too(leader, follow):
    leader.append(topic(0))
    leader.append_control()
    following = await follow()
    await following.caught_up(leader)
    leader.append_control()
    await following.caught_up(leader)
    assert following.follower.applied_offset == 3


async def test_who_waits_for_the_image_is_called_once_when_it_has_caught_up(quorum, follow):
    following = await follow(fetch_max_bytes=1)
    calls = []
    following.follower.on_caught_up = lambda: calls.append(sorted(following.image.topics))
    leader = quorum.elect(1, epoch=1)
    leader.append(topic(0), topic(1))
    await following.caught_up(leader)
    leader.append(topic(2))
    await following.caught_up(leader)
    assert calls == [["t0", "t1"]]


async def test_the_next_leader_is_found_when_the_leader_dies(leader, quorum, follow):
    leader.append(topic(0))
    following = await follow()
    await following.caught_up(leader)
    quorum.kill(1)
    successor = quorum.elect(3, epoch=2, told=(2, 3))
    successor.batches = list(leader.batches)
    successor.append(topic(1))
    await following.caught_up(successor)
    assert [each and (each.node_id, each.epoch) for each in following.leaders] == [(1, 1), (3, 2)]


async def test_a_log_that_diverged_ends_where_the_leaders_epoch_does(leader, quorum, file_system, follow):
    leader.append(topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    shared = list(leader.batches)
    leader.append(topic(2), topic(3), commits=False)
    await following.until(lambda: following.log.end_offset == 4)
    quorum.kill(1)
    successor = quorum.elect(2, epoch=4, told=(2, 3))
    successor.batches = shared
    successor.append(topic(5))
    await following.caught_up(successor)
    assert segment(file_system) == successor.data
    assert list(following.image.topics) == ["t0", "t1", "t5"]


async def test_a_leader_that_takes_back_what_was_committed_is_not_followed(leader, quorum, follow):
    leader.append(topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    quorum.kill(1)
    successor = quorum.elect(2, epoch=2, told=(2, 3))
    successor.batches = leader.batches[:1]
    successor.append(topic(5))
    await following.until(following.task.done)
    with pytest.raises(ObserverFailed, match="records up to 2 are committed"):
        await following.task


async def test_a_snapshot_that_lacks_what_was_committed_is_not_taken(leader, quorum, follow):
    leader.append(topic(0), topic(1), topic(2))
    following = await follow()
    await following.caught_up(leader)
    quorum.kill(1)
    successor = quorum.elect(2, epoch=2, told=(2, 3))
    successor.begin_at(SnapshotId(2, 2), [])
    await following.until(following.task.done)
    with pytest.raises(ObserverFailed, match="snapshot ends at 2, but records up to 3 are committed"):
        await following.task


async def test_a_disk_that_fails_ends_it_with_one_line(leader, file_system, follow):
    leader.append(topic(0))
    following = await follow()
    await following.caught_up(leader)
    del file_system.files[f"{LOG_DIR}/{0:020}.log"]
    following.log._log.segments.active.release_file()
    leader.append(topic(1))
    await following.until(following.task.done)
    with pytest.raises(ObserverFailed, match=LOG_DIR):
        await following.task


async def test_an_election_is_written_down_once(quorum, file_system, follow):
    written = []
    write_atomic = file_system.write_atomic

    def recorded(path, data, *, durable=True):
        if path.endswith("quorum-state"):
            written.append((data, durable))
        write_atomic(path, data, durable=durable)

    file_system.write_atomic = recorded
    leader = quorum.elect(1, epoch=1)
    leader.append(topic(0))
    following = await follow()
    await following.caught_up(leader)
    leader.append(topic(1))
    await following.caught_up(leader)
    [(data, durable)] = written
    assert b'"leaderId":1,"leaderEpoch":1' in data
    assert durable


async def test_a_restart_goes_on_where_the_copy_ends(quorum, file_system, follow):
    leader = quorum.elect(2, epoch=3)
    leader.append(topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    await follow.stop()
    for controller in quorum.controllers.values():
        controller.asked = None
    leader.append(topic(2))
    leader.instead = [None]
    following = await follow()
    # The leader of the last run is asked first, for what follows; nothing is replayed before it has told the high watermark.
    assert quorum.controllers[1].asked is quorum.controllers[3].asked is None
    assert following.image.topics == {}
    await following.caught_up(leader)
    assert segment(file_system) == leader.data
    assert sorted(following.image.topics) == ["t0", "t1", "t2"]
    assert following.generator.found_bytes == len(leader.data)


async def test_a_restart_knows_the_epoch_of_an_election_without_a_leader(quorum, follow):
    leader = quorum.elect(2, epoch=3)
    leader.append(topic(0))
    following = await follow()
    await following.caught_up(leader)
    for controller in quorum.controllers.values():
        controller.epoch, controller.leader_id = 9, -1
    await following.until(lambda: following.observer.leader is None)
    following = await follow()
    assert {each.asked.topics[0].partitions[0].current_leader_epoch for each in quorum.controllers.values()} == {9}


async def test_another_cluster_is_not_followed(leader, quorum, follow):
    leader.append(topic(0))
    for controller in quorum.controllers.values():
        controller.instead = [fetch.FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)] * 1000
    following = await follow()
    for _ in range(5):
        following.clock.advance(100)
        await settle()
    assert (following.log.end_offset, following.observer.leader) == (0, None)
    for controller in quorum.controllers.values():
        controller.instead = []
    await following.caught_up(leader)


async def test_spoilt_records_are_fetched_again(leader, file_system, follow):
    leader.append(topic(0), topic(1))
    spoilt = bytearray(leader.data)
    spoilt[-1] ^= 1
    whole = leader.answer(1, 17, _request(leader))
    partition = whole.responses[0].partitions[0]._replace(records=bytes(spoilt))
    leader.instead = [whole._replace(responses=[whole.responses[0]._replace(partitions=[partition])])]
    following = await follow()
    await following.caught_up(leader)
    assert segment(file_system) == leader.data


@pytest.mark.parametrize("offsets", [[0], [2, 5, 3]], ids=["again", "out of order"])
async def test_other_records_than_those_asked_for_end_it(leader, follow, offsets):
    leader.append(topic(0), topic(1))
    following = await follow()
    await following.caught_up(leader)
    leader.batches = [batch_of(topic(0), offset, 1) for offset in offsets]
    leader.instead = [leader.answer(1, 17, _request(leader))] * 3
    await following.until(following.task.done)
    with pytest.raises(ObserverFailed, match="c1:9093 sent other records"):
        await following.task


async def test_a_record_of_a_newer_controller_ends_it_with_one_line(leader, follow):
    leader.append(topic(0))
    unknown = build_batch([Record(timestamp=NOW_MS, value=bytes((1, 99, 0)))], base_offset=1, leader_epoch=1)
    leader.batches.append(unknown)
    leader.high_watermark = 2
    following = await follow()
    await following.until(following.task.done)
    with pytest.raises(ObserverFailed) as failed:
        await following.task
    assert str(failed.value) == (
        f"{LOG_DIR}/{0:020}.log, offset 1: a metadata record of unknown type 99, version 0;"
        " a newer broker wrote it: use that broker, or a newer odradek"
    )


async def test_a_node_that_does_not_answer_is_logged_once(quorum, follow, capsys):
    leader = quorum.elect(2, epoch=1)
    leader.append(topic(0))
    quorum.kill(1)
    quorum.kill(3)
    following = await follow()
    await following.caught_up(leader)
    quorum.kill(2)
    following.clock.advance(100)
    for _ in range(20):
        await settle()
        following.clock.advance(100)
    refused = [line for line in capsys.readouterr().err.splitlines() if "refused" in line]
    told = [line.partition('"reason"')[0] for line in refused]
    assert sorted(told) == sorted(set(told))
    assert any("c2:9093" in node for node in told)


def _request(leader):
    """A Fetch from the log's beginning, of which the answer is changed."""
    from odradek.controller.quorum.fetch_messages import LogPosition, ObserverIdentity, fetch_request

    identity = ObserverIdentity(CLUSTER_ID, OBSERVER_ID, None)
    return fetch_request(identity, leader.epoch, LogPosition(0, leader.start.epoch, None), max_wait_ms=0, max_bytes=10_000)
