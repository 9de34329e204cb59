"""Deadlines: named per shard and key, operations when they come, gone with their shard."""

from odradek.coordinator.runtime.environment import RETRY_BACKOFF_MS
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.bed import Bed, put


def expire(name):
    return lambda: CoordinatorResult([put(name)], None)


def test_a_deadline_decides_and_what_it_decides_is_appended(bed):
    bed.shard.context.schedule("session", 100, expire("a"))
    bed.clock.advance(99)
    assert bed.shard.state() == ({}, 0)
    bed.clock.advance(1)
    bed.run()
    assert bed.committed() == ({"a": 1}, 1)
    assert len(bed.shard.context) == 0


def test_a_deadline_set_again_takes_the_place_of_the_one_before(bed):
    context = bed.shard.context
    context.schedule("session", 100, expire("a"))
    bed.clock.advance(60)
    context.schedule("session", 100, expire("b"))
    bed.clock.advance(99)
    assert bed.shard.state() == ({}, 0)
    bed.clock.advance(1)
    assert bed.shard.state() == ({"b": 1}, 1)
    bed.clock.advance(1000)
    assert bed.shard.state() == ({"b": 1}, 1)


def test_a_cancelled_deadline_does_not_come(bed):
    context = bed.shard.context
    context.schedule("session", 100, expire("a"))
    assert context.is_scheduled("session")
    assert context.cancel("session")
    assert not context.cancel("session")
    bed.clock.advance(1000)
    assert bed.shard.state() == ({}, 0)
    assert len(bed.timer) == 0


def test_a_deadline_may_set_itself_again(bed):
    context = bed.shard.context

    def again():
        context.schedule("tick", 100, again)
        return CoordinatorResult([put("a", int(bed.clock.monotonic_ms()))], None)

    context.schedule("tick", 100, again)
    bed.clock.advance(350)
    bed.run()
    assert bed.committed() == ({"a": 300}, 3)


def test_what_could_not_be_appended_is_tried_again_later(bed):
    bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    bed.shard.context.schedule("session", 100, expire("a"))
    bed.clock.advance(100)
    bed.run()
    assert bed.shard.state() == ({}, 0)
    bed.clock.advance(RETRY_BACKOFF_MS)
    bed.run()
    assert bed.committed() == ({"a": 1}, 1)


def test_it_is_not_tried_again_where_that_is_not_wanted(bed):
    bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    bed.shard.context.schedule("session", 100, expire("a"), retry=False)
    bed.clock.advance(100)
    bed.run()
    bed.clock.advance(10 * RETRY_BACKOFF_MS)
    assert bed.shard.state() == ({}, 0)


def test_it_is_not_tried_again_where_the_key_was_set_anew(bed):
    context = bed.shard.context
    bed.log.failures.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    context.schedule("session", 100, expire("a"))
    bed.clock.advance(100)
    context.schedule("session", 10 * RETRY_BACKOFF_MS, expire("b"))
    bed.run()
    bed.clock.advance(9 * RETRY_BACKOFF_MS)
    assert bed.shard.state() == ({}, 0)
    bed.clock.advance(RETRY_BACKOFF_MS)
    assert bed.shard.state() == ({"b": 1}, 1)


def test_deadlines_go_with_their_shard(bed):
    context = bed.shard.context
    context.schedule("session", 100, expire("a"))
    bed.runtime.unload(0)
    context.schedule("late", 100, expire("b"))
    assert len(bed.timer) == 0
    assert len(context) == 0


def test_each_shard_has_its_own_keys():
    bed = Bed(partition_count=2)
    for shard in bed.shards:
        shard.context.schedule("session", 100, expire("a"))
    bed.shards[0].context.cancel("session")
    bed.clock.advance(100)
    assert [shard.state()[1] for shard in bed.shards] == [0, 1]
