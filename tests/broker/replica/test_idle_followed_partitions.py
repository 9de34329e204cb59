"""A follower names, and looks at, the partitions that have changed, and no others."""

import pytest

from odradek.broker.replica.followed_partition import FollowedPartition
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replica_fetcher import FetcherConfig, ReplicaFetcher
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.broker.replica.many_partitions import EPOCH, FOLLOWERS, LeadingBroker, Reader
from tests.broker.replica.replication_bed import FIRST, LEADER, SECOND, TOPIC_ID, memory_log
from tests.broker.replica.small_cluster import with_bytes

BACKOFF_MS = 100


class Link:
    """The follower's connection to the leader. ``named`` and ``forgotten`` are of the last request."""

    def __init__(self, leader):
        self.leader = leader
        self.named = {}
        self.forgotten = []

    async def request(self, _, request):
        self.named = {each.partition: each for topic in request.topics for each in topic.partitions}
        self.forgotten = [index for topic in request.forgotten_topics_data for index in topic.partitions]
        response = self.leader.handle(request)
        if isinstance(response, Reply):
            answers = []
            response.when_done(answers.append)
            [response] = answers
        return with_bytes(response)

    def close(self):
        pass


class Following:
    """The first follower, with replicas of all the leader's partitions. ``fetch`` is one turn of its fetcher."""

    def __init__(self, count):
        self.leader = LeadingBroker(count)
        self.link = Link(self.leader)
        self.fetcher = ReplicaFetcher(
            self.link,
            Timer(self.leader.clock),
            FIRST,
            lambda: FOLLOWERS[FIRST],
            FetcherConfig(wait_max_ms=0, backoff_ms=BACKOFF_MS),
        )
        self.partitions = [self._make(index) for index in range(count)]
        self.fetcher.follow(self.partitions)

    def _make(self, index):
        partition = Partition("t", index, TOPIC_ID, EPOCH, memory_log(index), lambda _: None)
        partition.become_follower(LEADER, EPOCH)
        return partition

    async def fetch(self):
        self.fetcher._ask()
        await self.fetcher._fetch()
        return set(self.link.named)

    async def settle(self):
        for _ in range(3):
            await self.fetch()


@pytest.fixture
async def following():
    made = Following(200)
    await made.settle()
    return made


async def test_the_first_fetch_names_all_and_the_next_ones_name_what_was_fetched():
    following = Following(3)
    assert await following.fetch() == {0, 1, 2}
    assert await following.fetch() == set()
    following.leader.append(1)
    assert [await following.fetch() for _ in range(3)] == [set(), {1}, set()]
    assert following.partitions[1].log.log_end_offset == 1


@pytest.mark.interpreted
async def test_a_fetch_costs_the_partitions_that_have_changed(following, monkeypatch):
    asked = []
    request = FollowedPartition.request

    def counted(self, max_bytes):
        asked.append(self.partition.index)
        return request(self, max_bytes)

    monkeypatch.setattr(FollowedPartition, "request", counted)
    for _ in range(5):
        await following.fetch()
    assert asked == []
    following.leader.append(7)
    await following.fetch()
    await following.fetch()
    assert set(asked) == {7}
    assert len(asked) <= 2


async def test_a_log_that_begins_later_is_told_to_the_leader(following):
    for _ in range(3):
        following.leader.append(5)
    second = Reader(following.leader, SECOND)
    for _ in range(3):
        await following.fetch()
        second.fetch()
    following.partitions[5].log.delete_records_before(2)
    assert await following.fetch() == {5}
    assert following.link.named[5].log_start_offset == 2
    assert following.leader.all[5].leader.followers.follower(FIRST).log_start_offset == 2


async def test_a_partition_that_goes_offline_or_is_left_is_forgotten(following):
    following.partitions[3].take_offline("its disk failed")
    following.fetcher.leave([following.partitions[4]])
    assert await following.fetch() == set()
    assert sorted(following.link.forgotten) == [3, 4]
    assert len(following.fetcher.followed) == 198


async def test_a_partition_that_is_refused_is_left_out_until_the_backoff_is_over(following):
    broker = following.leader
    broker.all[2].become_follower(SECOND, EPOCH)
    await following.fetch()
    assert await following.fetch() == set()
    assert following.link.forgotten == [2]
    broker.clock.advance(BACKOFF_MS)
    assert await following.fetch() == {2}


async def test_a_new_epoch_is_named_and_the_answers_to_the_old_one_are_left_aside(following):
    partition = following.partitions[6]
    following.leader.lead(following.leader.all[6], EPOCH + 1, (LEADER, FIRST, SECOND))
    partition.become_follower(LEADER, EPOCH + 1)
    following.fetcher.follow([partition])
    assert await following.fetch() == {6}
    assert following.link.named[6].current_leader_epoch == EPOCH + 1
    assert partition in following.fetcher.followed


async def test_a_session_that_the_leader_has_lost_begins_with_all(following):
    following.leader.fetch_sessions._remove(following.fetcher._session._session_id)
    following.leader.append(1)
    # It is told that there is no such session, and waits.
    following.fetcher._config = FetcherConfig(wait_max_ms=0, backoff_ms=0)
    await following.fetch()
    assert len(await following.fetch()) == 200
