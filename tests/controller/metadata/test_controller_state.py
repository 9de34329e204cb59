"""Configs, features, producer ids, and what a controller finds when it starts on a log."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.cluster.controller import PRODUCER_ID_BLOCK_SIZE
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.controller.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode,
)
from odradek.protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from tests.controller.metadata.doubles import ALONE, DIRECTORY_ID, RecordedLog, Witness, done, make_controller

# As kafka-features.sh upgrade --release-version 4.4 asks for them: (feature, level, upgrade type).
RELEASE_4_4 = [
    ("eligible.leader.replicas.version", 1, 1),
    ("group.version", 1, 1),
    ("kraft.version", 1, 1),
    ("metadata.version", 33, 1),
    ("share.version", 2, 1),
    ("streams.version", 1, 1),
    ("transaction.version", 2, 1),
]


def state(image):
    return (
        {topic.name: (topic.topic_id, topic.partitions) for topic in image.topics.values()},
        {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()},
        {name: image.configs(TOPIC_RESOURCE, name) for name in image.topics},
        image.configs(BROKER_RESOURCE, ""),
        image.features,
        image.next_producer_id,
    )


def test_a_new_log_begins_with_the_records_that_kafkas_begins_with(controller, log):
    assert log.last_records == [
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="share.version", feature_level=2),
        FeatureLevelRecord(name="streams.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        ALONE,
    ]


def test_a_broker_alone_is_registered_once_and_fenced_while_it_is_stopped(controller, log):
    assert make_controller(log).image.kept.brokers[1].broker_epoch == ALONE.broker_epoch
    controller.close()
    assert log.last_records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=ALONE.broker_epoch, fenced=1)]
    started = log.end_offset
    assert make_controller(log).image.kept.brokers[1] == ALONE._replace(broker_epoch=started)


def test_a_broker_alone_fences_others_and_leads_what_is_here_and_works():
    topics = [UUID(int=number) for number in (500, 501, 502)]
    lost = UUID(int=300)
    here, offline, elsewhere = (
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=replicas, isr=(2,), leader=2, directories=directories)
        for topic_id, replicas, directories in zip(
            topics, [(1, 2), (1, 2), (2,)], [(DIRECTORY_ID, lost), (lost, lost), (lost,)], strict=True
        )
    )
    other = RegisterBrokerRecord(broker_id=2, fenced=False, log_dirs=(lost,))
    names = [TopicRecord(name=name, topic_id=topic_id) for name, topic_id in zip("abc", topics, strict=True)]
    records = [FeatureLevelRecord(name="metadata.version", feature_level=30), other, *names, here, offline, elsewhere]
    controller = make_controller(RecordedLog([[encode(record) for record in records]]))
    assert controller.image.kept.brokers[2].fenced
    partitions = [topic.partitions[0] for topic in sorted(controller.image.topics.values(), key=lambda topic: topic.name)]
    assert [(each.leader, each.isr) for each in partitions] == [(1, (1,)), (-1, (2,)), (-1, (2,))]


def test_a_directory_that_fails_takes_its_partitions_leader_away_until_the_next_start(controller, log):
    [created] = done(controller.create_topics([NewTopic("t")]))
    assert controller.image.topics["t"].partitions[0].leader == 1
    controller.directory_failed(DIRECTORY_ID)
    assert controller.image.topics_by_id[created.topic_id].partitions[0].leader == -1
    assert make_controller(log).image.topics["t"].partitions[0].leader == 1


def test_a_replica_that_lies_elsewhere_is_recorded_and_others_replicas_stay_where_they_are(log):
    other = UUID(int=300)
    topic = TopicRecord(name="t", topic_id=UUID(int=500))
    partition = PartitionRecord(
        partition_id=0, topic_id=topic.topic_id, replicas=(2, 1), isr=(1,), leader=1, directories=(other, DIRECTORY_ID)
    )
    here = UUID(int=200)
    controller = make_controller(log)
    controller.write([topic, partition])
    controller.record_directories([(topic.topic_id, 0, here), (UUID(int=501), 0, here)])
    assert controller.image.topics["t"].partitions[0].directories == (other, here)
    assert done(controller.record_move(topic.topic_id, 0, DIRECTORY_ID)) is None
    assert controller.image.topics["t"].partitions[0].directories == (other, DIRECTORY_ID)


def test_a_log_that_has_its_feature_levels_gets_no_more(controller, log):
    before = len(log.batches)
    make_controller(log)
    assert len(log.batches) == before


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from("abc"), st.integers(-1, 3)),
        st.tuples(st.just("delete"), st.sampled_from("abc")),
        st.tuples(st.just("grow"), st.sampled_from("abc"), st.integers(0, 5)),
        st.tuples(st.just("config"), st.sampled_from("abc"), st.none() | st.just("1")),
        st.tuples(st.just("producer ids")),
    ),
    max_size=20,
)


def run(controller, operation):
    match operation:
        case ("create", name, count):
            controller.create_topics([NewTopic(name=name, partition_count=count, configs=[("retention.ms", "7")])])
        case ("delete", name):
            controller.delete_topics([topic.topic_id for topic in [controller.image.topics.get(name)] if topic])
        case ("grow", name, count):
            controller.create_partitions([NewPartitions(name=name, partition_count=count)])
        case ("config", name, value):
            controller.alter_configs([(BROKER_RESOURCE, "", f"key.{name}", value)])
        case ("producer ids",):
            controller.allocate_producer_id_block()


@given(OPERATIONS)
def test_a_restart_finds_what_was_there(operations):
    log = RecordedLog()
    controller = make_controller(log)
    for operation in operations:
        run(controller, operation)
    assert state(make_controller(log).image) == state(controller.image)


def test_a_restart_tells_nobody_of_what_it_replays(log, controller):
    controller.create_topics([NewTopic(name="t")])
    witness = Witness()
    make_controller(log).subscribe(witness, PublishingOrder.PARTITIONS)
    assert witness.created == []


def test_configs_are_set_and_removed(controller, witness):
    controller.create_topics([NewTopic(name="t")])
    controller.alter_configs(
        [(BROKER_RESOURCE, "1", "a", "x"), (BROKER_RESOURCE, "1", "b", "y"), (TOPIC_RESOURCE, "t", "c", "z")]
    )
    controller.alter_configs([(BROKER_RESOURCE, "1", "a", None)])
    assert controller.image.configs(BROKER_RESOURCE, "1") == {"b": "y"}
    assert controller.image.configs(TOPIC_RESOURCE, "t") == {"c": "z"}
    assert witness.altered == [(BROKER_RESOURCE, "1"), (TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, "1")]


def test_no_config_change_is_no_record(controller, log, witness):
    before = len(log.batches)
    controller.alter_configs([])
    assert (len(log.batches), witness.altered) == (before, [])


def test_removing_a_config_that_is_not_set_changes_nothing(controller):
    before = dict(controller.image.configs(BROKER_RESOURCE, ""))
    controller.alter_configs([(BROKER_RESOURCE, "", "a", None)])
    assert controller.image.configs(BROKER_RESOURCE, "") == before


def test_producer_ids_are_written_before_the_first_is_used(controller, log):
    assert controller.next_producer_id() == 0
    assert log.last_records == [ProducerIdsRecord(broker_id=1, next_producer_id=PRODUCER_ID_BLOCK_SIZE)]


def test_producer_ids_of_one_block_cost_one_record(controller, log):
    controller.next_producer_id()
    before = len(log.batches)
    assert [controller.next_producer_id() for _ in range(PRODUCER_ID_BLOCK_SIZE - 1)] == list(range(1, PRODUCER_ID_BLOCK_SIZE))
    assert len(log.batches) == before
    assert controller.next_producer_id() == PRODUCER_ID_BLOCK_SIZE
    assert len(log.batches) == before + 1


@given(st.lists(st.integers(0, 2 * PRODUCER_ID_BLOCK_SIZE), min_size=1, max_size=4))
def test_no_producer_id_is_given_twice_across_restarts(ids_per_run):
    log = RecordedLog()
    given_ids = []
    for count in ids_per_run:
        controller = make_controller(log)
        given_ids.extend(controller.next_producer_id() for _ in range(count))
    assert len(set(given_ids)) == len(given_ids)


def test_no_producer_id_is_given_without_a_block_on_disk(controller, log):
    log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError):
        controller.next_producer_id()
    log.failure = None
    assert controller.next_producer_id() == 0


@pytest.mark.parametrize(
    "update",
    [
        ("nope", 1, 1),
        ("nope", 0, 2),
        ("metadata.version", 34, 1),
        ("metadata.version", 34, 2),
        ("metadata.version", 30, 1),
        ("metadata.version", 30, 2),
        ("metadata.version", 30, 3),
        ("metadata.version", 6, 2),
        ("metadata.version", 0, 2),
        ("metadata.version", -1, 1),
        ("metadata.version", 33, 0),
        ("metadata.version", 33, 9),
    ],
)
def test_a_feature_level_that_cannot_be_is_refused(controller, log, update):
    before = len(log.batches)
    with pytest.raises(KafkaError) as caught:
        done(controller.update_features([("metadata.version", 33, 1), update]))
    assert caught.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert len(log.batches) == before


@pytest.mark.parametrize("validate_only", [True, False])
def test_the_features_of_a_directory_of_kafka_4_3_are_upgraded_together(validate_only):
    log = RecordedLog()
    older = {"metadata.version": 30, "transaction.version": 2, "group.version": 1, "share.version": 1}
    log.append([FeatureLevelRecord(name=name, feature_level=level) for name, level in older.items()], now_ms=0)
    controller = make_controller(log)
    assert controller.image.features == older
    before = len(log.batches)
    assert done(controller.update_features(RELEASE_4_4, validate_only=validate_only)) is None
    assert controller.kraft_version == int(not validate_only)
    if validate_only:
        assert len(log.batches) == before
        return
    assert log.last_records == [
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        FeatureLevelRecord(name="metadata.version", feature_level=33),
        FeatureLevelRecord(name="share.version", feature_level=2),
        FeatureLevelRecord(name="streams.version", feature_level=1),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    ]
    assert controller.image.features == {name: level for name, level, _ in RELEASE_4_4 if name != "kraft.version"}
    assert done(controller.update_features(RELEASE_4_4)) is None
    assert len(log.batches) == before + 1


@pytest.mark.parametrize("upgrade_type", [1, 2, 3])
def test_voters_do_not_leave_the_log_again(controller, upgrade_type):
    controller.update_features([("kraft.version", 1, 1)])
    with pytest.raises(KafkaError, match="kraft") as caught:
        done(controller.update_features([("kraft.version", 0, upgrade_type)]))
    assert (caught.value.code, controller.kraft_version) == (ErrorCode.INVALID_UPDATE_VERSION, 1)


def test_nothing_is_upgraded_where_the_log_takes_no_voters(controller, log):
    before = dict(controller.image.features)
    log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    with pytest.raises(KafkaError, match="STORAGE"):
        done(controller.update_features(RELEASE_4_4))
    assert (controller.image.features, controller.kraft_version) == (before, 0)


def test_a_feature_at_its_level_needs_no_record(controller, log):
    before = len(log.batches)
    controller.update_features([("metadata.version", 33, 1)])
    assert len(log.batches) == before


@pytest.mark.parametrize(
    "records",
    [
        [RemoveTopicRecord(topic_id=DIRECTORY_ID)],
        [PartitionRecord(topic_id=DIRECTORY_ID, replicas=(1,), isr=(1,), directories=(DIRECTORY_ID,))],
        [TopicRecord(name="t", topic_id=DIRECTORY_ID)] * 2,
    ],
    ids=["removed", "partition", "twice"],
)
def test_records_that_make_no_sense_stop_the_replay(records):
    with pytest.raises(MalformedMessage):
        MetadataImage().replay(records)


def test_closing_closes_the_log(controller, log):
    controller.close()
    assert log.closed
