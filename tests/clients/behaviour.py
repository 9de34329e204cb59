"""Properties of any library's producers and consumers. Test modules inherit them and name their library."""

import os
import time
from collections import defaultdict
from contextlib import ExitStack
from typing import ClassVar

import pytest

from tests.clients.libraries import Library, Refused

FIRST_MS, SECOND_MS, THIRD_MS = 1_600_000_000_000, 1_600_000_001_000, 1_600_000_002_000
# A long poll that nothing wakes is noticed by how long it took.
LONG_POLL_MS = 10_000


def values(records):
    return [record.value for record in records]


class ClientBehaviour:
    """Inherit and set ``make``."""

    make: ClassVar[type[Library]]

    @pytest.fixture
    def library(self, broker):
        with ExitStack() as stack:
            yield self.make(broker.address, stack)

    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_records_come_back_as_they_were_produced(self, library, new_topic, codec):
        topic = new_topic()
        sent = [
            (b"key", b"value" * 200, [("header", b"one"), ("header", b"two"), ("", b"")]),
            (None, b"no key", []),
            (b"tombstone", None, []),
            (b"", b"", [("ünï", b"\x00\xff")]),
            *library.odd_records,
        ]
        producer = library.producer(codec=codec, linger_ms=50)
        told = producer.wait([producer.send(topic, value, key, headers) for key, value, headers in sent])
        records = library.consumer(topic, check_crcs=True).take(len(sent))
        assert [(record.key, record.value, record.headers) for record in records] == sent
        assert [record.offset for record in records] == [each.offset for each in told] == list(range(len(sent)))

    @pytest.mark.parametrize("acks", [0, 1, "all"])
    def test_every_acks_delivers(self, library, new_topic, acks):
        topic = new_topic()
        library.producer(acks=acks, is_idempotent=False).produce(topic, b"one", b"two")
        assert values(library.consumer(topic).take(2)) == [b"one", b"two"]

    def test_an_idempotent_producer_delivers_in_order_and_once(self, library, new_topic):
        topic = new_topic()
        numbers = [b"%d" % number for number in range(2000)]
        library.producer(is_idempotent=True, batch_bytes=200).produce(topic, *numbers)
        consumer = library.consumer(topic)
        assert values(consumer.take(len(numbers))) == numbers
        assert consumer.ends() == (0, len(numbers))

    def test_order_is_kept_in_each_of_several_partitions(self, library, new_topic):
        topic = new_topic(4)
        producer = library.producer()
        producer.wait([producer.send(topic, b"%d" % number, b"%d" % (number % 17)) for number in range(1000)])
        by_partition = defaultdict(list)
        for record in library.consumer(topic, range(4)).take(1000):
            by_partition[record.partition].append(int(record.value))
        assert len(by_partition) == 4
        assert all(numbers == sorted(numbers) for numbers in by_partition.values())
        assert sorted(number for numbers in by_partition.values() for number in numbers) == list(range(1000))

    def test_records_of_a_megabyte_come_back_whole(self, library, new_topic):
        topic = new_topic()
        large = [os.urandom(1_000_000) for _ in range(3)]
        library.producer(request_bytes=2_000_000).produce(topic, *large)
        assert values(library.consumer(topic).take(3)) == large

    def test_a_record_larger_than_the_fetch_size_is_fetched_all_the_same(self, library, new_topic):
        topic = new_topic()
        sent = [b"small", os.urandom(500_000), b"small"]
        library.producer().produce(topic, *sent)
        assert values(library.consumer(topic, fetch_bytes=1000).take(3)) == sent

    def test_a_batch_over_max_message_bytes_is_refused_and_the_next_one_taken(self, library, new_topic):
        topic = new_topic(config={"max.message.bytes": "10000"})
        # With idempotence on, kafka-python's producer does not go on after such an error.
        producer = library.producer(is_idempotent=False)
        with pytest.raises(Refused, match=f"^{library.too_large}$"):
            producer.produce(topic, os.urandom(20_000))
        producer.produce(topic, b"small")
        assert values(library.consumer(topic).take(1)) == [b"small"]

    def test_a_compacted_topic_refuses_a_record_without_a_key(self, library, new_topic):
        topic = new_topic(config={"cleanup.policy": "compact"})
        with pytest.raises(Refused, match=f"^{library.invalid}$"):
            library.producer().produce(topic, b"x")

    def test_a_create_time_topic_keeps_the_producers_timestamps(self, library, new_topic):
        topic = new_topic()
        producer = library.producer()
        for timestamp_ms in (SECOND_MS, FIRST_MS):
            producer.produce(topic, b"x", timestamp_ms=timestamp_ms)
        records = library.consumer(topic).take(2)
        assert [(record.has_brokers_time, record.timestamp_ms) for record in records] == [(False, SECOND_MS), (False, FIRST_MS)]

    def test_a_log_append_time_topic_has_the_brokers_timestamps(self, library, new_topic):
        topic = new_topic(config={"message.timestamp.type": "LogAppendTime"})
        before = time.time_ns() // 1_000_000
        (told,) = library.producer().produce(topic, b"x", timestamp_ms=FIRST_MS)
        (record,) = library.consumer(topic).take(1)
        assert record.has_brokers_time
        assert before <= record.timestamp_ms == told.timestamp_ms <= time.time_ns() // 1_000_000

    def test_a_consumer_seeks_back_and_forth(self, library, new_topic):
        topic = new_topic()
        producer = library.producer()
        for number in range(10):
            producer.produce(topic, b"%d" % number)
        consumer = library.consumer(topic)
        consumer.seek(7)
        assert [record.offset for record in consumer.take(3)] == [7, 8, 9]
        consumer.seek(2)
        assert [record.offset for record in consumer.take(2)] == [2, 3]
        consumer.seek_to_beginning()
        assert [record.offset for record in consumer.take(1)] == [0]
        if library.tells_its_place:
            assert consumer.end_of_a_seek() == 10

    def test_a_consumer_beyond_the_end_starts_where_it_was_told_to(self, library, new_topic):
        topic = new_topic()
        library.producer().produce(topic, b"x")
        consumer = library.consumer(topic)
        consumer.seek(1000)
        assert [record.offset for record in consumer.take(1)] == [0]

    def test_offsets_are_found_by_time(self, library, new_topic):
        topic = new_topic(2)
        producer = library.producer()
        for timestamp_ms in (FIRST_MS, SECOND_MS, THIRD_MS):
            producer.produce(topic, b"x", partition=0, timestamp_ms=timestamp_ms)
        consumer = library.consumer(topic, (0, 1))
        assert consumer.found_at(0, FIRST_MS + 1) == (1, SECOND_MS if library.tells_its_place else None)
        assert consumer.found_at(1, 0) is None
        assert consumer.found_at(0, THIRD_MS + 1) is None

    def test_a_consumer_knows_where_a_partition_begins_and_ends(self, library, new_topic):
        topic = new_topic()
        consumer = library.consumer(topic)
        assert consumer.ends() == (0, 0)
        library.producer().produce(topic, b"one", b"two")
        assert consumer.ends() == (0, 2)

    @pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
    def test_plain_records_are_read_under_both_isolation_levels(self, library, new_topic, isolation):
        topic = new_topic()
        library.producer().produce(topic, b"x")
        assert values(library.consumer(topic, isolation=isolation).take(1)) == [b"x"]

    def test_a_long_poll_ends_as_soon_as_a_record_arrives(self, library, new_topic):
        topic = new_topic()
        producer = library.producer()
        consumer = library.consumer(topic, wait_ms=LONG_POLL_MS)
        # The first record shows that the consumer is fetching; the fetch after it waits.
        producer.produce(topic, b"first")
        consumer.take(1)
        assert consumer.has_nothing(within_ms=300)
        started_s = time.monotonic()
        producer.produce(topic, b"second")
        assert values(consumer.take(1)) == [b"second"]
        assert time.monotonic() - started_s < LONG_POLL_MS / 4000

    def test_an_unknown_topic_is_created_by_producing_to_it(self, library, new_name):
        topic = new_name()
        library.producer().produce(topic, b"x")
        assert values(library.consumer(topic).take(1)) == [b"x"]
