"""Followers fetch from their leader: logs grow alike, diverge and come together again, and nothing acknowledged is lost."""

from random import Random

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.replica.small_cluster import NODES


def ends(cluster):
    return [node.log.log_end_offset for node in cluster.nodes.values()]


async def test_followers_have_the_leaders_log_byte_for_byte_and_its_high_watermark(cluster):
    for _ in range(30):
        cluster.produce(3)
        await cluster.turn()
    await cluster.quiet()
    assert len(cluster.leader.log.segments) > 3
    assert len(cluster.acknowledged) == 90
    assert len({node.data for node in cluster.nodes.values()}) == 1


async def test_a_follower_that_is_cut_off_leaves_the_isr_and_comes_back(cluster):
    cluster.produce()
    await cluster.quiet()
    cluster.nodes[3].stop_following()
    for _ in range(60):
        cluster.produce()
        await cluster.turn()
    assert cluster.isr == {1, 2}
    assert len(cluster.acknowledged) > 50
    cluster.nodes[3].follow(cluster.leader, cluster.epoch)
    await cluster.quiet()


async def test_records_that_a_dead_leader_alone_had_are_cut_off(cluster):
    cluster.produce(2)
    await cluster.quiet()
    for node_id in (2, 3):
        cluster.nodes[node_id].stop_following()
    cluster.produce(5)
    assert ends(cluster) == [7, 2, 2]
    cluster.elect(2, cut_off=[1])
    cluster.produce(1)
    await cluster.turn()
    cluster.nodes[1].follow(cluster.leader, cluster.epoch)
    await cluster.quiet()
    assert ends(cluster) == [3, 3, 3]
    assert sorted(cluster.acknowledged) == [0, 1, 2]


async def test_a_follower_of_several_leaders_records_goes_back_epoch_by_epoch(cluster):
    cluster.produce(2)
    await cluster.quiet()
    for node_id in (2, 3):
        cluster.nodes[node_id].stop_following()
    cluster.produce(3)
    # 1 leads on without being told of 2, which leads, alone too, and then 3.
    cluster.elect(2, cut_off=[1, 3])
    cluster.nodes[2].partition.append(batch(b"of 2"), 0)
    cluster.elect(3, cut_off=[1, 2])
    cluster.nodes[3].partition.append(batch(b"of 3"), 0)
    for node_id in (1, 2):
        cluster.nodes[node_id].follow(cluster.leader, cluster.epoch)
    await cluster.quiet()
    assert [value for _, value in cluster.nodes[1].records()][2:] == [b"of 3"]


async def test_a_leader_that_has_written_nothing_follows_the_next_and_nothing_is_cut_off(cluster):
    cluster.produce(2)
    await cluster.quiet()
    cluster.elect(2)
    assert cluster.leader.log.leader_epochs.entries == ((1, 0), (2, 2))
    cluster.elect(1)
    for _ in range(3):
        await cluster.turn()
    # As far as its records go, it was told; and it asks for no more than is there.
    follower = cluster.nodes[2]
    assert follower.log.leader_epochs.entries == ((1, 0),)
    assert (follower.log.log_end_offset, follower.log.truncations) == (2, 0)
    assert cluster.leader.partition.leader.followers.follower(2).log_end_offset == 2
    cluster.produce()
    await cluster.quiet()
    assert all(node.log.leader_epochs.entries == ((1, 0), (3, 2)) for node in cluster.nodes.values())


def batch(value):
    from odradek.protocol.records import Record, build_batch

    return build_batch([Record(timestamp=0, value=value)])


async def test_a_follower_whose_end_the_leader_has_deleted_begins_anew_at_the_leaders_start(cluster):
    cluster.nodes[3].stop_following()
    for _ in range(60):
        cluster.produce(5)
        await cluster.turn()
    log = cluster.leader.log
    log.delete_records_before(200)
    log.retention.release_old_segments(0)
    cluster.nodes[3].follow(cluster.leader, cluster.epoch)
    for _ in range(40):
        await cluster.turn()
    follower = cluster.nodes[3]
    assert follower.log.log_start_offset == 200
    assert follower.records() == cluster.leader.records()


async def test_the_leaders_log_start_offset_reaches_its_followers(cluster):
    cluster.produce(10)
    await cluster.quiet()
    cluster.leader.log.delete_records_before(6)
    cluster.produce()
    for _ in range(10):
        await cluster.turn()
    assert [node.log.log_start_offset for node in cluster.nodes.values()] == [6, 6, 6]


