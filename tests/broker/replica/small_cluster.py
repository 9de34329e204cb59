"""Three brokers that have a replica of one partition each, in memory: real logs, handlers, fetchers; the network and the
controller are the test's."""

import asyncio
from contextlib import suppress
from random import Random

from odradek.broker.api import fetch, list_offsets
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.in_sync_replicas import CommittedIsr
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_fetcher import FetcherConfig, ReplicaFetcher
from odradek.client.node_client import NodeClient
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log_config import LogConfig
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Purgatory, Timer
from tests.broker.replica.replication_bed import TOPIC_ID, lead, memory_log
from tests.client.net import Net, settle

NODES = (1, 2, 3)
HANDLERS = {ApiKey.FETCH: fetch, ApiKey.LIST_OFFSETS: list_offsets}
CONFIG = FetcherConfig(wait_max_ms=0, backoff_ms=100)
MAX_LAG_MS = 2_000


class Node:
    """A broker. ``node_id`` and so on are part of Replication, and of FetchServices."""

    def __init__(self, cluster, node_id):
        self.cluster = cluster
        self.node_id = node_id
        self.max_lag_ms = MAX_LAG_MS
        self.leader_quota = None
        self.clock = cluster.clock
        self.log = memory_log(config=LogConfig(segment_bytes=700))
        self.partition = Partition("t", 0, TOPIC_ID, -1, self.log, lambda _: None)
        self.partition.become_follower(-1, -1)
        self.partitions = Partitions()
        self.partitions.add(self.partition)
        self.fetch_sessions = FetchSessions(10, Random(node_id))
        self.fetch_purgatory = Purgatory("Fetch", cluster.timer)
        self.config = {"fetch.max.bytes": 1 << 20}
        self.call_soon = lambda callback: callback()
        self.net = Net(self.answer)
        self.fetcher = None
        self.task = None

    # Part of Replication.

    def monotonic_ms(self):
        return self.clock.monotonic_ms()

    def broker_epoch(self, node_id):
        return node_id * 10

    def alter_partition(self, proposal):
        reply = Reply()
        self.cluster.proposals.append((proposal, reply))
        return reply

    # The other brokers' requests.

    def answer(self, api_key, version, request):
        context = RequestContext(api_key, version, 1, "follower", Session("PLAINTEXT", ("127.0.0.1", 1)))
        response = HANDLERS[api_key].handle(self, context, request)
        assert not isinstance(response, Reply)
        return with_bytes(response) if api_key == ApiKey.FETCH else response

    def lead(self, epoch, partition_epoch, isr):
        self.stop_following()
        lead(self, self.partition, epoch, partition_epoch, isr, lambda: 2)

    def follow(self, leader, epoch):
        self.stop_following()
        self.partition.become_follower(leader.node_id, epoch)
        client = NodeClient(leader.net.connect, self.cluster.timer, Random(1))
        self.fetcher = ReplicaFetcher(client, self.cluster.timer, self.node_id, lambda: self.node_id * 10, CONFIG)
        self.fetcher.follow([self.partition])
        self.task = asyncio.get_running_loop().create_task(self.fetcher.run())

    def stop_following(self):
        if self.fetcher is not None:
            self.fetcher.close()
            self.task.cancel()
            self.fetcher = None

    @property
    def data(self):
        """The log's bytes."""
        return b"".join(bytes(segment.file.pread(segment.size, 0)) for segment in self.log.segments)

    def records(self, below=None):
        """(offset, value) of each record."""
        found = []
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            piece = self.log.read(offset, 1 << 20, upper_offset=self.log.log_end_offset, min_one_batch=True)
            for record in read_all(bytes(piece.read())):
                found.append((record.offset, record.value))
                offset = record.offset + 1
        return [each for each in found if below is None or each[0] < below]


def with_bytes(response):
    """A Fetch response whose records are in memory instead of slices of files."""
    topics = [
        topic._replace(
            partitions=[data._replace(records=bytes(data.records.read()) if data.records else b"") for data in topic.partitions]
        )
        for topic in response.responses
    ]
    return response._replace(responses=topics)


