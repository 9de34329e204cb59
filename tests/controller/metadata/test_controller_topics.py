"""What is created, refused and deleted, and which records say so. The expected errors are what Kafka 4.3.1 answers."""

from uuid import UUID

import pytest

from odradek.common.config import load
from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.controller.metadata.doubles import DIRECTORY_ID, RecordedLog, done, make_controller


def create(controller, *topics, validate_only=False):
    results = done(controller.create_topics(topics, validate_only=validate_only))
    return {result.name: result.error.code if result.error else ErrorCode.NONE for result in results}


def grow(controller, *topics, validate_only=False):
    results = done(controller.create_partitions(topics, validate_only=validate_only))
    return {result.name: result.error.code if result.error else ErrorCode.NONE for result in results}


def test_a_topic_is_one_batch_of_topic_configs_and_partitions(controller, log):
    create(controller, NewTopic(name="t", partition_count=2, configs=[("retention.ms", "5")]))
    topic_id = controller.image.topics["t"].topic_id
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(DIRECTORY_ID,),
    )
    assert log.last_records[:3] == [
        TopicRecord(name="t", topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"),
        partition,
    ]
    assert [record.partition_id for record in log.last_records[2:]] == [0, 1]


def test_topics_of_one_request_are_one_batch(controller, log):
    before = len(log.batches)
    create(controller, NewTopic(name="a"), NewTopic(name="b"))
    assert len(log.batches) == before + 1


def test_a_created_topic_is_told_to_observers(controller, witness):
    create(controller, NewTopic(name="t", partition_count=3))
    assert witness.created == [("t", [0, 1, 2])]


def test_the_default_number_of_partitions_is_the_brokers():
    controller = make_controller(RecordedLog(), load(overrides={"num.partitions": "4"}))
    (result,) = done(controller.create_topics([NewTopic(name="t")]))
    assert result.partition_count == len(controller.image.topics["t"].partitions) == 4


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic(name="t", partition_count=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", partition_count=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication_factor=-2, partition_count=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", partition_count=10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="t", partition_count=2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="t", assignments=[(0, (2,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=[(0, ())]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=[(0, (1, 1))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=[(1, (1,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=[(0, (1,)), (0, (1,))]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=[(0, (1,))], partition_count=1), ErrorCode.INVALID_REQUEST),
        (NewTopic(name="t", assignments=[(0, (1,))], replication_factor=1), ErrorCode.INVALID_REQUEST),
        (NewTopic(name="t", configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=[("retention.ms", "x")]), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=[("bogus", "1")]), ErrorCode.INVALID_CONFIG),
    ],
    ids=repr,
)
def test_a_topic_that_may_not_be_is_refused_and_the_others_go_on(controller, topic, code):
    if code != ErrorCode.POLICY_VIOLATION:
        assert create(controller, topic, NewTopic(name="other")) == {topic.name: code, "other": ErrorCode.NONE}
    else:  # too many partitions are too many for the request
        assert create(controller, topic, NewTopic(name="other")) == {topic.name: code, "other": code}


def test_an_assignment_says_how_many_partitions(controller):
    assert create(controller, NewTopic(name="t", assignments=[(1, (1,)), (0, (1,))])) == {"t": ErrorCode.NONE}
    assert list(controller.image.topics["t"].partitions) == [0, 1]


def test_a_topic_that_is_there_already_exists(controller):
    create(controller, NewTopic(name="t.t"))
    assert create(controller, NewTopic(name="t.t", partition_count=0)) == {"t.t": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_names_that_metrics_cannot_tell_apart_collide(controller):
    create(controller, NewTopic(name="a.b"))
    assert create(controller, NewTopic(name="a_b")) == {"a_b": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_a_name_is_free_again_when_what_it_collided_with_is_deleted(controller):
    create(controller, NewTopic(name="a.b"))
    controller.delete_topics([controller.image.topics["a.b"].topic_id])
    assert create(controller, NewTopic(name="a_b")) == {"a_b": ErrorCode.NONE}


def test_a_topic_named_twice_is_refused_once(controller):
    results = done(controller.create_topics([NewTopic(name="d"), NewTopic(name="x"), NewTopic(name="d")]))
    assert [(result.name, result.error.code if result.error else None) for result in results] == [
        ("x", None),
        ("d", ErrorCode.INVALID_REQUEST),
    ]


def test_the_last_of_a_config_given_twice_counts(controller):
    create(controller, NewTopic(name="t", configs=[("retention.ms", "5"), ("retention.ms", "6")]))
    assert controller.image.configs(2, "t") == {"retention.ms": "6"}


def test_a_failed_append_leaves_no_topic(controller, log, witness):
    log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError):
        create(controller, NewTopic(name="t"))
    assert (controller.image.topics, witness.created) == ({}, [])


def test_a_deleted_topic_is_gone_with_its_configs(controller, log, witness):
    create(controller, NewTopic(name="t", configs=[("retention.ms", "5")]))
    topic_id = controller.image.topics["t"].topic_id
    assert done(controller.delete_topics([topic_id])) == {topic_id}
    assert log.last_records == [RemoveTopicRecord(topic_id=topic_id)]
    assert (controller.image.topics, controller.image.topics_by_id) == ({}, {})
    assert controller.image.configs(2, "t") == {}
    assert witness.deleted == ["t"]


def test_deleting_what_is_not_there_writes_nothing(controller, log):
    before = len(log.batches)
    assert done(controller.delete_topics([UUID(int=1)])) == set()
    assert len(log.batches) == before


def test_a_topic_created_again_has_another_id(controller):
    create(controller, NewTopic(name="t"))
    first_id = controller.image.topics["t"].topic_id
    controller.delete_topics([first_id])
    create(controller, NewTopic(name="t"))
    assert controller.image.topics["t"].topic_id != first_id


def test_new_partitions_follow_the_old(controller, witness):
    create(controller, NewTopic(name="t", partition_count=2))
    assert grow(controller, NewPartitions(name="t", partition_count=4)) == {"t": ErrorCode.NONE}
    assert list(controller.image.topics["t"].partitions) == [0, 1, 2, 3]
    assert witness.created[-1] == ("t", [2, 3])


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (NewPartitions(name="nope", partition_count=3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions(name="t", partition_count=2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="t", partition_count=1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="t", partition_count=-1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="t", partition_count=2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (NewPartitions(name="t", partition_count=4, assignments=[(1,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="t", partition_count=3, assignments=[]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="t", partition_count=3, assignments=[(2,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="t", partition_count=3, assignments=[(1, 1)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="t", partition_count=3, assignments=[()]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=repr,
)
def test_partitions_that_may_not_be_are_refused(controller, asked, code):
    create(controller, NewTopic(name="t", partition_count=2))
    assert grow(controller, asked) == {asked.name: code}
    assert len(controller.image.topics["t"].partitions) == 2


def test_a_topic_asked_to_grow_twice_is_refused(controller):
    create(controller, NewTopic(name="t"))
    assert grow(controller, NewPartitions(name="t", partition_count=2), NewPartitions(name="t", partition_count=3)) == {
        "t": ErrorCode.INVALID_REQUEST
    }


def test_auto_creation_creates_what_is_missing(controller):
    create(controller, NewTopic(name="there"))
    results = done(controller.auto_create(["there", "missing", "missing", "not legal"]))
    assert {result.name: result.error and result.error.code for result in results} == {
        "missing": None,
        "not legal": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_an_internal_topic_is_compacted_and_has_its_own_number_of_partitions(controller, name):
    topic = done(controller.ensure_internal_topic(name))
    assert len(topic.partitions) == 50
    assert controller.image.configs(2, name)["cleanup.policy"] == "compact"
    assert controller.image.configs(2, name)["segment.bytes"] == "104857600"


def test_an_internal_topic_is_created_once(controller, log):
    controller.ensure_internal_topic("__consumer_offsets")
    before = len(log.batches)
    controller.ensure_internal_topic("__consumer_offsets")
    assert len(log.batches) == before


def test_auto_creation_of_an_internal_topic_is_as_its_coordinator_wants_it(controller):
    controller.auto_create(["__consumer_offsets"])
    assert len(controller.image.topics["__consumer_offsets"].partitions) == 50
