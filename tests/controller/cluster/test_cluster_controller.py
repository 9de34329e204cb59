"""A cluster's controller as a whole: its first records, producer ids, features, configs, and what a restart changes."""

import pytest

from odradek.common.config import load
from odradek.controller.metadata.alterations import Alteration, Operation
from odradek.controller.metadata.auto_topic_creation import replicated_internal_topic
from odradek.controller.metadata.features import BOOTSTRAP_RECORDS, SAFE_DOWNGRADE, UPGRADE, one_min_isr, update_features
from odradek.controller.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.message_types.broker_registration import Feature
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from odradek.protocol.metadata_records.partition_changes import ClearElrRecord
from tests.common.config.doubles import alter_resources
from tests.controller.cluster.clusters import FEATURES, Cluster, directory
from tests.controller.metadata.doubles import RecordedLog, done, make_controller

ELR = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"


def test_a_new_cluster_has_eligible_leader_replicas_and_one_min_isr():
    cluster = Cluster({MIN_ISR: "2"})
    assert cluster.log.last_records == [
        *BOOTSTRAP_RECORDS,
        ConfigRecord(resource_type=4, resource_name="", name=MIN_ISR, value="2"),
    ]


def test_a_controller_that_loads_a_log_appends_nothing(cluster):
    cluster.start(1, 2)
    cluster.create("t", (1, 2), (2, 1))
    batches = len(cluster.log.batches)
    again = Cluster(log=cluster.log)
    assert len(cluster.log.batches) == batches
    assert (again.state(), again.state(index=1)) == (cluster.state(), cluster.state(index=1))


def test_partitions_of_a_broker_that_was_alone_are_led_by_it_again_when_it_registers():
    log = RecordedLog()
    alone = make_controller(log)
    alone.close()
    topic = TopicRecord(name="t", topic_id=directory(70))
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic.topic_id,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=3,
        partition_epoch=5,
        directories=(directory(1),),
    )
    log.append([topic, partition], now_ms=0)
    cluster = Cluster(log=log)
    assert cluster.state() == (1, 3, (1,), (), 5)
    cluster.register(1)
    assert cluster.state() == (-1, 4, (), (), 6)
    cluster.unfence(1)
    assert cluster.state() == (1, 5, (1,), (), 7)


def test_each_block_of_producer_ids_is_handed_out_once_to_a_broker_at_its_epoch(cluster):
    cluster.start(1)
    epoch = cluster.epoch(1)
    ask = cluster.controller.allocate_producer_ids
    assert done(ask(AllocateProducerIdsRequest(1, epoch))) == AllocateProducerIdsResponse(
        producer_id_start=0, producer_id_len=1000
    )
    assert cluster.log.last_records == [ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=1000)]
    assert done(ask(AllocateProducerIdsRequest(1, epoch))).producer_id_start == 1000
    assert done(ask(AllocateProducerIdsRequest(1, epoch + 1))).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_feature_is_finalized_where_all_brokers_support_it(cluster):
    cluster.register(1)
    assert done(cluster.controller.update_features([("group.version", 0, SAFE_DOWNGRADE)])) is None
    assert done(cluster.controller.update_features([("group.version", 1, UPGRADE)])) is None
    assert cluster.log.last_records == [FeatureLevelRecord(name="group.version", feature_level=1)]
    assert done(cluster.controller.update_features([("streams.version", 0, SAFE_DOWNGRADE)])) is None
    without = [feature for feature in FEATURES if feature.name != "streams.version"]
    cluster.register(2, features=[*without, Feature("streams.version", 0, 0)])
    with pytest.raises(KafkaError) as refused:
        done(cluster.controller.update_features([("streams.version", 1, UPGRADE)]))
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert "streams.version" not in cluster.image.features


