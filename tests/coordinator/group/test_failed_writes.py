"""What is left of what could not be written, and what is decided and answered while a write is under way."""

from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.bed import HEARTBEAT, Answer, Bed
from tests.coordinator.group.consumer_bed import ConsumerBed
from tests.coordinator.group.streams_bed import STATELESS, StreamsBed


def join_a_new_group_that_cannot_be_written(bed):
    bed.log.failure = ErrorCode.KAFKA_STORAGE_ERROR
    answer = bed.join(version=3)
    bed.log.failure = None
    assert answer.response.error_code == ErrorCode.NOT_COORDINATOR


def deadlines_of(bed):
    return [key for key in bed.shard.classic.timers._tasks if key != "expire-offsets"]


def test_a_new_group_that_cannot_be_written_leaves_no_deadline():
    bed = Bed(group_initial_rebalance_delay_ms=3_000)

    join_a_new_group_that_cannot_be_written(bed)

    assert bed.group() is None
    assert deadlines_of(bed) == []


def test_a_member_id_given_in_a_group_that_cannot_be_written_leaves_no_deadline():
    bed = Bed()
    bed.log.failure = ErrorCode.KAFKA_STORAGE_ERROR

    bed.join()

    assert deadlines_of(bed) == []


def test_a_deleted_group_leaves_no_deadline_of_who_was_to_join_it():
    bed = Bed()
    bed.join()

    bed.write(lambda shard: shard.delete_group("g"), Answer().reply)

    assert bed.group() is None
    assert deadlines_of(bed) == []


def test_a_leaders_second_assignment_of_a_generation_is_not_written():
    bed = Bed()
    leader, joined = bed.add_member()
    bed.advance(0)
    assert joined.response.generation_id == 1
    bed.records()
    bed.log.held_back = True

    bed.sync(leader, 1, {leader: b"first"})
    second = bed.sync(leader, 1, {leader: b"second"})
    bed.log.hold_back_no_more()

    assert [record.value.members[0].assignment for record in bed.records()] == [b"first"]
    assert second.response.assignment == b"first"


def test_who_is_answered_within_an_append_adds_nothing_to_what_is_appended():
    bed = Bed()
    (member,) = bed.stable("c")
    bed.log.held_back = True
    joins = []
    # An answer that waits for the high watermark, and whose receiver has a new request at once.
    bed.join(group_id="other", on_response=lambda _: joins.append(bed.join(group_id="third", turn=False)))
    bed.log.held_back = False

    bed.write(lambda shard: shard.delete_group("other"), Answer().reply)

    assert bed.faults == []
    assert joins[0].response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert bed.heartbeat(member) is ErrorCode.NONE


def test_answers_come_in_the_order_of_the_decisions_where_the_high_watermark_moves_before_the_batch_is_appended():
    bed = Bed()
    answered = []
    request = HEARTBEAT.HeartbeatRequest(group_id="first", member_id="nobody", generation_id=1)
    bed.log.held_back = True
    bed.join(group_id="first")
    bed.write(lambda shard: shard.heartbeat(request), Answer(lambda _: answered.append("first")).reply)
    bed.join(group_id="second", turn=False)
    bed.write(lambda shard: shard.heartbeat(request), Answer(lambda _: answered.append("second")).reply, turn=False)

    bed.log.hold_back_no_more()

    bed.turn()
    assert answered == ["first", "second"]


def test_a_member_of_a_consumer_group_may_not_keep_what_it_was_to_give_up_before_a_failed_write():
    bed = ConsumerBed(assignment_interval_ms=0)
    bed.topic("t", 12)
    _, everything = bed.accepted("a", 0)
    bed.accepted("b", 0)
    bed.accepted("c", 0)
    _, kept = bed.accepted("a", 2, owned=everything)
    bed.log.failure = ErrorCode.MESSAGE_TOO_LARGE
    # It gives up what it was to, is told to give up more in a new epoch, and all of this is lost.
    bed.beat("a", 2, owned=kept, turn=False)
    bed.beat("d", 0, turn=False)
    bed.beat("a", 4, owned=kept)
    bed.log.failure = None
    members = bed.shard.consumer.find("g").members
    for _ in range(6):
        bed.advance(20_000)
        for name in ("b", "c"):
            bed.accepted(name, members[name].member_epoch)
        if "a" in members:
            bed.accepted("a", 2, owned=everything)
    assert sorted(members) == ["b", "c"]


def test_a_member_of_a_streams_group_may_not_keep_what_it_was_to_give_up_before_a_failed_write():
    bed = StreamsBed()
    bed.topology = STATELESS
    bed.topic("t", 12)
    _, everything = bed.granted("a", 0)
    bed.granted("b", 0)
    epoch, kept = bed.again("a", owned=everything)
    bed.granted("c", 0)
    bed.log.failure = ErrorCode.MESSAGE_TOO_LARGE
    bed.denied("a", epoch, owned=kept)
    bed.log.failure = None
    members = bed.streams_group().members
    for _ in range(6):
        bed.advance(20_000)
        bed.again("b")
        bed.again("c")
        if "a" in members:
            bed.again("a", owned=everything)
    assert sorted(members) == ["b", "c"]
