"""Offsets committed in transactions: pending until the transaction ends, then committed or gone."""

import pytest

from odradek.coordinator.group.offset_commit import commit_offsets_in_transaction, end_transaction
from odradek.coordinator.group.offset_deletion import delete_offsets_of_topics
from odradek.coordinator.group.offset_fetch import LATEST, fetch_offsets
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from tests.coordinator.group.bed import Answer
from tests.coordinator.group.offsets_bed import DAY_MS, FETCH, OTHER_TOPIC_ID, TOPIC_ID, OffsetsBed
from tests.coordinator.memory_logs import MemoryLogs
from tests.coordinator.stored_log import StoredLog

IN_TRANSACTION = messages(ApiKey.TXN_OFFSET_COMMIT)
PRODUCER = (7, 0)
OTHER = (8, 0)
UNSTABLE = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


class Bed(OffsetsBed):
    """Offsets of partitions of ``t``, and transactions."""

    def ask(self, operation):
        answer = Answer()
        self.write(operation, answer.reply)
        return answer.response.code if isinstance(answer.response, KafkaError) else answer.response

    def commit_one(self, offset, partition=0, **options):
        return self.ask_to_commit({partition: offset}, topic_id=None, **options)

    def commit_in(self, producer, offset, partition=0, metadata="", version=6, topic_id=None, **fields):
        asked = IN_TRANSACTION.TxnOffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
        request = IN_TRANSACTION.TxnOffsetCommitRequest(
            group_id="g", producer_id=producer[0], producer_epoch=producer[1], **fields
        )
        topics = [(topic_id, [asked], "t")]
        answer = self.ask(lambda shard: commit_offsets_in_transaction(shard.offsets, request, topics, version))
        if answer is None:
            return ErrorCode.NONE
        return answer if isinstance(answer, ErrorCode) else answer.topics[0].partitions[0].error_code

    def end(self, producer, is_commit):
        return self.ask(lambda _: end_transaction(EndTxnMarker(*producer, 3, is_commit)))

    def offset(self, partition=0, *, stable=False):
        """What a fetch finds; with the error where it requires stable offsets."""
        request = FETCH.OffsetFetchRequestGroup("g", topics=[FETCH.OffsetFetchRequestTopics(None, [partition], "t")])
        answer = self.runtime.read(0, lambda shard, offset: fetch_offsets(shard.offsets, request, LATEST if stable else offset))
        (found,) = answer.topics[0].partitions
        return (found.committed_offset, found.error_code) if stable else found.committed_offset

    def state(self):
        offsets = self.shard.offsets
        return (
            {(group, topic): dict(each.items()) for group, of in offsets.by_group.items() for topic, each in of.items()},
            sorted(offsets.pending.of_group("g")),
        )


@pytest.fixture
def bed():
    return Bed()


def test_an_offset_is_pending_until_its_transaction_is_committed(bed):
    bed.commit_one(3)
    assert bed.commit_in(PRODUCER, 5) == ErrorCode.NONE
    assert (bed.offset(), bed.offset(stable=True)) == (3, UNSTABLE)
    assert bed.end(PRODUCER, True) is None
    assert (bed.offset(), bed.offset(stable=True)) == (5, (5, ErrorCode.NONE))


def test_an_offset_vanishes_with_an_aborted_transaction(bed):
    bed.commit_in(PRODUCER, 5)
    bed.end(PRODUCER, False)
    assert (bed.offset(), bed.offset(stable=True)) == (-1, (-1, ErrorCode.NONE))


def test_partitions_that_are_not_in_the_transaction_are_stable(bed):
    bed.commit_one(3, partition=1)
    bed.commit_in(PRODUCER, 5)
    assert bed.offset(1, stable=True) == (3, ErrorCode.NONE)


def test_a_later_commit_stays_when_the_transaction_ends(bed):
    bed.commit_in(PRODUCER, 5)
    bed.commit_one(7)
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