def test_eligible_leader_replicas_come_with_one_min_isr_for_all(cluster):
    controller = cluster.controller
    done(controller.update_features([(ELR, 0, SAFE_DOWNGRADE)]))
    done(controller.alter_configs([(4, "", MIN_ISR, None), (4, "1", MIN_ISR, "3")]))
    done(controller.update_features([(ELR, 1, UPGRADE)]))
    assert cluster.log.last_records == [
        FeatureLevelRecord(name=ELR, feature_level=1),
        ConfigRecord(resource_type=4, resource_name="", name=MIN_ISR, value="1"),
        ConfigRecord(resource_type=4, resource_name="1", name=MIN_ISR, value=None),
    ]


def test_the_one_min_isr_is_the_files_and_not_that_of_a_broker():
    config = load("min.insync.replicas=2")
    config.override({}, {MIN_ISR: "3"})
    assert config[MIN_ISR] == 3
    assert [record.value for record in one_min_isr(MetadataImage(), config)] == ["2"]


def test_eligible_leader_replicas_need_their_metadata_version():
    updates = [(ELR, 1, UPGRADE)]
    with pytest.raises(KafkaError, match=r"metadata\.version at 23"):
        update_features({"metadata.version": 22}, updates, 1)
    assert update_features({"metadata.version": 22}, [*updates, ("metadata.version", 23, UPGRADE)], 1)


@pytest.mark.parametrize("upgrade_type", [2, 3])
def test_a_downgrade_does_not_raise_a_level(upgrade_type):
    with pytest.raises(KafkaError, match="cannot raise it"):
        update_features({"transaction.version": 1}, [("transaction.version", 2, upgrade_type)], 1)


def test_nobody_stays_eligible_when_it_changes_how_many_must_be_in_sync(cluster):
    cluster.start(1, 2)
    for name in ("t", "u"):
        cluster.create(name, (1, 2), min_insync_replicas="2")
    cluster.expire(2)
    assert cluster.state() == (1, 0, (1,), (2,), 1)
    done(cluster.controller.alter_configs([(2, "t", MIN_ISR, "1")]))
    assert cluster.log.last_records[1:] == [ClearElrRecord(topic_name="t")]
    assert (cluster.state()[3], cluster.state("u")[3]) == ((), (2,))
    done(cluster.controller.alter_configs([(4, "", MIN_ISR, "2")]))
    assert cluster.log.last_records[1:] == [ClearElrRecord(topic_name="")]
    assert cluster.state("u")[3] == ()


def alter(cluster, resource_name, name, value):
    view = cluster.controller.config_view(cluster.config)
    alteration = Alteration(4, resource_name, [Operation(name, 0, value)])
    [(code, _)] = done(alter_resources(view, [alteration], cluster.controller.alter_configs))
    return code


def test_configs_of_any_broker_that_is_registered_can_be_altered(cluster):
    cluster.register(1)
    assert alter(cluster, "1", "log.cleaner.threads", "2") == ErrorCode.NONE
    assert cluster.image.configs(4, "1") == {"log.cleaner.threads": "2"}
    assert alter(cluster, "100", "log.cleaner.threads", "2") == ErrorCode.NONE
    assert alter(cluster, "9", "log.cleaner.threads", "2") == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert alter(cluster, "9", "min.insync.replicas", "2") == ErrorCode.INVALID_CONFIG


def test_a_log_that_fails_is_told_and_changes_nothing(cluster):
    cluster.start(1)
    cluster.log.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert cluster.ask_to_register(2).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.heartbeat(1, want_fence=True).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert list(cluster.image.kept.brokers) == [1]
    assert not cluster.image.kept.brokers[1].fenced


def test_an_answer_can_be_converted_by_who_has_asked(cluster):
    cluster.start(1)
    asked = AllocateProducerIdsRequest(1, cluster.epoch(1))
    assert cluster.controller.allocate_producer_ids(asked).then(lambda each: each.producer_id_len).response == 1000


def test_internal_topics_are_replicated_as_configured():
    config = load(
        overrides={
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
    )
    assert replicated_internal_topic("__consumer_offsets", config).replication_factor == 2
    transactions = replicated_internal_topic("__transaction_state", config)
    assert (transactions.replication_factor, dict(transactions.configs)["min.insync.replicas"]) == (3, "2")
