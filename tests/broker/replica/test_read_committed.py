"""Isolation levels: a reader of committed records ends at the last stable offset and is told what was aborted (KIP-98)."""

import pytest

from odradek.broker.replica.delayed_fetch import DelayedFetch, FetchRead
from odradek.broker.replica.fetch_partitions import FetchPartitions
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.message_types.fetch import FetchPartition as FetchRequestPartition
from odradek.protocol.message_types.fetch import FetchTopic
from odradek.protocol.record_batch import iter_batches
from tests.broker.api.bed import create, make_broker
from tests.storage.support import NOW_MS, batch
from tests.storage.transactional import transactional_batch

LATEST, MAX_TIMESTAMP = -1, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Broker:
    """A broker in process with one partition, and a fetch's view of it."""

    def __init__(self, *topic_configs):
        self.core = make_broker()
        create(self.core, "t", 1, *topic_configs)
        self.clock = self.core.clock
        self.purgatory = self.core.fetch_purgatory
        self.partition = self.core.partitions.get("t", 0)
        self.log = self.partition.log
        self.sequences = {}

    def send(self, producer=7, count=1):
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + count
        self.partition.append(transactional_batch(sequence, count=count, producer=producer), NOW_MS, True)

    def end(self, commit, producer=7):
        self.partition.append_marker(EndTxnMarker(producer, 0, 0, commit), NOW_MS)

    def reader(self, offset=0, *, committed=True, max_bytes=1 << 20, min_bytes=1):
        asked = FetchRequestPartition(fetch_offset=offset, partition_max_bytes=max_bytes)
        wanted = FetchPartitions()
        wanted.ask([FetchTopic(topic="t", partitions=[asked])], topic_keys_are_ids=False)
        return FetchRead(wanted, lambda _: self.partition, min_bytes=min_bytes, max_bytes=1 << 20, committed_only=committed)

    def fetch(self, offset=0, **options):
        ((_, data),) = self.reader(offset, **options).read()[0]
        return data


@pytest.fixture
def broker():
    return Broker()


def offsets(data):
    return [] if data.records == b"" else [header.base_offset for _, header in iter_batches(data.records.read())]


def aborted(data):
    return [(found.producer_id, found.first_offset) for found in data.aborted_transactions]


def test_reading_committed_ends_in_front_of_an_open_transaction(broker):
    broker.partition.append(batch(), NOW_MS)
    broker.send()
    broker.partition.append(batch(), NOW_MS)
    data = broker.fetch()
    assert (offsets(data), data.last_stable_offset, data.high_watermark) == ([0], 1, 3)
    assert offsets(broker.fetch(1)) == []


def test_reading_uncommitted_does_not_care(broker):
    broker.send()
    broker.end(commit=False)
    data = broker.fetch(committed=False)
    assert (offsets(data), data.aborted_transactions) == ([0, 1], None)


def test_a_commit_shows_its_records_and_the_marker(broker):
    broker.send()
    broker.end(commit=True)
    data = broker.fetch()
    assert (offsets(data), aborted(data), data.last_stable_offset) == ([0, 1], [], 2)


def test_aborted_transactions_are_named_with_what_is_read(broker):
    broker.send(producer=1)
    broker.send(producer=2)
    broker.end(commit=False, producer=1)
    broker.end(commit=True, producer=2)
    data = broker.fetch()
    assert (offsets(data), aborted(data)) == ([0, 1, 2, 3], [(1, 0)])
    assert aborted(broker.fetch(3)) == []


def test_nothing_read_names_no_aborted_transaction(broker):
    broker.send()
    broker.end(commit=False)
    assert aborted(broker.fetch(2)) == []


@pytest.mark.parametrize("configs", [(), (("internal.segment.bytes", "600"), ("index.interval.bytes", "100"))])
def test_however_little_is_read_all_aborted_transactions_in_it_are_named(configs):
    broker = Broker(*configs)
    starts = []
    for number in range(30):
        starts.append((number % 3, broker.log.log_end_offset))
        broker.send(producer=number % 3)
        broker.partition.append(batch(), NOW_MS)
        broker.end(commit=False, producer=number % 3)
    offset, lengths = 0, []
    while offset < broker.log.log_end_offset:
        data = broker.fetch(offset, max_bytes=250)
        read = offsets(data)
        named = aborted(data)
        assert [start for start in starts if start[1] in read] == [start for start in named if start[1] in read]
        lengths.append(len(named))
        offset = read[-1] + 1
    if configs:
        assert max(lengths) < 10


def test_a_fetch_that_waits_for_committed_records_wakes_with_the_marker(broker):
    broker.send()
    answers = []
    read = broker.reader()
    read.read()
    wanted = read._wanted
    wanted.watch()
    operation = DelayedFetch(500, read, lambda: answers.append(broker.clock.monotonic_ms()))
    broker.purgatory.try_complete_else_watch(operation, [wanted.key])
    broker.send(count=3)
    broker.partition.append(batch(), NOW_MS)
    assert answers == []
    broker.end(commit=True)
    assert answers == [0]


def test_a_fetch_behind_the_last_stable_offset_waits_without_reading(broker):
    broker.send()
    read = broker.reader(1)
    read.read()
    assert not read.has_enough()


def test_a_fetch_behind_the_high_watermark_is_told_so_at_once(broker):
    broker.send()
    read = broker.reader(9)
    next(iter(read._wanted)).target = broker.partition
    assert read.has_enough()