def read_all(data):
    from odradek.protocol.record_batch import iter_batches
    from odradek.protocol.records import read_records

    return [record for position, _ in iter_batches(data) for record in read_records(data, position)]


class SmallCluster:
    """Broker 1 leads at first. ``acknowledged`` are the records with acks=all, by offset."""

    def __init__(self):
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.proposals = []
        self.nodes = {node_id: Node(self, node_id) for node_id in NODES}
        self.leader_id, self.epoch, self.partition_epoch = 1, 0, 0
        self.isr = frozenset(NODES)
        self.acknowledged = {}
        self._waiting = []
        self._values = 0
        self.elect(1)

    @property
    def leader(self):
        return self.nodes[self.leader_id]

    def elect(self, node_id, cut_off=()):
        """Let another broker lead; those that are ``cut_off`` are not told."""
        self.leader_id = node_id
        self.epoch += 1
        self.partition_epoch += 1
        self._waiting = []
        for other in self.nodes.values():
            if other.node_id in cut_off:
                continue
            if other.node_id == node_id:
                other.lead(self.epoch, self.partition_epoch, self.isr)
            else:
                other.follow(self.leader, self.epoch)

    def produce(self, count=1, node_id=None):
        """Append with acks=all, at the leader unless another one believes that it leads."""
        node = self.leader if node_id is None else self.nodes[node_id]
        values = []
        for _ in range(count):
            self._values += 1
            values.append(b"value-%06d" % self._values)
        try:
            node.partition.require_enough_replicas()
            info = node.partition.append(build_batch([Record(timestamp=0, value=value) for value in values]), 0)
        except KafkaError:
            return
        records = dict(enumerate(values, info.first_offset))
        self._waiting.append((node, node.partition.leader_epoch, info.last_offset, records))

    def acknowledge(self):
        """Note the records whose producers have been answered by now."""
        left = []
        for node, epoch, last_offset, records in self._waiting:
            partition = node.partition
            if partition.leader is None or partition.leader_epoch != epoch:
                continue
            if partition.is_acknowledged(last_offset, -1):
                if partition.has_enough_replicas(-1):
                    self.acknowledged |= records
            else:
                left.append((node, epoch, last_offset, records))
        self._waiting = left

    def answer_proposals(self):
        """The controller."""
        proposals, self.proposals = self.proposals, []
        for proposal, reply in proposals:
            if (proposal.leader_epoch, proposal.partition_epoch) != (self.epoch, self.partition_epoch):
                reply.complete(KafkaError(ErrorCode.INVALID_UPDATE_VERSION))
                continue
            self.isr = frozenset(node_id for node_id, _ in proposal.isr)
            self.partition_epoch += 1
            reply.complete(CommittedIsr(self.epoch, self.partition_epoch, self.isr))

    async def turn(self, duration_ms=50):
        """Let some time pass."""
        self.clock.advance(duration_ms)
        await settle()
        self.answer_proposals()
        followers = self.leader.partition.leader.followers
        followers.shrink(self.leader.log.log_end_offset)
        self.acknowledge()

    @property
    def is_quiet(self):
        """Whether all logs are alike, and all of that is replicated."""
        nodes = self.nodes.values()
        is_alike = len({node.data for node in nodes}) == 1
        is_replicated = all(node.partition.high_watermark == node.log.log_end_offset for node in nodes)
        return self.isr == set(NODES) and is_alike and is_replicated

    async def quiet(self):
        """Until it is."""
        for _ in range(400):
            await self.turn()
            if self.is_quiet:
                return
        found = {node.node_id: (node.log.log_end_offset, node.partition.high_watermark) for node in self.nodes.values()}
        raise AssertionError(found)

    async def close(self):
        for node in self.nodes.values():
            task = node.task
            node.stop_following()
            if task is not None:
                with suppress(asyncio.CancelledError):
                    await task
        self.timer.close()
