"""librdkafka's admin client against a real broker over a real socket."""

import pytest
from confluent_kafka import (
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.clients.conftest import CLIENT_TIMEOUT_S


@pytest.fixture
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.address})


def results(futures):
    """What each of an admin call's futures gives, or the code of its error."""
    outcome = {}
    for key, future in futures.items():
        try:
            outcome[key] = future.result(CLIENT_TIMEOUT_S)
        except KafkaException as error:
            outcome[key] = error.args[0].code()
    return outcome


def topic_config(admin, topic):
    """The entries of a topic's configuration by name."""
    (entries,) = results(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])).values()
    return entries


def test_the_cluster_is_described(admin, broker):
    cluster = admin.describe_cluster(include_authorized_operations=True).result(CLIENT_TIMEOUT_S)
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [(1, broker.host, broker.port)]
    assert cluster.controller.id == 1
    assert f"cluster.id={cluster.cluster_id}\n" in (broker.data_dir / "meta.properties").read_text()
    assert AclOperation.CREATE in cluster.authorized_operations


def test_a_created_topic_is_listed_and_described(admin, new_name):
    topic = new_name()
    assert results(admin.create_topics([NewTopic(topic, 3, 1)])) == {topic: None}
    listed = admin.list_topics(timeout=CLIENT_TIMEOUT_S).topics[topic]
    assert {index: partition.leader for index, partition in listed.partitions.items()} == {0: 1, 1: 1, 2: 1}
    (described,) = results(admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)).values()
    assert (described.name, described.is_internal) == (topic, False)
    assert [(partition.id, partition.leader.id, [node.id for node in partition.isr]) for partition in described.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
        (2, 1, [1]),
    ]
    assert AclOperation.WRITE in described.authorized_operations
    assert str(described.topic_id) not in {"", "AAAAAAAAAAAAAAAAAAAAAA"}


def test_each_of_several_topics_is_created_or_refused_for_its_own_reason(admin, new_topic, new_name):
    there, good = new_topic(), new_name()
    asked = [
        NewTopic(there, 1, 1),
        NewTopic(good, 1, 1),
        NewTopic("no/slashes", 1, 1),
        NewTopic("too-many-replicas", 1, 3),
        NewTopic("no-partitions", 0, 1),
        NewTopic("bad-config", 1, 1, config={"retention.ms": "long"}),
        NewTopic("unknown-config", 1, 1, config={"no.such.config": "1"}),
    ]
    assert results(admin.create_topics(asked)) == {
        there: KafkaError.TOPIC_ALREADY_EXISTS,
        good: None,
        "no/slashes": KafkaError.TOPIC_EXCEPTION,
        "too-many-replicas": KafkaError.INVALID_REPLICATION_FACTOR,
        "no-partitions": KafkaError.INVALID_PARTITIONS,
        "bad-config": KafkaError.INVALID_CONFIG,
        "unknown-config": KafkaError.INVALID_CONFIG,
    }


def test_validating_a_topic_does_not_create_it(admin, new_name):
    topic = new_name()
    assert results(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)) == {topic: None}
    assert topic not in admin.list_topics(timeout=CLIENT_TIMEOUT_S).topics


def test_the_brokers_default_number_of_partitions_is_used(admin, new_name):
    topic = new_name()
    assert results(admin.create_topics([NewTopic(topic)])) == {topic: None}
    assert len(admin.list_topics(topic, timeout=CLIENT_TIMEOUT_S).topics[topic].partitions) == 1


