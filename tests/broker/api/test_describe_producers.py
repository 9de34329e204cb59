import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create
from tests.storage.transactional import transactional_batch

M = messages(ApiKey.DESCRIBE_PRODUCERS)


def describe(broker, topic, partition=0):
    topics = [M.TopicRequest(name=topic, partition_indexes=[partition])]
    (answer,) = ask(broker, ApiKey.DESCRIBE_PRODUCERS, topics=topics).topics
    (result,) = answer.partitions
    assert (answer.name, result.partition_index) == (topic, partition)
    return result


def test_an_open_transaction_is_told_with_its_beginning(core):
    create(core, "t", records=1)
    core.partitions.get("t", 0).append(transactional_batch(3, count=2, producer=9, epoch=4, timestamp=17), 0, True)
    (found,) = describe(core, "t").active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence, found.last_timestamp) == (9, 4, 4, 17)
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (-1, 1)


def test_a_transaction_that_was_ended_is_not(core):
    create(core, "t")
    partition = core.partitions.get("t", 0)
    partition.append(transactional_batch(timestamp=17), 0, True)
    partition.log.coordinator_appends.append_marker(7, 0, 5, False, leader_epoch=0, now_ms=99)
    (found,) = describe(core, "t").active_producers
    assert (found.coordinator_epoch, found.current_txn_start_offset, found.last_timestamp) == (5, -1, 99)


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [
        ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_is_not_there_cannot_be_described(core, topic, partition, code):
    create(core, "t")
    result = describe(core, topic, partition)
    assert (result.error_code, list(result.active_producers)) == (code, [])


def test_an_offline_partition_says_so(core):
    create(core, "t")
    core.partitions.get("t", 0).take_offline("disk")
    assert describe(core, "t").error_code == ErrorCode.KAFKA_STORAGE_ERROR
