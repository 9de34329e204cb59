"""TxnOffsetCommit over a raw socket: offsets that count with their transaction, in every version."""

from uuid import UUID

import pytest

from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
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


def test_since_version_6_topics_have_ids(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    [told] = client.call(ApiKey.METADATA, 12, topics=[{"topic_id": None, "name": topic[0]}]).topics
    partitions = [{"partition_index": index, "committed_offset": 5, "committed_metadata": None} for index in (0, 99)]
    topics = [{"topic_id": each, "partitions": partitions} for each in (told.topic_id, UUID(int=99))]
    fields = {"producer_id": producer[0], "producer_epoch": producer[1], "topics": topics}
    answer = client.call(ApiKey.TXN_OFFSET_COMMIT, 6, transactional_id=name, group_id=group, **fields)
    codes = {(each.topic_id, one.partition_index): one.error_code for each in answer.topics for one in each.partitions}
    assert codes == {
        (told.topic_id, 0): ErrorCode.NONE,
        (told.topic_id, 99): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (UUID(int=99), 0): ErrorCode.UNKNOWN_TOPIC_ID,
        (UUID(int=99), 99): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    end(client, name, producer, 5)
    assert committed(client, group, topic[0]) == 5


def test_offsets_of_a_topic_that_is_not_there_are_refused(client, new_id, new_name):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    assert commit_offset(client, name, producer, group, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_zombie_whose_generation_is_gone_cannot_commit_offsets(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    add_offsets(client, name, producer, group)
    code = commit_offset(client, name, producer, group, topic[0], generation_id_or_member_epoch=3, member_id="zombie")
    assert code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("version", "told"), [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (4, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_a_client_tries_again_when_the_coordinator_of_its_transaction_is_silent(monkeypatch, version, told):
    m = messages(ApiKey.TXN_OFFSET_COMMIT)
    broker = make_broker("t")
    monkeypatch.setattr(broker.transactions, "verify", lambda *_, adds: ErrorCode.NETWORK_EXCEPTION)
    topics = [m.TxnOffsetCommitRequestTopic(name="t", partitions=[m.TxnOffsetCommitRequestPartition(0, 5)])]
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
        topics=[m.TxnOffsetCommitRequestTopic(name="t", partitions=[m.TxnOffsetCommitRequestPartition(0, 5)])],
    )
    assert [partition.error_code for topic in answer.topics for partition in topic.partitions] == [ErrorCode.NOT_COORDINATOR]
    [state] = ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["tx"]).transaction_states
    assert state.transaction_state == "Empty"


def test_an_open_transaction_goes_on_in_the_groups_partition_without_being_verified_again(client, new_id, new_name, topic):
    name, group = new_id(), new_name()
    producer = init(client, name)
    assert commit_offset(client, new_id(), producer, group, topic[0], 3) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    add_offsets(client, name, producer, group)
    for version in (3, 4, 5):
        assert commit_offset(client, name if version == 3 else new_id(), producer, group, topic[0], version) == ErrorCode.NONE
    end(client, name, producer)
    assert commit_offset(client, name, producer, group, topic[0], 3) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.interpreted
def test_an_answer_of_the_coordinator_is_void_if_a_marker_has_arrived_before_it(monkeypatch):
    m = messages(ApiKey.TXN_OFFSET_COMMIT)
    broker = make_broker("t")
    producer = ask(broker, ApiKey.INIT_PRODUCER_ID, 4, transactional_id="tx", transaction_timeout_ms=60_000)
    of_it = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    assert ask(broker, ApiKey.ADD_OFFSETS_TO_TXN, 3, transactional_id="tx", group_id="g", **of_it).error_code == ErrorCode.NONE
    verdict = Reply()
    monkeypatch.setattr(broker.transactions, "verify", lambda *_, adds: verdict)
    topics = [m.TxnOffsetCommitRequestTopic(name="t", partitions=[m.TxnOffsetCommitRequestPartition(0, 5)])]
    request = m.request(transactional_id="tx", group_id="g", topics=topics, **of_it)
    context = RequestContext(ApiKey.TXN_OFFSET_COMMIT, 4, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
    reply = broker.dispatcher.call(context, request)
    place = messages(ApiKey.WRITE_TXN_MARKERS).WritableTxnMarkerTopic(
        "__consumer_offsets", [broker.groups.runtime.partition_for("g")]
    )
    markers = [messages(ApiKey.WRITE_TXN_MARKERS).WritableTxnMarker(topics=[place], coordinator_epoch=1, **of_it)]
    ask(broker, ApiKey.WRITE_TXN_MARKERS, markers=markers)
    verdict.complete(ErrorCode.NONE)
    assert reply.done
    assert [each.error_code for topic in reply.response.topics for each in topic.partitions] == [ErrorCode.INVALID_TXN_STATE]