def test_a_deleted_topic_is_gone_and_its_name_free(admin, new_topic):
    topic = new_topic(config={"retention.ms": "1234"})
    first = results(admin.describe_topics(TopicCollection([topic])))[topic].topic_id
    assert results(admin.delete_topics([topic, "never-there"])) == {topic: None, "never-there": KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert topic not in admin.list_topics(timeout=CLIENT_TIMEOUT_S).topics
    assert results(admin.create_topics([NewTopic(topic, 1, 1)])) == {topic: None}
    assert str(results(admin.describe_topics(TopicCollection([topic])))[topic].topic_id) != str(first)
    assert topic_config(admin, topic)["retention.ms"].value == "604800000"


def test_partitions_are_added_and_never_taken_away(admin, new_topic):
    topic = new_topic(2)
    assert results(admin.create_partitions([NewPartitions(topic, 4)])) == {topic: None}
    assert len(admin.list_topics(topic, timeout=CLIENT_TIMEOUT_S).topics[topic].partitions) == 4
    assert results(admin.create_partitions([NewPartitions(topic, 3)])) == {topic: KafkaError.INVALID_PARTITIONS}


def test_a_topics_configs_tell_value_source_and_synonyms(admin, new_topic):
    entries = topic_config(admin, new_topic(config={"retention.ms": "1234"}))
    changed, default = entries["retention.ms"], entries["cleanup.policy"]
    assert (changed.value, changed.source, changed.is_default) == ("1234", ConfigSource.DYNAMIC_TOPIC_CONFIG.value, False)
    assert (default.value, default.source, default.is_default) == ("delete", ConfigSource.DEFAULT_CONFIG.value, True)
    assert "log.cleanup.policy" in default.synonyms


def test_configs_are_changed_one_by_one(admin, new_topic):
    topic = new_topic(config={"retention.ms": "1234", "segment.bytes": "2000000"})
    changes = [
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("max.message.bytes", "5000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    assert results(admin.incremental_alter_configs([resource])) == {resource: None}
    entries = topic_config(admin, topic)
    values = {name: entries[name].value for name in ("retention.ms", "max.message.bytes", "cleanup.policy", "segment.bytes")}
    assert values == {
        "retention.ms": "604800000",
        "max.message.bytes": "5000",
        "cleanup.policy": "delete,compact",
        "segment.bytes": "2000000",
    }


def test_a_changed_config_is_in_force_at_once(admin, broker, new_topic):
    topic = new_topic()
    change = ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    results(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]))
    errors = []
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(topic, b"x" * 2000, on_delivery=lambda error, _: errors.append(error.code()))
    producer.flush(CLIENT_TIMEOUT_S)
    assert errors == [KafkaError.MSG_SIZE_TOO_LARGE]


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_altering_replaces_all_of_a_topics_configs(admin, new_topic):
    topic = new_topic(config={"retention.ms": "1234"})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.bytes": "2000000"})
    assert results(admin.alter_configs([resource])) == {resource: None}
    entries = topic_config(admin, topic)
    assert (entries["retention.ms"].value, entries["segment.bytes"].value) == ("604800000", "2000000")


def test_a_bad_config_is_refused_and_nothing_changed(admin, new_topic):
    topic = new_topic()
    changes = [
        ConfigEntry("segment.bytes", "2000000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("retention.ms", "long", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    assert results(admin.incremental_alter_configs([resource])) == {resource: KafkaError.INVALID_CONFIG}
    assert topic_config(admin, topic)["segment.bytes"].value == "1073741824"


def test_the_configs_of_a_topic_that_is_not_there_are_refused(admin):
    resource = ConfigResource(ResourceType.TOPIC, "never-there")
    assert results(admin.describe_configs([resource])) == {resource: KafkaError.UNKNOWN_TOPIC_OR_PART}


def test_a_brokers_configs_are_described_and_changed(admin):
    resource = ConfigResource(ResourceType.BROKER, "1")
    entries = results(admin.describe_configs([resource]))[resource]
    assert (entries["node.id"].value, entries["node.id"].is_read_only) == ("1", True)
    for operation, value in ((AlterConfigOpType.SET, "54321"), (AlterConfigOpType.DELETE, "1048588")):
        entry = ConfigEntry("message.max.bytes", "54321", incremental_operation=operation)
        change = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        assert results(admin.incremental_alter_configs([change])) == {change: None}
        assert results(admin.describe_configs([resource]))[resource]["message.max.bytes"].value == value


def test_a_read_only_broker_config_is_not_changed(admin):
    entry = ConfigEntry("node.id", "2", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    assert results(admin.incremental_alter_configs([change])) == {change: KafkaError.INVALID_REQUEST}


def test_deleted_records_are_out_of_reach(admin, broker, new_topic):
    topic = new_topic()
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(10):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    partition = TopicPartition(topic, 0, 4)
    assert results(admin.delete_records([partition]))[partition].low_watermark == 4
    offset = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})
    assert next(iter(results(offset).values())).offset == 4
    beyond = TopicPartition(topic, 0, 11)
    assert results(admin.delete_records([beyond])) == {beyond: KafkaError.OFFSET_OUT_OF_RANGE}


@pytest.mark.parametrize("isolation", [IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED])
def test_offsets_are_listed_by_every_specification(admin, broker, new_topic, isolation):
    topic = new_topic()
    producer = Producer({"bootstrap.servers": broker.address})
    for timestamp in (1_600_000_002_000, 1_600_000_009_000, 1_600_000_005_000):
        producer.produce(topic, b"x", timestamp=timestamp)
        assert producer.flush(CLIENT_TIMEOUT_S) == 0

    def listed(specification):
        futures = admin.list_offsets({TopicPartition(topic, 0): specification}, isolation_level=isolation)
        (found,) = results(futures).values()
        return found.offset, found.timestamp

    assert listed(OffsetSpec.earliest()) == (0, -1)
    assert listed(OffsetSpec.latest()) == (3, -1)
    assert listed(OffsetSpec.max_timestamp()) == (1, 1_600_000_009_000)
    assert listed(OffsetSpec.for_timestamp(1_600_000_002_001)) == (1, 1_600_000_009_000)
    assert listed(OffsetSpec.for_timestamp(1_600_000_009_001)) == (-1, -1)


def test_an_election_has_nothing_to_do(admin, new_topic):
    partition = TopicPartition(new_topic(), 0)
    errors = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(CLIENT_TIMEOUT_S)
    assert errors[partition].code() == KafkaError.ELECTION_NOT_NEEDED
