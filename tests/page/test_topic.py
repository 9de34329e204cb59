"""A topic is shown with its partitions, its configs, its segments, and what compaction has done."""

import pytest

from odradek.page.facts.source import Missing
from odradek.page.facts.topic import index_entries, segments, topic
from odradek.testing import NewTopic
from tests.page.conftest import producing, until


async def test_partitions_have_their_offsets_replicas_and_sizes(broker, source):
    await broker.create_topics({"orders": 2})
    async with producing(broker, transactional_id="t") as producer, producer.transaction():
        await producer.send_and_wait("orders", b"x" * 500, partition=1)
        found = await topic(source, "orders")
    empty, used = found.partitions
    assert (empty.about.partition_index, empty.start_offset, empty.end_offset, empty.size_bytes) == (0, 0, 0, 0)
    assert (used.about.leader_id, list(used.about.replica_nodes), list(used.about.isr_nodes)) == (1, [1], [1])
    assert (used.start_offset, used.end_offset, used.last_stable_offset, used.is_here) == (0, 1, 0, True)
    assert used.size_bytes > 500
    assert not found.is_partial


async def test_configs_say_where_they_come_from_and_what_the_default_is(broker, source):
    await broker.create_topics({"orders": NewTopic(1, {"max.message.bytes": "1000"})})
    configs = {row.name: row for row in (await topic(source, "orders")).configs}
    changed, other = configs["max.message.bytes"], configs["cleanup.policy"]
    assert (changed.value, changed.source, changed.default) == ("1000", "topic", "1048588")
    assert (other.value, other.source) == ("delete", "default")
    assert changed.documentation


async def test_segments_and_their_indexes_are_those_on_the_disk(broker, source):
    configs = {"segment.bytes": "1048576", "index.interval.bytes": "1"}
    await broker.create_topics({"orders": NewTopic(1, configs)})
    async with producing(broker) as producer:
        for number in range(4):
            await producer.send_and_wait("orders", b"x" * 400_000, timestamp_ms=1_000 + number)
    found = await segments(source, "orders", 0)
    assert [(row.base_offset, row.end_offset, row.state) for row in found.segments] == [(0, 2, "closed"), (2, 4, "active")]
    assert found.segments[0].max_timestamp_ms == 1_001
    assert sum(row.size_bytes for row in found.segments) == (await topic(source, "orders")).partitions[0].size_bytes
    [entry] = await index_entries(source, "orders", 0, 0, "offset")
    assert (entry[0], entry[1] > 400_000) == (1, True)
    assert [timestamp for timestamp, _ in await index_entries(source, "orders", 0, 0, "time")][-1] == 1_001
    assert found.compaction is None
    with pytest.raises(Missing, match="has no segment at offset 7"):
        await index_entries(source, "orders", 0, 7, "offset")


async def test_aborted_transactions_are_counted_in_their_segment(broker, source):
    async with producing(broker, transactional_id="t") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1")
        await producer.abort_transaction()
    [segment] = (await segments(source, "orders", 0)).segments
    assert segment.aborted == 1


async def test_compaction_says_how_many_records_it_has_removed(broker, source):
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    await broker.create_topics({"orders": NewTopic(1, configs)})
    await broker.produce("orders", [(b"key", b"x" * 400_000) for _ in range(3)])
    before = (await segments(source, "orders", 0)).compaction
    assert (before.cleaned_offset, before.removed, before.is_running, before.failed) == (None, 0, False, False)
    await broker.produce("orders", [(b"key", b"x" * 400_000) for _ in range(3)])
    broker.core.log_cleaner.clean_due()

    async def cleaned():
        found = (await segments(source, "orders", 0)).compaction
        return found if found.cleaned_offset else None

    after = await until(cleaned)
    assert after.removed == after.cleaned_offset - 1 > 0
    assert after.removed_up_to == after.cleaned_offset


async def test_a_topic_or_partition_that_is_not_there_is_missing(broker, source):
    await broker.create_topics({"orders": 1})
    for asked in (topic(source, "no-such"), segments(source, "no-such", 0), segments(source, "orders", 7)):
        with pytest.raises(Missing):
            await asked
