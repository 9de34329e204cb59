import pytest

from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from tests.broker.api.bed import ask, create
from tests.broker.replica.replication_bed import FIRST, LEADER, FakeReplication, lead
from tests.storage.transactional import transactional_batch

M = messages(ApiKey.WRITE_TXN_MARKERS)


@pytest.fixture
def broker(core):
    create(core, "t", 2)
    core.partitions.get("t", 0).append(transactional_batch(epoch=3, timestamp=0), 0, True)
    return core


def write(broker, *partitions, topic="t", epoch=3, coordinator_epoch=-1, commit=False, version=2, **fields):
    """The error of each partition."""
    marker = M.WritableTxnMarker(
        producer_id=7,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[M.WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
        coordinator_epoch=coordinator_epoch,
        **fields,
    )
    (answer,) = ask(broker, ApiKey.WRITE_TXN_MARKERS, version, markers=[marker]).markers
    ((found,),) = (answer.topics,)
    assert (answer.producer_id, found.name) == (7, topic)
    return {result.partition_index: result.error_code for result in found.partitions}


def test_a_transaction_that_nobody_ends_is_aborted(broker):
    partition = broker.partitions.get("t", 0)
    assert partition.last_stable_offset == 0
    assert write(broker, 0, 1) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    assert partition.last_stable_offset == 2
    assert partition.log.aborted_transactions(0, 2) == [(7, 0)]


def test_a_transaction_is_committed(broker):
    write(broker, 0, commit=True)
    assert broker.partitions.get("t", 0).log.aborted_transactions(0, 2) == []


def test_each_partition_has_its_own_error(broker):
    assert write(broker, 0, 5, epoch=2) == {0: ErrorCode.INVALID_PRODUCER_EPOCH, 5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_old_coordinator_is_fenced(broker):
    write(broker, 0, coordinator_epoch=4)
    assert write(broker, 0, coordinator_epoch=3) == {0: ErrorCode.TRANSACTION_COORDINATOR_FENCED}


def test_version_2_says_how_the_epoch_is_judged(broker):
    assert write(broker, 0, transaction_version=2) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert write(broker, 0, epoch=4, transaction_version=2) == {0: ErrorCode.NONE}


async def test_a_group_coordinator_that_is_not_there_yet_is_no_leader(broker):
    broker.controller.ensure_internal_topic(CONSUMER_OFFSETS_TOPIC)
    # There is something to load, and so it takes a turn of the loop.
    broker.partitions.get(CONSUMER_OFFSETS_TOPIC, 0).append(build_batch([Record(timestamp=0, key=b"k", value=b"v")]), 0)
    assert write(broker, 0, topic=CONSUMER_OFFSETS_TOPIC) == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize(("needed", "error"), [(2, ErrorCode.NONE), (3, ErrorCode.NOT_ENOUGH_REPLICAS)])
def test_a_marker_needs_as_many_replicas_as_an_append_with_all_acks(broker, needed, error):
    partition = broker.partitions.get("t", 0)
    lead(FakeReplication(), partition, partition.leader_epoch + 1, 0, (LEADER, FIRST), lambda: needed)
    end = partition.log.log_end_offset
    try:
        broker.transactions.write_marker_here("t", 0, EndTxnMarker(7, 3, -1, False))
        found = ErrorCode.NONE
    except KafkaError as refusal:
        found = refusal.code
    assert (found, partition.log.log_end_offset - end) == (error, error is ErrorCode.NONE)
