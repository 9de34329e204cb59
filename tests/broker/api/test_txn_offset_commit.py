"""TxnOffsetCommit over a raw socket: offsets that count with their transaction, in every version."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, make_broker
from tests.broker.api.transaction_requests import add_offsets, commit_offset, committed, end, init


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_a_transaction_count_when_it_is_committed(client, new_id, new_name, topic, version):
    name, group = new_id(), new_name()
    producer = init(client, name)
    assert add_offsets(client, name, producer, group, version) == ErrorCode.NONE
    assert commit_offset(client, name, producer, group, topic[0], version) == ErrorCode.NONE
    assert committed(client, group, topic[0]) == -1
    assert committed(client, group, topic[0], require_stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    end(client, name, producer)
    assert committed(client, group, topic[0], require_stable=True) == 5


def test_since_version_5_the_groups_partition_is_added_by_the_commit(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    assert commit_offset(client, name, producer, group, topic[0], 5) == ErrorCode.NONE
    end(client, name, producer, 5)
    assert committed(client, group, topic[0]) == 5


@pytest.mark.parametrize("version", range(5))
def test_offsets_of_a_group_that_was_not_added_are_refused(client, new_id, new_name, topic, version):
    name, group = new_id(), new_name()
    producer = init(client, name)
    code = ErrorCode.INVALID_TXN_STATE if version < 4 else ErrorCode.TRANSACTION_ABORTABLE
    assert commit_offset(client, name, producer, group, topic[0], version) == code


def test_offsets_of_a_topic_that_is_not_there_are_refused(client, new_id, new_name):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    assert commit_offset(client, name, producer, group, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_zombie_whose_generation_is_gone_cannot_commit_offsets(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    code = commit_offset(client, name, producer, group, topic[0], generation_id=3, member_id="zombie")
    assert code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("version", "told"), [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (4, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_a_client_tries_again_when_the_coordinator_of_its_transaction_is_silent(monkeypatch, version, told):
    m = messages(ApiKey.TXN_OFFSET_COMMIT)
    broker = make_broker("t")
    monkeypatch.setattr(broker.transactions, "verify", lambda *_, adds: ErrorCode.NETWORK_EXCEPTION)
    topics = [m.TxnOffsetCommitRequestTopic("t", [m.TxnOffsetCommitRequestPartition(0, 5)])]
    answer = ask(
        broker,
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactional_id="tx",
        group_id="g",
        producer_id=7,
        producer_epoch=0,
        topics=topics,
    )
    assert [partition.error_code for topic in answer.topics for partition in topic.partitions] == [told]


def test_a_broker_that_does_not_coordinate_the_group_begins_no_transaction():
    m = messages(ApiKey.TXN_OFFSET_COMMIT)
    broker = make_broker("t")
    producer = ask(broker, ApiKey.INIT_PRODUCER_ID, 4, transactional_id="tx", transaction_timeout_ms=60_000)
    groups = broker.groups.runtime
    groups.unload(groups.partition_for("g"))
    answer = ask(
        broker,
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        transactional_id="tx",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[m.TxnOffsetCommitRequestTopic("t", [m.TxnOffsetCommitRequestPartition(0, 5)])],
    )
    assert [partition.error_code for topic in answer.topics for partition in topic.partitions] == [ErrorCode.NOT_COORDINATOR]
    [state] = ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["tx"]).transaction_states
    assert state.transaction_state == "Empty"
