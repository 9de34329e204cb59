"""kafka-python's admin client against a real broker over a real socket; above all, what librdkafka's has no call for."""

import uuid

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidUpdateVersionError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.clients.conftest import CLIENT_TIMEOUT_S

PREFERRED_ELECTION = 0


@pytest.fixture
def admin(broker):
    client = KafkaAdminClient(bootstrap_servers=broker.address)
    yield client
    client.close()


def fill(broker, topic, count):
    producer = KafkaProducer(bootstrap_servers=broker.address)
    for future in [producer.send(topic, b"%d" % number, partition=0) for number in range(count)]:
        future.get(CLIENT_TIMEOUT_S)
    producer.close()


def test_a_created_topic_is_listed_and_described(admin, new_name):
    topic = new_name()
    created = admin.create_topics({topic: {"num_partitions": 2, "configs": {"retention.ms": "1234"}}})["topics"][0]
    assert (created["num_partitions"], created["replication_factor"]) == (2, 1)
    assert created["configs"]["retention.ms"]["value"] == "1234"
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert described["topic_id"] == created["topic_id"]
    assert [(partition["leader_id"], partition["isr_nodes"]) for partition in described["partitions"]] == [(1, [1]), (1, [1])]


def test_a_topic_is_described_by_its_id(admin, new_topic):
    topic = new_topic()
    topic_id = uuid.UUID(str(admin.describe_topics([topic])[0]["topic_id"]))
    assert [described["name"] for described in admin.describe_topics([topic_id])] == [topic]


def test_a_topic_is_deleted_by_its_id(admin, new_topic):
    topic = new_topic()
    topic_id = uuid.UUID(str(admin.describe_topics([topic])[0]["topic_id"]))
    assert admin.delete_topics([topic_id])["topics"][0]["name"] == topic
    assert topic not in admin.list_topics()


@pytest.mark.parametrize(
    ("options", "error"),
    [({"num_partitions": 0}, InvalidPartitionsError), ({"replication_factor": 2}, InvalidReplicationFactorError)],
)
def test_an_impossible_topic_is_refused(admin, new_name, options, error):
    with pytest.raises(error):
        admin.create_topics({new_name(): options})


def test_a_topic_is_created_once(admin, new_topic):
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([new_topic()])


def test_a_topic_is_described_a_page_of_partitions_at_a_time(admin, new_topic):
    topic = new_topic(5)
    pages, cursor = [], None
    while not pages or cursor is not None:
        page = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
        pages.append([partition["partition_index"] for partition in page["topics"][0]["partitions"]])
        cursor = page["next_cursor"]
    assert pages == [[0, 1], [2, 3], [4]]


def test_partitions_are_added(admin, new_topic):
    topic = new_topic()
    admin.create_partitions({topic: 3})
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 3


def test_log_dirs_tell_where_partitions_lie_and_how_large_they_are(admin, broker, new_topic):
    topic = new_topic(2)
    fill(broker, topic, 3)
    (node,) = admin.describe_log_dirs({topic: [0, 1]})
    (directory,) = node["log_dirs"]
    assert (node["broker"], directory["log_dir"], directory["error_code"]) == (1, str(broker.data_dir), 0)
    sizes = {
        partition["partition_index"]: partition["partition_size"]
        for described in directory["topics"]
        for partition in described["partitions"]
    }
    assert sizes == {0: (broker.data_dir / f"{topic}-0" / f"{0:020}.log").stat().st_size, 1: 0}
    assert directory["total_bytes"] > directory["usable_bytes"] > 0


def test_the_metadata_quorum_is_this_broker(admin):
    (topic,) = admin.describe_metadata_quorum()["topics"]
    (partition,) = topic["partitions"]
    assert (topic["topic_name"], partition["error"], partition["leader_id"]) == ("__cluster_metadata", None, 1)
    assert [(voter["replica_id"], voter["log_end_offset"]) for voter in partition["current_voters"]] == [
        (1, partition["high_watermark"])
    ]


def test_a_finalized_feature_is_one_that_is_supported(admin):
    features = admin.describe_features()["metadata.version"]
    lowest, highest = features["supported"]
    level, _ = features["finalized"]
    assert lowest <= level <= highest


def test_a_feature_level_that_is_not_supported_is_refused(admin):
    _, highest = admin.describe_features()["metadata.version"]["supported"]
    with pytest.raises(InvalidUpdateVersionError):
        admin.update_features({"metadata.version": highest + 1})


def test_configs_are_altered_and_reset(admin, new_topic):
    topic = new_topic(config={"retention.ms": "1234"})

    def modified():
        described = admin.describe_configs([ConfigResource("TOPIC", topic)])["topic"][topic]
        return {name: entry["value"] for name, entry in described.items()}

    admin.alter_configs([ConfigResource("TOPIC", topic, {"segment.bytes": "2000000"})])
    assert modified() == {"retention.ms": "1234", "segment.bytes": "2000000"}
    admin.alter_configs([ConfigResource("TOPIC", topic, {"cleanup.policy": (AlterConfigOp.APPEND, "compact")})])
    assert modified()["cleanup.policy"] == "delete,compact"
    admin.reset_configs([ConfigResource("TOPIC", topic, dict.fromkeys(modified()))])
    assert modified() == {}


def test_resources_that_have_configs_are_listed(admin, new_topic):
    topic = new_topic()
    listed = admin.list_config_resources()
    assert topic in listed["topic"]
    assert listed["broker"] == ["1"]


def test_deleted_records_are_out_of_reach(admin, broker, new_topic):
    topic = new_topic()
    fill(broker, topic, 5)
    partition = TopicPartition(topic, 0)
    assert admin.delete_records({partition: 3})[partition]["low_watermark"] == 3
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 5
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 6})


def test_the_records_of_an_unknown_partition_cannot_be_deleted(admin, new_topic):
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_records({TopicPartition(new_topic(), 1): 0})


def test_reassigning_a_partition_to_the_broker_it_is_on_is_done_at_once(admin, new_topic):
    partition = TopicPartition(new_topic(), 0)
    assert admin.alter_partition_reassignments({partition: [1]}) == {partition: None}
    assert admin.list_partition_reassignments() == {}


def test_an_election_has_nothing_to_do(admin, new_topic):
    topic = new_topic()
    response = admin.elect_leaders(PREFERRED_ELECTION, {topic: [0]})
    (result,) = response.replica_election_results
    assert (result.topic, [partition.error_code for partition in result.partition_result]) == (topic, [84])


def test_the_cluster_is_described(admin, broker):
    cluster = admin.describe_cluster()
    assert (cluster["controller_id"], [node["port"] for node in cluster["brokers"]]) == (1, [broker.port])
