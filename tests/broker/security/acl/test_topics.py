"""Of several topics a request names, those that its client may use are served, and the others refused."""

from uuid import UUID

import pytest

from odradek.common.acls import AclOperation
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.add_partitions_to_txn import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from odradek.protocol.message_types.alter_configs import AlterableConfig, AlterConfigsResource
from odradek.protocol.message_types.create_topics import CreatableTopic
from odradek.protocol.message_types.delete_topics import DeleteTopicState
from odradek.protocol.message_types.describe_topic_partitions import RequestCursor, TopicRequest
from odradek.protocol.message_types.fetch import FetchPartition, FetchTopic
from odradek.protocol.message_types.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from odradek.protocol.message_types.metadata import MetadataRequestTopic
from odradek.protocol.messages import messages
from tests.broker.security.acl.bed import Secured, batch, codes_in, told_lines

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NONE = ErrorCode.NONE


@pytest.fixture
def secured():
    made = Secured("mine", "theirs")
    made.allow("ALL TOPIC mine")
    return made


def bits(*operations):
    return sum(1 << AclOperation[each] for each in operations)


def test_produce_appends_what_it_may(secured):
    asked = [("theirs", [(0, batch())]), ("mine", [(0, batch())]), ("none", [(0, batch())])]
    answer = secured.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=9, topics=asked)
    told = {topic.name: topic.partition_responses[0] for topic in answer.responses}
    assert {name: each.error_code for name, each in told.items()} == {"mine": NONE, "theirs": REFUSED, "none": REFUSED}
    assert (told["theirs"].base_offset, told["mine"].base_offset) == (-1, 0)
    assert secured.broker.partitions.get("theirs", 0).log.log_end_offset == 0


def test_produce_by_id_is_refused_by_the_name(secured):
    ids = [secured.topic_id("mine").bytes, secured.topic_id("theirs").bytes, UUID(int=7).bytes]
    answer = secured.ask(ApiKey.PRODUCE, 13, acks=-1, timeout_ms=9, topics=[(each, [(0, batch())]) for each in ids])
    told = {topic.topic_id.bytes: topic.partition_responses[0].error_code for topic in answer.responses}
    assert told == dict(zip(ids, (NONE, REFUSED, ErrorCode.UNKNOWN_TOPIC_ID), strict=True))


def test_produce_without_acks_closes_the_connection_and_appends_what_it_may(secured):
    asked = [("theirs", [(0, batch())]), ("mine", [(0, batch())])]
    assert secured.ask(ApiKey.PRODUCE, 12, acks=0, topics=asked) is CLOSE_CONNECTION
    assert secured.broker.partitions.get("mine", 0).log.log_end_offset == 1


def test_transactional_batches_need_a_transactional_id_that_may_be_written(secured):
    asked = [("mine", [(0, batch(is_transactional=True))])]
    for transactional_id in (None, "x"):
        answer = secured.ask(ApiKey.PRODUCE, 12, acks=-1, transactional_id=transactional_id, topics=asked)
        assert codes_in(ApiKey.PRODUCE, answer) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        closed = secured.ask(ApiKey.PRODUCE, 12, acks=0, transactional_id=transactional_id, topics=asked)
        assert closed is CLOSE_CONNECTION


class Session:
    """A client's fetch session."""

    def __init__(self, secured, *topics, by_id=False):
        self._secured = secured
        self._by_id = by_id
        self._answer = self._fetch(0, 0, topics)
        self._epoch = 0

    def _fetch(self, session_id, epoch, topics=()):
        key, version = ("topic_id", 13) if self._by_id else ("topic", 12)
        asked = [FetchTopic(**{key: topic}, partitions=[FetchPartition(partition_max_bytes=1000)]) for topic in topics]
        return self._secured.ask(ApiKey.FETCH, version, session_id=session_id, session_epoch=epoch, topics=asked, max_bytes=1000)

    def again(self):
        self._epoch += 1
        self._answer = self._fetch(self._answer.session_id, self._epoch)
        return self.told

    @property
    def told(self):
        return {topic.topic_id or topic.topic: topic.partitions[0].error_code for topic in self._answer.responses}


def test_a_fetch_session_tells_of_a_deleted_topic_only_who_might_read_it(secured):
    mine, theirs = secured.topic_id("mine"), secured.topic_id("theirs")
    session = Session(secured, mine, theirs, by_id=True)
    assert session.told == {mine: NONE, theirs: REFUSED}
    secured.broker.controller.delete_topics([mine, theirs])
    assert session.again() == {mine: UNKNOWN, theirs: REFUSED}


def test_a_fetch_session_refuses_in_each_answer_what_may_not_be_read(secured):
    session = Session(secured, "mine", "theirs", "none")
    assert session.told == {"mine": NONE, "theirs": REFUSED, "none": REFUSED}
    assert session.again() == {"theirs": REFUSED, "none": REFUSED}