async def test_a_leader_that_does_not_answer_is_asked_again(cluster):
    cluster.produce()
    await cluster.quiet()
    net = cluster.leader.net
    net.refuses = True
    for link in net.links:
        link.lose()
    cluster.produce()
    for _ in range(10):
        await cluster.turn()
    assert ends(cluster) == [2, 1, 1]
    net.refuses = False
    await cluster.quiet()


async def test_after_an_answer_that_was_lost_the_fetch_session_begins_anew(cluster, monkeypatch):
    cluster.produce()
    await cluster.quiet()
    asked = []
    answer = cluster.leader.net._answer

    def note(api_key, version, request):
        asked.append(request.session_epoch)
        return answer(api_key, version, request)

    for link in cluster.leader.net.links:
        link.lose()
    monkeypatch.setattr(cluster.leader.net, "_answer", note)
    cluster.produce()
    await cluster.quiet()
    assert asked[:2] == [0, 0]


async def test_a_follower_is_told_the_end_of_the_log_and_a_consumer_that_of_what_is_replicated(cluster):
    for node_id in (2, 3):
        cluster.nodes[node_id].stop_following()
    cluster.produce(4)
    asked = [ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])]
    told = [
        cluster.leader.answer(ApiKey.LIST_OFFSETS, 4, ListOffsetsRequest(replica_id=replica_id, topics=asked))
        for replica_id in (2, -1)
    ]
    assert [response.topics[0].partitions[0].offset for response in told] == [4, 0]


async def test_a_fetch_session_that_the_leader_has_forgotten_begins_anew(cluster):
    cluster.produce()
    await cluster.quiet()
    cluster.leader.fetch_sessions._sessions.clear()
    cluster.produce()
    await cluster.quiet()
    assert len(cluster.leader.fetch_sessions) == 2


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_what_was_acknowledged_is_there_and_logs_agree(cluster, seed):
    rng = Random(seed)
    believers = set()
    for _ in range(120):
        chance = rng.random()
        if chance < 0.45:
            cluster.produce(rng.randint(1, 4))
        elif chance < 0.55 and believers:
            # One that does not know that it leads no more.
            cluster.produce(1, rng.choice(sorted(believers)))
        elif chance < 0.65:
            cluster.nodes[rng.choice([node_id for node_id in NODES if node_id != cluster.leader_id])].stop_following()
        elif chance < 0.75:
            for node_id in NODES:
                if node_id != cluster.leader_id:
                    cluster.nodes[node_id].follow(cluster.leader, cluster.epoch)
            believers.clear()
        elif chance < 0.82:
            candidates = sorted(cluster.isr - {cluster.leader_id})
            if candidates:
                is_cut_off = rng.random() < 0.5
                old = cluster.leader_id
                cluster.elect(rng.choice(candidates), cut_off=[old] if is_cut_off else [])
                believers = {old} if is_cut_off else set()
        await cluster.turn(rng.choice([1, 20, 300]))
        there = dict(cluster.leader.records())
        for offset, value in cluster.acknowledged.items():
            assert there[offset] == value
        marks = [node.partition.high_watermark for node in cluster.nodes.values() if node.node_id not in believers]
        agreed = [node.records(min(marks)) for node in cluster.nodes.values() if node.node_id not in believers]
        assert all(records == agreed[0] for records in agreed)
    for node_id in NODES:
        if node_id != cluster.leader_id:
            cluster.nodes[node_id].follow(cluster.leader, cluster.epoch)
    await cluster.quiet()
    assert cluster.acknowledged.items() <= dict(cluster.leader.records()).items()


async def test_an_answer_to_a_request_at_an_older_epoch_does_not_stop_a_partition(cluster):
    cluster.produce(2)
    await cluster.quiet()
    leader, follower = cluster.leader, cluster.nodes[3]
    epoch = cluster.epoch + 1

    def answer(api_key, version, request):
        response = leader.answer(api_key, version, request)
        if api_key == ApiKey.FETCH and follower.partition.leader_epoch < epoch:
            # The metadata tell of the same leader's new epoch while the answer is on its way.
            follower.partition.become_follower(leader.node_id, epoch)
            follower.fetcher.follow([follower.partition])
        return response

    leader.net._answer = answer
    leader.lead(epoch, cluster.partition_epoch + 1, cluster.isr)
    cluster.epoch, cluster.partition_epoch = epoch, cluster.partition_epoch + 1
    follower.follow(leader, epoch - 1)
    cluster.nodes[2].follow(leader, epoch)
    cluster.produce(3)
    await cluster.quiet()
    assert follower.partition.leader_epoch == epoch
    assert ends(cluster) == [5, 5, 5]
