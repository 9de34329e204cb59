"""The leader's half of replication: what is replicated, who is in sync, and what acknowledges a record."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.broker.replica.delayed_produce import DelayedProduce
from odradek.broker.replica.in_sync_replicas import NO_EPOCH, CommittedIsr
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.replication_bed import (
    FIRST,
    LEADER,
    LEADER_EPOCH,
    MAX_LAG_MS,
    PARTITION_EPOCH,
    SECOND,
    TOPIC_ID,
    ReplicationBed,
    lead,
)
from tests.storage.support import NOW_MS
from tests.storage.transactional import transactional_batch


def test_a_record_is_replicated_when_every_in_sync_replica_has_fetched_it(bed):
    bed.append(3)
    bed.fetch(FIRST, 3)
    assert bed.high_watermark == 0
    bed.fetch(SECOND, 2)
    assert bed.high_watermark == 2
    bed.fetch(SECOND, 3)
    assert bed.high_watermark == 3


def test_a_replica_that_is_not_in_sync_and_has_never_fetched_holds_nothing_back():
    bed = ReplicationBed(isr=[LEADER, FIRST])
    bed.append(3)
    bed.fetch(FIRST, 3)
    assert bed.high_watermark == 3


def test_followers_that_wait_at_the_end_are_woken_by_an_append_that_is_not_replicated_yet(bed):
    bed.append()
    assert (bed.woken, bed.high_watermark) == (1, 0)


def test_an_in_sync_replica_that_falls_behind_is_taken_out_and_then_holds_nothing_back(bed):
    bed.append(2)
    bed.fetch(FIRST, 2)
    bed.replication.now_ms += MAX_LAG_MS
    bed.followers.shrink(2)
    assert bed.replication.proposals == []
    bed.replication.now_ms += 1
    bed.followers.shrink(2)
    [proposal] = bed.replication.proposals
    assert proposal == (TOPIC_ID, 0, LEADER_EPOCH, PARTITION_EPOCH, ((LEADER, 10), (FIRST, 20)))
    assert bed.high_watermark == 0
    bed.replication.accept()
    assert (bed.high_watermark, bed.isr) == (2, {LEADER, FIRST})


def test_a_replica_at_the_end_is_in_sync_however_long_nothing_was_written(bed):
    bed.append()
    for follower in (FIRST, SECOND):
        bed.fetch(follower, 1)
    bed.replication.now_ms += 10 * MAX_LAG_MS
    bed.followers.shrink(1)
    assert bed.replication.proposals == []


def test_a_follower_that_is_never_at_the_end_but_was_a_fetch_ago_is_in_sync(bed):
    for step in range(5):
        end_offset = bed.append() + 1
        bed.replication.now_ms += MAX_LAG_MS
        bed.fetch(FIRST, end_offset)
        # One record behind each time.
        bed.fetch(SECOND, step)
    bed.followers.shrink(5)
    assert bed.replication.proposals == []


def test_a_proposal_that_is_open_keeps_both_sets_of_replicas_in_the_high_watermark():
    bed = ReplicationBed(isr=[LEADER, FIRST])
    bed.append(2)
    bed.fetch(FIRST, 2)
    bed.fetch(SECOND, 2)
    assert [dict(proposal.isr) for proposal in bed.replication.proposals] == [{LEADER: 10, FIRST: 20, SECOND: 30}]
    bed.append()
    bed.fetch(FIRST, 3)
    assert bed.high_watermark == 2
    bed.fetch(SECOND, 3)
    assert bed.high_watermark == 3
    bed.replication.accept()
    assert bed.isr == {LEADER, FIRST, SECOND}


def test_a_follower_joins_only_when_it_has_all_that_was_committed_and_all_from_before_this_leader():
    bed = ReplicationBed(isr=[LEADER], records=5)
    assert bed.high_watermark == 0
    bed.fetch(FIRST, 4)
    assert bed.replication.proposals == []
    bed.fetch(FIRST, 5)
    assert len(bed.replication.proposals) == 1


def test_a_follower_that_lacks_committed_records_does_not_join():
    bed = ReplicationBed(isr=[LEADER, FIRST])
    bed.append(3)
    bed.fetch(FIRST, 3)
    bed.fetch(SECOND, 2)
    assert bed.replication.proposals == []
    bed.fetch(SECOND, 3)
    assert len(bed.replication.proposals) == 1


def test_an_answer_of_another_leaders_epoch_is_not_taken():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    _, reply = bed.replication.asked[-1]
    reply.complete(CommittedIsr(LEADER_EPOCH + 1, PARTITION_EPOCH + 1, frozenset((LEADER, FIRST))))
    assert bed.isr == {LEADER}


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join():
    bed = ReplicationBed(isr=[LEADER])
    bed.append()
    bed.fetch(FIRST, 1)
    bed.replication.refuse(KafkaError(ErrorCode.INELIGIBLE_REPLICA))
    bed.append()
    assert bed.high_watermark == 1
    bed.replication.now_ms += MAX_LAG_MS + 1
    bed.append()
    assert bed.high_watermark == 3


@pytest.mark.parametrize("epoch", [None, 19, 21])
def test_a_broker_that_is_fenced_or_of_another_epoch_does_not_join(epoch):
    bed = ReplicationBed(isr=[LEADER])
    if epoch is None:
        del bed.replication.epochs[FIRST]
    if epoch == 19:
        with pytest.raises(KafkaError) as refused:
            bed.fetch(FIRST, 0, epoch)
        assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        bed.fetch(FIRST, 0, epoch)
    assert bed.replication.proposals == []


def test_a_follower_that_tells_no_epoch_may_join():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0, NO_EPOCH)
    [proposal] = bed.replication.proposals
    assert dict(proposal.isr)[FIRST] == NO_EPOCH


def test_a_broker_without_a_replica_is_told_that_this_leader_does_not_know_it(bed):
    with pytest.raises(KafkaError) as refused:
        bed.fetch(8, 0)
    assert refused.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_one_proposal_is_open_at_a_time():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    bed.fetch(SECOND, 0)
    bed.followers.shrink(0)
    assert len(bed.replication.proposals) == 1
    bed.replication.accept()
    bed.fetch(SECOND, 0)
    assert [len(proposal.isr) for proposal in bed.replication.proposals] == [2, 3]


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_proposal_that_was_not_applied_is_forgotten(code):
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    bed.replication.refuse(KafkaError(code))
    assert bed.followers.isr.proposed is None
    assert bed.isr == {LEADER}


@pytest.mark.parametrize(
    "code",
    [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NEW_LEADER_ELECTED],
)
def test_a_proposal_whose_outcome_is_unknown_stays_open_until_the_metadata_tell(code):
    bed = ReplicationBed(isr=[LEADER])
    bed.append()
    bed.fetch(FIRST, 0)
    bed.fetch(FIRST, 1)
    bed.replication.refuse(KafkaError(code))
    assert bed.followers.isr.maximal == {LEADER, FIRST}
    assert len(bed.replication.asked) == 1
    bed.followers.committed([LEADER, FIRST, SECOND], [LEADER], PARTITION_EPOCH + 1)
    assert bed.followers.isr.maximal == {LEADER}


def test_a_proposal_that_failed_for_no_lasting_reason_is_made_again():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    bed.replication.refuse(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    first, second = bed.replication.proposals
    assert first == second


def test_an_answer_that_the_metadata_have_overtaken_changes_nothing():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    bed.followers.committed([LEADER, FIRST, SECOND], [LEADER, SECOND], PARTITION_EPOCH + 3)
    bed.replication.accept()
    assert bed.isr == {LEADER, SECOND}


def test_metadata_that_the_answer_has_overtaken_change_nothing():
    bed = ReplicationBed(isr=[LEADER])
    bed.fetch(FIRST, 0)
    bed.replication.accept()
    bed.followers.committed([LEADER, FIRST, SECOND], [LEADER], PARTITION_EPOCH)
    assert bed.isr == {LEADER, FIRST}


def test_a_replica_that_is_assigned_later_is_known_and_one_that_is_taken_away_is_not():
    bed = ReplicationBed(isr=[LEADER])
    bed.followers.committed([LEADER, SECOND, 5], [LEADER], PARTITION_EPOCH + 1)
    assert bed.followers.follower(5) is not None
    assert bed.followers.follower(FIRST) is None


def test_under_min_isr_the_high_watermark_stands_still_and_acks_all_are_refused():
    bed = ReplicationBed(isr=[LEADER], min_in_sync=2)
    bed.append()
    assert bed.high_watermark == 0
    with pytest.raises(KafkaError) as refused:
        bed.partition.require_enough_replicas()
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    bed.fetch(FIRST, 1)
    assert bed.high_watermark == 0
    bed.replication.accept()
    bed.partition.require_enough_replicas()
    assert bed.high_watermark == 1


def test_min_insync_replicas_are_never_more_than_there_are_replicas():
    bed = ReplicationBed(min_in_sync=7)
    bed.partition.require_enough_replicas()
    assert bed.followers.min_in_sync == 3


def test_what_is_replicated_when_too_few_are_left_is_not_acknowledged_to_acks_all():
    bed = ReplicationBed(isr=[LEADER, FIRST], min_in_sync=2)
    last_offset = bed.append()
    answered = []
    operation = DelayedProduce(10.0, [(bed.partition, last_offset)], -1, answered.extend)
    assert not operation.try_complete()
    bed.fetch(FIRST, 1)
    bed.followers.committed([LEADER, FIRST, SECOND], [LEADER], PARTITION_EPOCH + 1)
    assert operation.try_complete()
    assert answered == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


@pytest.mark.parametrize(
    ("is_replicated", "expected"),
    [(True, ErrorCode.NONE), (False, ErrorCode.NOT_LEADER_OR_FOLLOWER)],
)
def test_what_became_of_one_batch_is_decided_once_whatever_comes_while_another_is_waited_for(bed, is_replicated, expected):
    other = ReplicationBed()
    waiting = [(bed.partition, bed.append()), (other.partition, other.append())]
    answered = []
    operation = DelayedProduce(10.0, waiting, -1, answered.extend)
    if is_replicated:
        for follower in (FIRST, SECOND):
            bed.fetch(follower, 1)
        assert not operation.try_complete()
    bed.partition.become_follower(FIRST, LEADER_EPOCH + 1)
    assert not operation.try_complete()
    bed.partition.truncate_to(0, 0)
    bed.followers = lead(bed.replication, bed.partition, LEADER_EPOCH + 2, PARTITION_EPOCH, [LEADER], lambda: 1)
    bed.append()
    assert not operation.try_complete()
    for follower in (FIRST, SECOND):
        other.fetch(follower, 1)
    assert operation.try_complete()
    assert answered == [expected, ErrorCode.NONE]


def test_a_produce_with_acks_all_waits_for_the_in_sync_replicas_and_one_with_acks_1_for_none(bed):
    last_offset = bed.append()
    assert bed.partition.is_acknowledged(last_offset, 1)
    answered = []
    operation = DelayedProduce(10.0, [(bed.partition, last_offset)], -1, answered.extend)
    bed.fetch(FIRST, 1)
    assert not operation.try_complete()
    bed.fetch(SECOND, 1)
    assert operation.try_complete()
    assert answered == [ErrorCode.NONE]


@pytest.mark.parametrize("commit", [True, False])
def test_committed_records_end_before_a_transaction_whose_marker_is_not_replicated(bed, commit):
    bed.partition.append(transactional_batch(0, count=2, producer=7), NOW_MS, True)
    bed.append(3)
    bed.fetch(FIRST, 5)
    bed.fetch(SECOND, 5)
    bed.partition.append_marker(EndTxnMarker(7, 0, 0, commit), NOW_MS)
    assert (bed.high_watermark, bed.partition.last_stable_offset) == (5, 0)
    bed.fetch(FIRST, 6)
    bed.fetch(SECOND, 6)
    assert (bed.high_watermark, bed.partition.last_stable_offset) == (6, 6)


class Replicated(RuleBasedStateMachine):
    """Whatever happens, what is below the high watermark is on every replica that the controller has in sync."""

    def __init__(self):
        super().__init__()
        self.bed = ReplicationBed(isr=[LEADER, FIRST], min_in_sync=1)
        # How far each follower's log is: never behind what it has asked for.
        self.ends = {FIRST: 0, SECOND: 0}
        # What the controller has.
        self.isr = frozenset((LEADER, FIRST))
        self.partition_epoch = PARTITION_EPOCH
        self.highest = 0

    @rule(count=st.integers(1, 3))
    def append(self, count):
        self.bed.append(count)

    @rule(follower=st.sampled_from((FIRST, SECOND)), count=st.integers(0, 4))
    def fetch(self, follower, count):
        """The follower appends some of what it is behind, and then asks for more."""
        self.ends[follower] = min(self.ends[follower] + count, self.bed.log.log_end_offset)
        self.bed.fetch(follower, self.ends[follower])

    @rule(duration_ms=st.integers(1, MAX_LAG_MS * 2))
    def wait(self, duration_ms):
        self.bed.replication.now_ms += duration_ms
        self.bed.followers.shrink(self.bed.log.log_end_offset)

    @precondition(lambda self: any(not reply.done for _, reply in self.bed.replication.asked))
    @rule(data=st.data(), is_lost=st.booleans(), is_refused=st.booleans())
    def answer(self, data, is_lost, is_refused):
        """The controller takes a proposal, or refuses it; its answer may be lost."""
        waiting = [each for each in self.bed.replication.asked if not each[1].done]
        proposal, reply = data.draw(st.sampled_from(waiting))
        if proposal.partition_epoch != self.partition_epoch:
            outcome = KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
        elif is_refused:
            outcome = KafkaError(ErrorCode.INELIGIBLE_REPLICA)
        else:
            self.isr = frozenset(node_id for node_id, _ in proposal.isr)
            self.partition_epoch += 1
            outcome = CommittedIsr(LEADER_EPOCH, self.partition_epoch, self.isr)
        reply.complete(KafkaError(ErrorCode.REQUEST_TIMED_OUT) if is_lost else outcome)

    @rule()
    def change(self):
        """The controller changes something by itself."""
        self.partition_epoch += 1

    @precondition(lambda self: FIRST in self.isr)
    @rule()
    def fence(self):
        """The controller takes a broker out that is dead."""
        self.isr -= {FIRST}
        self.partition_epoch += 1

    @rule()
    def be_told(self):
        """The metadata arrive."""
        self.bed.followers.committed((LEADER, FIRST, SECOND), self.isr, self.partition_epoch)

    @rule(follower=st.sampled_from((FIRST, SECOND)), is_alive=st.booleans())
    def live_or_not(self, follower, is_alive):
        epochs = self.bed.replication.epochs
        if is_alive:
            epochs[follower] = follower * 10
        else:
            epochs.pop(follower, None)

    @invariant()
    def is_replicated(self):
        for node_id in self.isr - {LEADER}:
            assert self.ends[node_id] >= self.bed.high_watermark

    @invariant()
    def never_goes_back(self):
        assert self.bed.high_watermark >= self.highest
        self.highest = self.bed.high_watermark

    @invariant()
    def knows_what_the_controller_has(self):
        assert self.isr <= self.bed.followers.isr.maximal


Replicated.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestReplicated = Replicated.TestCase