def test_a_fetch_session_follows_rights_that_change(secured):
    session = Session(secured, "mine", "theirs")
    secured.allow("READ TOPIC theirs")
    assert session.again() == {"theirs": NONE}
    secured.deny("READ TOPIC mine")
    assert session.again() == {"mine": REFUSED}


def test_a_follower_needs_cluster_action(secured):
    def fetched():
        asked = [FetchTopic(topic="mine", partitions=[FetchPartition(partition_max_bytes=1000)])]
        return secured.ask(ApiKey.FETCH, 12, replica_id=1, topics=asked, max_bytes=1000).responses[0].partitions[0].error_code

    assert fetched() == REFUSED
    secured.allow("CLUSTER_ACTION CLUSTER kafka-cluster")
    assert fetched() != REFUSED


def test_list_offsets_tells_what_is_not_there_only_to_who_may_know(secured):
    secured.allow("DESCRIBE TOPIC absent")
    asked = [ListOffsetsTopic(name, [ListOffsetsPartition(timestamp=-1)]) for name in ("mine", "theirs", "none", "absent")]
    answer = secured.ask(ApiKey.LIST_OFFSETS, topics=asked)
    told = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert told == {"mine": NONE, "theirs": REFUSED, "none": REFUSED, "absent": UNKNOWN}


def metadata(secured, *names, version=None, topics=None, **fields):
    asked = None if names == (None,) else [MetadataRequestTopic(name=name) for name in names]
    return secured.ask(ApiKey.METADATA, version, topics=topics or asked, **fields)


def test_metadata_of_all_topics_leaves_out_what_the_client_may_not_know(secured):
    with told_lines() as lines:
        assert [topic.name for topic in metadata(secured, None).topics] == ["mine"]
    assert lines == []


def test_topics_are_made_only_for_who_may_create_them(secured):
    secured.allow("DESCRIBE TOPIC new*", "CREATE TOPIC new1")
    told = {topic.name: topic.error_code for topic in metadata(secured, "new1", "new2", "other").topics}
    assert told["new2"] == told["other"] == REFUSED
    assert "new1" in secured.broker.controller.image.topics
    assert "new2" not in secured.broker.controller.image.topics
    told = {topic.name: topic.error_code for topic in metadata(secured, "new2", allow_auto_topic_creation=False).topics}
    assert told == {"new2": UNKNOWN}
    secured.allow("CREATE CLUSTER kafka-cluster")
    metadata(secured, "new3")
    assert "new3" in secured.broker.controller.image.topics


def test_authorized_operations_are_the_clients(secured):
    secured.allow("READ TOPIC theirs")
    answer = metadata(
        secured, None, version=10, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    assert {topic.name: topic.topic_authorized_operations for topic in answer.topics} == {
        "mine": bits("READ", "WRITE", "CREATE", "DESCRIBE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        "theirs": bits("READ", "DESCRIBE"),
    }
    assert answer.cluster_authorized_operations == 0
    secured.allow("ALTER CLUSTER kafka-cluster")
    cluster = secured.ask(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True)
    assert cluster.cluster_authorized_operations == bits("ALTER", "DESCRIBE")
    assert secured.ask(ApiKey.DESCRIBE_CLUSTER).cluster_authorized_operations == -(2**31)
    page = secured.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=[TopicRequest("theirs")])
    assert page.topics[0].topic_authorized_operations == bits("READ", "DESCRIBE")


def test_pages_of_topics_leave_out_what_the_client_may_not_know(secured):
    def names(**fields):
        return [(topic.name, topic.error_code) for topic in secured.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, **fields).topics]

    assert names() == [("mine", NONE)]
    assert names(cursor=RequestCursor("theirs", 0)) == []
    assert names(cursor=RequestCursor("hidden", 0)) == [("mine", NONE)]
    assert names(topics=[TopicRequest("theirs"), TopicRequest("mine")]) == [("mine", NONE), ("theirs", REFUSED)]
    invalid = names(topics=[TopicRequest("mine")], cursor=RequestCursor("theirs", 0))
    assert invalid == [("mine", ErrorCode.INVALID_REQUEST)]


def test_a_created_topic_is_described_to_who_may_describe_configs(secured):
    secured.allow("CREATE TOPIC a*", "DESCRIBE_CONFIGS TOPIC ab")
    asked = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("aa", "ab", "b")]
    told = {topic.name: topic for topic in secured.ask(ApiKey.CREATE_TOPICS, topics=asked).topics}
    assert {name: topic.error_code for name, topic in told.items()} == {"aa": NONE, "ab": NONE, "b": REFUSED}
    assert (told["aa"].topic_config_error_code, told["aa"].num_partitions, len(told["aa"].configs)) == (REFUSED, -1, 0)
    assert (told["ab"].topic_config_error_code, told["ab"].num_partitions) == (NONE, 1)
    assert told["ab"].configs


