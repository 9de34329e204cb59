"""Operations whose records are not replicated in time: their clients are told, and what was decided stays."""

import pytest

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode
from tests.coordinator.runtime.bed import AppendingShard, Bed, Shard, put

TIMEOUT_MS = 1_000


def bed_of(shard_class):
    bed = Bed(shard_class=shard_class, runtime_options={"write_timeout_ms": TIMEOUT_MS})
    bed.log.held_back = True
    return bed


@pytest.mark.parametrize("shard_class", [Shard, AppendingShard])
def test_a_client_is_told_to_look_for_the_coordinator_when_replicas_are_silent(shard_class):
    bed = bed_of(shard_class)
    bed.write(put("a", 5))
    bed.run()
    bed.clock.advance(TIMEOUT_MS - 1)
    assert bed.answers == []
    bed.clock.advance(1)
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize("shard_class", [Shard, AppendingShard])
def test_what_was_decided_stays_and_is_committed_later(shard_class):
    bed = bed_of(shard_class)
    committed = []
    bed.write(put("a", 5), on_commit=lambda: committed.append("a"))
    bed.run()
    bed.clock.advance(TIMEOUT_MS)
    assert bed.shard.state() == ({"a": 5}, 1)
    bed.log.hold_back_no_more()
    assert bed.committed() == ({"a": 5}, 1)
    assert committed == ["a"]
    assert len(bed.answers) == 1


def test_each_client_is_told_after_the_same_time():
    """DeleteGroups took up to ten seconds behind another group's commit; Kafka takes five."""
    bed = bed_of(Shard)
    bed.write(put("a"))
    bed.run()
    bed.clock.advance(TIMEOUT_MS - 1)
    bed.write(put("b"))
    bed.run()
    bed.clock.advance(1)
    assert len(bed.answers) == 1
    bed.clock.advance(TIMEOUT_MS - 2)
    assert len(bed.answers) == 1
    bed.clock.advance(1)
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_an_operation_without_records_waits_no_longer_than_others():
    bed = bed_of(Shard)
    bed.write(put("a"))
    bed.run()
    bed.clock.advance(TIMEOUT_MS)
    bed.write()
    bed.run()
    bed.clock.advance(TIMEOUT_MS - 1)
    assert len(bed.answers) == 1
    bed.clock.advance(1)
    assert bed.answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def test_an_operation_of_the_shard_itself_waits_on():
    bed = bed_of(Shard)
    decided = []

    def expire():
        decided.append("session")
        return CoordinatorResult([put("a")], None)

    bed.shard.context.schedule("session", 0, expire)
    bed.clock.advance(0)
    bed.run()
    bed.clock.advance(10 * TIMEOUT_MS)
    assert decided == ["session"]
    bed.log.hold_back_no_more()
    assert bed.committed() == ({"a": 1}, 1)


@pytest.mark.parametrize("is_unloaded", [False, True])
def test_nothing_is_timed_that_does_not_wait(is_unloaded):
    bed = bed_of(Shard)
    bed.write(put("a"))
    bed.run()
    if is_unloaded:
        bed.runtime.unload(0)
        assert len(bed.timer) == 0
    else:
        bed.log.hold_back_no_more()
        bed.clock.advance(TIMEOUT_MS)
        assert len(bed.timer) == 0
    assert len(bed.answers) == 1
