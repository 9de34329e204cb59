"""Offsets committed in transactions: pending until the transaction ends, then committed or gone."""

import pytest

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offset_commit import commit_offsets
from odradek.coordinator.group.offset_delete import delete_offsets_of_topics
from odradek.coordinator.group.offset_expiry import expire_offsets
from odradek.coordinator.group.offset_fetch import LATEST, fetch_offsets
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.txn_offsets import commit_offsets_in_transaction, end_transaction
from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.record import decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.coordinator.memory_logs import MemoryLogs
from tests.coordinator.stored_log import StoredLog

COMMIT = messages(ApiKey.OFFSET_COMMIT).classes["request"]
IN_TRANSACTION = messages(ApiKey.TXN_OFFSET_COMMIT).classes["request"]
FETCH = messages(ApiKey.OFFSET_FETCH).classes["request"]
GROUP = "group"
PRODUCER = (7, 0)
OTHER = (8, 0)
WEEK_MS = 7 * 24 * 60 * 60 * 1000
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


class Bed:
    """A group shard on a log in memory."""

    def __init__(self, log=None, **offset_config):
        self.clock = VirtualClock()
        self.logs = MemoryLogs()
        if log is not None:
            self.logs.logs[0] = log
        self.log = self.logs.logs[0]
        self.faults = []
        self._offset_config = OffsetConfig(**offset_config)
        self.load()

    def load(self):
        self.runtime = CoordinatorRuntime(
            "group", self.logs, self._make_shard, decode_group_record, Timer(self.clock), on_fault=self._fault
        )
        self.runtime.start_loading(0, 0)
        self.logs.run()

    def _fault(self, what, error):
        self.faults.append((what, error))

    def _make_shard(self, _partition, context):
        self.shard = GroupShard(context, config=GroupConfig, reports=None, new_id=lambda: "id", offset_config=self._offset_config)
        return self.shard

    def ask(self, operation):
        answers = []
        self.runtime.write(0, operation).when_done(answers.append)
        self.logs.run()
        (answer,) = answers
        return answer.code if isinstance(answer, KafkaError) else answer

    def commit(self, offset, partition=0):
        asked = COMMIT["OffsetCommitRequestPartition"](partition_index=partition, committed_offset=offset)
        topic = COMMIT["OffsetCommitRequestTopic"](name="t", partitions=[asked])
        request = COMMIT["OffsetCommitRequest"](group_id=GROUP, topics=[topic])
        self.ask(lambda shard: commit_offsets(shard.offsets, request, request.topics, 9))

    def commit_in(self, producer, offset, partition=0, metadata="", **fields):
        asked = IN_TRANSACTION["TxnOffsetCommitRequestPartition"](
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topic = IN_TRANSACTION["TxnOffsetCommitRequestTopic"](name="t", partitions=[asked])
        request = IN_TRANSACTION["TxnOffsetCommitRequest"](
            group_id=GROUP, producer_id=producer[0], producer_epoch=producer[1], topics=[topic], **fields
        )
        answer = self.ask(lambda shard: commit_offsets_in_transaction(shard.offsets, request))
        if answer is None:
            return ErrorCode.NONE
        return answer if isinstance(answer, ErrorCode) else answer.topics[0].partitions[0].error_code

    def end(self, producer, is_commit):
        return self.ask(lambda _: end_transaction(EndTxnMarker(*producer, 3, is_commit)))

    def offset(self, partition=0, *, stable=False):
        """What a fetch finds; with the error where it requires stable offsets."""
        topic = FETCH["OffsetFetchRequestTopics"](name="t", partition_indexes=[partition])
        request = FETCH["OffsetFetchRequestGroup"](group_id=GROUP, topics=[topic])

        def look(shard, committed_offset):
            answer = fetch_offsets(shard.offsets, request, LATEST if stable else committed_offset)
            (found,) = answer.topics[0].partitions
            return (found.committed_offset, found.error_code) if stable else found.committed_offset

        return self.runtime.read(0, look)

    def state(self):
        offsets = self.shard.offsets
        return (
            {(group, topic): dict(each.items()) for group, of in offsets.by_group.items() for topic, each in of.items()},
            sorted(offsets.pending.of_group(GROUP)),
        )


@pytest.fixture
def bed():
    return Bed()


def test_an_offset_is_pending_until_its_transaction_is_committed(bed):
    bed.commit(3)
    assert bed.commit_in(PRODUCER, 5) == ErrorCode.NONE
    assert (bed.offset(), bed.offset(stable=True)) == (3, UNSTABLE)
    assert bed.end(PRODUCER, True) is None
    assert (bed.offset(), bed.offset(stable=True)) == (5, (5, ErrorCode.NONE))


def test_an_offset_vanishes_with_an_aborted_transaction(bed):
    bed.commit_in(PRODUCER, 5)
    bed.end(PRODUCER, False)
    assert (bed.offset(), bed.offset(stable=True)) == (-1, (-1, ErrorCode.NONE))


def test_partitions_that_are_not_in_the_transaction_are_stable(bed):
    bed.commit(3, partition=1)
    bed.commit_in(PRODUCER, 5)
    assert bed.offset(1, stable=True) == (3, ErrorCode.NONE)


def test_a_later_commit_stays_when_the_transaction_ends(bed):
    bed.commit_in(PRODUCER, 5)
    bed.commit(7)
    assert bed.offset(stable=True) == UNSTABLE
    bed.end(PRODUCER, True)
    assert bed.offset() == 7


def test_of_two_transactions_the_later_offset_stays_whichever_ends_first(bed):
    bed.commit_in(PRODUCER, 5)
    bed.commit_in(OTHER, 6)
    bed.end(OTHER, True)
    assert (bed.offset(), bed.offset(stable=True)) == (6, UNSTABLE)
    bed.end(PRODUCER, True)
    assert bed.offset(stable=True) == (6, ErrorCode.NONE)


def test_an_earlier_transaction_that_ends_first_is_followed_by_the_later_one(bed):
    bed.commit_in(PRODUCER, 5)
    bed.commit_in(OTHER, 6)
    bed.end(PRODUCER, True)
    assert bed.offset() == 5
    bed.end(OTHER, True)
    assert bed.offset() == 6


def test_the_next_transaction_of_a_producer_starts_afresh(bed):
    bed.commit_in(PRODUCER, 5)
    bed.end(PRODUCER, False)
    bed.commit_in(PRODUCER, 6, partition=1)
    bed.end(PRODUCER, True)
    assert (bed.offset(0), bed.offset(1)) == (-1, 6)


def test_a_deleted_topic_takes_pending_offsets_with_it(bed):
    bed.commit_in(PRODUCER, 5)
    bed.ask(lambda shard: delete_offsets_of_topics(shard.offsets, {"t": None}))
    bed.end(PRODUCER, True)
    assert bed.offset() == -1


def test_a_deleted_group_takes_pending_offsets_with_it(bed):
    bed.commit(3)
    bed.commit_in(PRODUCER, 5, partition=1)
    assert bed.ask(lambda shard: shard.delete_group(GROUP)).error_code == ErrorCode.NONE
    bed.end(PRODUCER, True)
    assert bed.state() == ({}, [])


def test_neither_a_pending_offset_nor_its_group_expires(bed):
    bed.commit(3)
    bed.commit_in(PRODUCER, 5)
    bed.clock.advance(2 * WEEK_MS)
    bed.ask(lambda shard: expire_offsets(shard.offsets))
    assert bed.offset() == 3
    bed.end(PRODUCER, True)
    assert bed.offset() == 5


def test_metadata_that_is_too_large_is_refused(bed):
    assert bed.commit_in(PRODUCER, 5, metadata="m" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert bed.log.log_end_offset == 0


def test_a_generation_of_a_group_that_is_not_there_is_illegal(bed):
    assert bed.commit_in(PRODUCER, 5, generation_id=1, member_id="m") == ErrorCode.ILLEGAL_GENERATION


def test_a_member_that_the_group_does_not_have_cannot_commit(bed):
    bed.commit(3)
    assert bed.commit_in(PRODUCER, 5, generation_id=1, member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_refusal_of_the_log_is_told_and_leaves_nothing(bed, code):
    bed.log.failures.append(KafkaError(code))
    assert bed.commit_in(PRODUCER, 5) == code
    bed.log.failures.append(KafkaError(code))
    assert bed.end(PRODUCER, True) == code
    assert (bed.state(), bed.faults) == (({}, []), [])


def test_what_waits_for_the_append_goes_before_a_transactional_batch(bed):
    answers = []
    asked = COMMIT["OffsetCommitRequestPartition"](partition_index=0, committed_offset=3)
    topic = COMMIT["OffsetCommitRequestTopic"](name="t", partitions=[asked])
    request = COMMIT["OffsetCommitRequest"](group_id=GROUP, topics=[topic])
    bed.runtime.write(0, lambda shard: commit_offsets(shard.offsets, request, request.topics, 9)).when_done(answers.append)
    bed.commit_in(PRODUCER, 5)
    assert len(answers) == 1
    bed.end(PRODUCER, True)
    assert bed.offset() == 5


def test_the_log_tells_it_all_again(bed):
    bed.commit(3)
    bed.commit_in(PRODUCER, 5, partition=1)
    bed.end(PRODUCER, True)
    bed.commit_in(PRODUCER, 6)
    bed.commit_in(OTHER, 7, partition=2)
    bed.end(OTHER, False)
    bed.commit_in(OTHER, 8)
    bed.commit(9, partition=1)
    before = bed.state()
    bed.load()
    assert bed.state() == before
    bed.end(OTHER, True)
    bed.end(PRODUCER, True)
    assert [bed.offset(partition) for partition in range(3)] == [8, 9, -1]


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("next_offset", [None, 6])
def test_offsets_whose_marker_is_lost_are_aborted_by_the_next_transaction_however_it_ends(next_offset, is_commit):
    bed = Bed(log=StoredLog())
    bed.commit_in((7, 4), 5)
    # A marker of epoch 5, and perhaps offsets of the next transaction, were in the log until the power was lost.
    if next_offset is not None:
        assert bed.commit_in((7, 6), next_offset, partition=1) == ErrorCode.NONE
    assert bed.end((7, 7), is_commit) is None
    found = [bed.offset(0, stable=True), bed.offset(1, stable=True)]
    expected = next_offset if next_offset is not None and is_commit else -1
    assert found == [(-1, ErrorCode.NONE), (expected, ErrorCode.NONE)]
    state = bed.state()
    bed.load()
    assert (bed.state(), bed.faults) == (state, [])