def test_a_deleted_topic_leaves_the_pending_offsets_of_another_of_its_name(bed):
    bed.commit_in(PRODUCER, 5, topic_id=TOPIC_ID)
    bed.commit_in(PRODUCER, 6, partition=1, topic_id=OTHER_TOPIC_ID)
    bed.commit_in(PRODUCER, 7, partition=2)
    bed.ask(lambda shard: delete_offsets_of_topics(shard.offsets, {"t": TOPIC_ID}))
    bed.end(PRODUCER, True)
    assert bed.state() == ({("g", "t"): {1: bed.shard.offsets.get("g", "t", 1)}}, [])


def test_a_deleted_group_takes_pending_offsets_with_it(bed):
    bed.commit_one(3)
    bed.commit_in(PRODUCER, 5, partition=1)
    assert bed.ask(lambda shard: shard.delete_group("g")).error_code == ErrorCode.NONE
    bed.end(PRODUCER, True)
    assert bed.state() == ({}, [])


def test_neither_a_pending_offset_nor_its_group_expires(bed):
    bed.commit_one(3)
    bed.commit_in(PRODUCER, 5)
    bed.advance(14 * DAY_MS)
    assert bed.offset() == 3
    bed.end(PRODUCER, True)
    assert bed.offset() == 5


def test_metadata_that_is_too_large_is_refused(bed):
    assert bed.commit_in(PRODUCER, 5, metadata="m" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert bed.log.log_end_offset == 0


def test_a_generation_of_a_group_that_is_not_there_is_illegal_to_older_clients(bed):
    for version, code in ((5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        assert bed.commit_in(PRODUCER, 5, version=version, generation_id_or_member_epoch=1, member_id="m") == code


def test_a_member_that_the_group_does_not_have_cannot_commit(bed):
    bed.commit_one(3)
    assert bed.commit_in(PRODUCER, 5, generation_id_or_member_epoch=1, member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_does_not_keep_its_member_alive(bed):
    (member_id,) = bed.consumers("c")
    bed.advance(9_000)
    assert bed.commit_in(PRODUCER, 5, generation_id_or_member_epoch=1, member_id=member_id) == ErrorCode.NONE
    bed.advance(1_000)
    assert bed.group().state == "Empty"


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_refusal_of_the_log_is_told_and_leaves_nothing(bed, code):
    bed.log.failures.append(KafkaError(code))
    assert bed.commit_in(PRODUCER, 5) == code
    bed.log.failures.append(KafkaError(code))
    assert bed.end(PRODUCER, True) == code
    assert (bed.state(), bed.faults) == (({}, []), [])


def test_what_waits_for_the_append_goes_before_a_transactional_batch(bed):
    waiting = bed.commit_one(3, turn=False)
    bed.commit_in(PRODUCER, 5)
    assert not waiting.waits
    bed.end(PRODUCER, True)
    assert bed.offset() == 5


def test_the_log_tells_it_all_again(bed):
    bed.commit_one(3)
    bed.commit_in(PRODUCER, 5, partition=1)
    bed.end(PRODUCER, True)
    bed.commit_in(PRODUCER, 6)
    bed.commit_in(OTHER, 7, partition=2)
    bed.end(OTHER, False)
    bed.commit_in(OTHER, 8)
    bed.commit_one(9, partition=1)
    before = bed.state()
    bed.restart()
    assert bed.state() == before
    bed.end(OTHER, True)
    bed.end(PRODUCER, True)
    assert [bed.offset(partition) for partition in range(3)] == [8, 9, -1]


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("next_offset", [None, 6])
def test_offsets_whose_marker_is_lost_are_aborted_by_the_next_transaction_however_it_ends(next_offset, is_commit):
    logs = MemoryLogs()
    logs.logs[0] = StoredLog()
    bed = Bed(logs=logs)
    bed.commit_in((7, 4), 5)
    # A marker of epoch 5, and perhaps offsets of the next transaction, were in the log until the power was lost.
    if next_offset is not None:
        assert bed.commit_in((7, 6), next_offset, partition=1) == ErrorCode.NONE
    assert bed.end((7, 7), is_commit) is None
    found = [bed.offset(0, stable=True), bed.offset(1, stable=True)]
    expected = next_offset if next_offset is not None and is_commit else -1
    assert found == [(-1, ErrorCode.NONE), (expected, ErrorCode.NONE)]
    state = bed.state()
    bed.restart()
    assert (bed.state(), bed.faults) == (state, [])