def test_deleting_tells_names_and_absence_only_to_who_may_know(secured):
    secured.allow("DESCRIBE TOPIC theirs", "DESCRIBE TOPIC absent")
    hidden = Secured("hidden")
    by_name = [DeleteTopicState(name=name) for name in ("theirs", "absent", "none")]
    told = {topic.name: topic.error_code for topic in secured.ask(ApiKey.DELETE_TOPICS, topics=by_name).responses}
    assert told == {"theirs": REFUSED, "absent": UNKNOWN, "none": REFUSED}
    for of, name in ((secured, "theirs"), (hidden, None)):
        topic_id = of.topic_id(name or "hidden")
        (answer,) = of.ask(ApiKey.DELETE_TOPICS, topics=[DeleteTopicState(topic_id=topic_id)]).responses
        assert (answer.name, answer.topic_id, answer.error_code) == (name, topic_id, REFUSED)
    (answer,) = secured.ask(ApiKey.DELETE_TOPICS, topics=[DeleteTopicState(name="mine")]).responses
    assert (answer.name, answer.error_code) == ("mine", NONE)


def test_no_partition_is_added_to_a_transaction_beside_one_that_may_not_be(secured):
    secured.allow("WRITE TRANSACTIONAL_ID x")
    topics = [AddPartitionsToTxnTopic(name, [0]) for name in ("mine", "theirs")] + [AddPartitionsToTxnTopic("mine", [7])]
    asked = AddPartitionsToTxnTransaction(transactional_id="x", topics=topics)
    (result,) = secured.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, transactions=[asked]).results_by_transaction
    assert [each.results_by_partition[0].partition_error_code for each in result.topic_results] == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        REFUSED,
        UNKNOWN,
    ]


def test_what_is_wrong_with_brokers_configs_is_told_to_anybody(secured):
    def altered(kind, name, *configs):
        resource = AlterConfigsResource(kind, name, [AlterableConfig(*config) for config in configs])
        return secured.ask(ApiKey.ALTER_CONFIGS, resources=[resource]).responses[0].error_code

    assert altered(4, "1", ("num.partitions", "x")) == ErrorCode.INVALID_REQUEST
    assert altered(4, "1", ("log.retention.ms", "1")) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert secured.broker.config["log.retention.ms"] is None
    assert altered(2, "theirs", ("a", None)) == ErrorCode.INVALID_REQUEST
    assert altered(2, "theirs", ("a", "b")) == altered(2, "none", ("a", "b")) == REFUSED
    assert altered(2, "mine", ("retention.ms", "7")) == NONE


@pytest.mark.parametrize("api_key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize("kind", ["twice", "two values", "no value"])
def test_what_is_refused_whoever_asks_changes_nothing(secured, api_key, kind):
    structs = messages(api_key).classes["request"]
    config = structs["AlterableConfig"](name="retention.ms", value=None if kind == "no value" else "5")
    resource = structs["AlterConfigsResource"](2, "theirs", [config] * (2 if kind == "two values" else 1))
    resources = [resource] * (2 if kind == "twice" else 1)
    assert codes_in(api_key, secured.ask(api_key, resources=resources)) == {ErrorCode.INVALID_REQUEST}
    assert secured.broker.controller.image.configs(2, "theirs") == {}


def test_each_refusal_is_one_line_and_a_flood_of_them_is_cut(secured):
    with told_lines() as lines:
        for _ in range(30):
            metadata(secured, "theirs")
    assert len(lines) == 10
    assert lines[0] == (
        "authorization denied",
        {
            "principal": "User:alice",
            "operation": "Describe",
            "host": "127.0.0.1",
            "resource": "Topic:LITERAL:theirs",
            "request": "METADATA",
            "references": 1,
            "rule": "DefaultDeny",
        },
    )


def test_the_line_tells_by_which_entry_it_was_denied(secured):
    secured.deny("READ TOPIC m*")
    with told_lines() as lines:
        Session(secured, "mine")
    assert [fields["rule"] for _, fields in lines] == ["DENY User:alice Read from * on Topic:PREFIXED:m"]


def test_rights_may_be_for_one_address(secured):
    secured.allow("DESCRIBE TOPIC theirs 0:0:0:0:0:0:0:1")
    asked = [MetadataRequestTopic(name="theirs")]
    codes = [secured.ask(ApiKey.METADATA, peer=peer, topics=asked).topics[0].error_code for peer in ("127.0.0.1", "::1")]
    assert codes == [REFUSED, NONE]
