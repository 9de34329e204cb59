"""Each partition is fetched from the leader that it has, and from no other."""

import asyncio
from random import Random

import pytest

from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replica_fetcher import FetcherConfig
from odradek.broker.replica.replica_fetchers import ReplicaFetchers
from odradek.protocol.message_types.fetch import FetchResponse
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.broker.replica.replication_bed import TOPIC_ID, memory_log
from tests.client.net import Net, settle

FIRST, SECOND, AWAY = 2, 3, 4


class Bed:
    """Broker 1, and what two leaders are asked for."""

    def __init__(self):
        self.clock = VirtualClock()
        self.asked = {}
        self.nets = {}
        self.count = 1
        self.addresses = {FIRST: ("first", 1), SECOND: ("second", 1)}
        self.fetchers = ReplicaFetchers(
            self._connect,
            Timer(self.clock),
            Random(1),
            node_id=1,
            broker_epoch=lambda: 10,
            address_of=self.addresses.get,
            config=FetcherConfig(backoff_ms=100),
            request_timeout_ms=1_000,
            count=lambda: self.count,
        )

    def _connect(self, address):
        self.nets[address] = Net(lambda _key, _version, request: self._answer(address, request))
        return self.nets[address].connect

    def _answer(self, address, request):
        self.asked.setdefault(address[0], []).append({each.partition for topic in request.topics for each in topic.partitions})
        # A long poll: nothing comes.
        return FetchResponse() if not request.topics else None

    def partition(self, index, leader_id):
        partition = Partition("t", index, TOPIC_ID, 0, memory_log(index), lambda _: None)
        partition.become_follower(leader_id, 1)
        return partition

    @property
    def by_leader(self):
        return {leader_id: {each.index for each in followed} for leader_id, followed in self.fetchers.leaders.items()}


@pytest.fixture
async def bed():
    made = Bed()
    yield made
    await made.fetchers.close()


async def test_partitions_of_one_leader_are_fetched_together_and_those_of_another_from_there(bed):
    bed.fetchers.follow([bed.partition(0, FIRST), bed.partition(1, SECOND), bed.partition(2, FIRST)])
    await settle()
    assert bed.by_leader == {FIRST: {0, 2}, SECOND: {1}}
    assert (bed.asked["first"][0], bed.asked["second"][0]) == ({0, 2}, {1})


async def test_a_partition_whose_leader_has_changed_is_fetched_from_the_new_one_only(bed):
    moved, stays = bed.partition(0, FIRST), bed.partition(1, FIRST)
    bed.fetchers.follow([moved, stays])
    await settle()
    moved.become_follower(SECOND, 2)
    bed.fetchers.follow([moved])
    await settle()
    assert bed.by_leader == {FIRST: {1}, SECOND: {0}}


async def test_a_fetcher_ends_with_its_last_partition(bed):
    partition = bed.partition(0, FIRST)
    bed.fetchers.follow([partition])
    await settle()
    bed.fetchers.leave([partition])
    await settle()
    assert bed.by_leader == {}
    assert all(link.is_lost for link in bed.nets["first", 1].links)


async def test_a_leader_that_comes_back_elsewhere_is_fetched_from_there(bed):
    bed.fetchers.follow([bed.partition(0, FIRST), bed.partition(1, FIRST)])
    await settle()
    bed.addresses[FIRST] = ("moved", 1)
    bed.fetchers.follow([])
    await settle()
    assert bed.by_leader == {FIRST: {0, 1}}
    assert bed.asked["moved"][0] == {0, 1}
    assert all(link.is_lost for link in bed.nets["first", 1].links)


async def test_a_partition_whose_leader_is_away_is_fetched_when_the_metadata_tell_of_it_again(bed):
    partition = bed.partition(0, AWAY)
    bed.fetchers.follow([partition])
    await settle()
    assert bed.by_leader == {}
    bed.addresses[AWAY] = ("back", 1)
    bed.fetchers.follow([partition])
    await settle()
    assert bed.by_leader == {AWAY: {0}}


async def test_a_partition_that_this_broker_leads_is_not_fetched(bed):
    partition = bed.partition(0, FIRST)
    partition.become_leader(2)
    bed.fetchers.follow([partition])
    await settle()
    assert bed.by_leader == {}


async def test_a_leader_has_as_many_fetchers_as_are_configured_and_each_partition_is_with_one(bed):
    bed.fetchers.follow([bed.partition(index, FIRST) for index in range(4)])
    await settle()
    assert bed.asked["first"] == [{0, 1, 2, 3}]
    bed.count = 2
    bed.fetchers.resize()
    await settle()
    # The first of them hears of it with its answer only.
    assert bed.by_leader == {FIRST: {0, 1, 2, 3}}
    assert len(bed.nets["first", 1].links) >= 1
    [second] = bed.asked["first"][1:]
    assert len(second) == 2
    bed.count = 1
    bed.fetchers.resize()
    await settle()
    assert bed.by_leader == {FIRST: {0, 1, 2, 3}}


async def test_a_close_that_is_cancelled_tells_so(bed):
    bed.fetchers.follow([bed.partition(0, FIRST)])
    await settle()
    closing = asyncio.ensure_future(bed.fetchers.close())
    await asyncio.sleep(0)
    assert closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
