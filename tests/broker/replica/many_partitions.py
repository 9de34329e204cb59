"""A broker that leads many partitions, and its readers: real logs, sessions, handler and purgatory, and requests of the test."""

from functools import partial
from random import Random
from types import SimpleNamespace

from odradek.broker.api import fetch as handler
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.partition import Partition, wake_fetches
from odradek.broker.replica.partitions import Partitions
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types import fetch
from odradek.protocol.records import Record, build_batch
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Purgatory, Timer
from tests.broker.replica.replication_bed import FIRST, LEADER, SECOND, TOPIC_ID, FakeReplication, lead, memory_log

EPOCH = 4
MAX_BYTES = 1 << 20
VERSION = 15
# A broker id, and the broker's epoch.
FOLLOWERS = {FIRST: 20, SECOND: 30}


class LeadingBroker(FakeReplication):
    """It leads all partitions of one topic. Part of Replication, and of FetchServices."""

    def __init__(self, count, *, isr=(LEADER, FIRST, SECOND), min_in_sync=1, slots=10):
        super().__init__()
        self.clock = VirtualClock()
        self.min_in_sync = min_in_sync
        self.fetch_purgatory = Purgatory("Fetch", Timer(self.clock))
        self.fetch_sessions = FetchSessions(slots, Random(1))
        self.config = {"fetch.max.bytes": MAX_BYTES}
        self.quotas = SimpleNamespace(managers=None)
        self.cluster = None
        self.partitions = Partitions()
        self.all = [self._make(index, isr) for index in range(count)]

    def monotonic_ms(self):
        return self.clock.monotonic_ms()

    def call_soon(self, callback):
        callback()

    def _make(self, index, isr):
        partition = Partition("t", index, TOPIC_ID, EPOCH, memory_log(index), partial(wake_fetches, self.fetch_purgatory))
        self.partitions.add(partition)
        self.lead(partition, EPOCH, isr)
        return partition

    def lead(self, partition, epoch, isr):
        lead(self, partition, epoch, 1, isr, lambda: self.min_in_sync)

    def append(self, index, count=1):
        self.all[index].append(build_batch([Record(timestamp=0, value=b"v") for _ in range(count)]), 0)

    def handle(self, request):
        context = RequestContext(ApiKey.FETCH, VERSION, 1, "reader", Session("PLAINTEXT", ("127.0.0.1", 1)))
        return handler.handle(self, context, request)


class Reader:
    """One that fetches within a session: a follower, by its broker's id, or a consumer. It takes what it is told."""

    def __init__(self, broker, node_id=-1, *, committed=False):
        self.broker = broker
        self.node_id = node_id
        self.committed = committed
        self.broker_epoch = FOLLOWERS.get(node_id, -1)
        self.session_id = self.session_epoch = 0
        self.offsets = {each.index: 0 for each in broker.all}
        self.epochs = {each.index: each.leader_epoch for each in broker.all}
        self.high_watermarks = {}
        self.start_offsets = {}
        self.named = set(self.offsets)
        # Partitions that it does not fetch, and of these those that it has not said it of.
        self.left_out = set()
        self.forgotten = set()
        self.waiting = None

    def leave_out(self, index):
        self.left_out.add(index)
        self.named.discard(index)
        self.forgotten.add(index)

    def take_in(self, index):
        self.left_out.discard(index)
        self.forgotten.discard(index)
        self.named.add(index)

    def begin_anew(self):
        """The next fetch is a full one."""
        self.session_epoch = 0
        self.named = set(self.offsets) - self.left_out
        self.forgotten = set()

    def request(self, max_wait_ms=0, max_bytes=MAX_BYTES):
        asked = [
            fetch.FetchPartition(
                partition=index,
                fetch_offset=self.offsets[index],
                partition_max_bytes=MAX_BYTES,
                current_leader_epoch=self.epochs[index],
                log_start_offset=0 if self.node_id >= 0 else -1,
            )
            for index in sorted(self.named)
        ]
        forgotten = sorted(self.forgotten)
        self.named, self.forgotten = set(), set()
        for index in forgotten:
            self.high_watermarks.pop(index, None)
        return fetch.FetchRequest(
            replica_state=fetch.ReplicaState(self.node_id, self.broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=int(self.committed),
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=asked)] if asked else [],
            forgotten_topics_data=[fetch.ForgottenTopic(topic_id=TOPIC_ID, partitions=forgotten)] if forgotten else [],
        )

    def fetch(self, **options):
        """What was told, by partition."""
        self.wait(0, **options)
        assert self.waiting is not None
        return self.waiting

    def wait(self, max_wait_ms=500, **options):
        """Begin a fetch that waits; ``waiting`` is what it is told, by partition: None until it is."""
        self.waiting = None
        response = self.broker.handle(self.request(max_wait_ms, **options))
        if isinstance(response, Reply):
            response.when_done(self._answered)
        else:
            self._answered(response)

    def _answered(self, response):
        self.waiting = self.take(response)

    def take(self, response):
        assert response.error_code == 0
        self.session_id = response.session_id
        self.session_epoch = self.session_epoch + 1 if response.session_id else 0
        told = {data.partition_index: data for topic in response.responses for data in topic.partitions}
        for index, data in told.items():
            if data.error_code:
                continue
            self.high_watermarks[index] = data.high_watermark
            self.start_offsets[index] = data.log_start_offset
            if data.records:
                # All batches have one record.
                self.offsets[index] += len(list(_batches(data.records)))
                self.named.add(index)
        return told


def _batches(records):
    from odradek.protocol.record_batch import iter_batches

    data = bytes(records.read())
    yield from iter_batches(data)
