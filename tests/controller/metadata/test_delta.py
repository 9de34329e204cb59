"""What replaying records changes is noted, and told to publishers in their order, once."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.controller.metadata.image import BROKER_RESOURCE, MetadataImage
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records import PartitionRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.metadata_records.log_control import BeginTransactionRecord, NoOpRecord, ZkMigrationStateRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    NodeEndpoint,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from odradek.protocol.metadata_records.partition_changes import ClearElrRecord, PartitionChangeRecord
from odradek.protocol.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
)
from tests.cases import each_case
from tests.controller.metadata.doubles import Witness, done

TOPIC_ID, DIRECTORY = UUID(int=1), UUID(int=1000)
BROKER = RegisterBrokerRecord(
    broker_id=2,
    incarnation_id=UUID(int=5),
    broker_epoch=7,
    end_points=(NodeEndpoint(name="PLAINTEXT", host="h", port=9092, security_protocol=0),),
    features=(),
    rack="r",
    log_dirs=(DIRECTORY,),
)


def partition(index, **fields):
    known = PartitionRecord(
        partition_id=index,
        topic_id=TOPIC_ID,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=3,
        partition_epoch=4,
        directories=(DIRECTORY,),
    )
    return known._replace(**fields)


def image_of(*records):
    image = MetadataImage()
    image.replay(records)
    return image


TOPIC = (TopicRecord(name="t", topic_id=TOPIC_ID), partition(0), partition(1))


def test_a_new_topic_is_told_with_all_its_partitions():
    delta = MetadataImage().replay(TOPIC)
    assert [(topic.name, [each.partition_id for each in created]) for topic, created in delta.new_partitions] == [("t", [0, 1])]
    assert (delta.changed_partitions, delta.deleted_topics) == ([], [])


def test_partitions_that_are_added_are_told_apart_from_those_that_change():
    delta = image_of(*TOPIC).replay(
        [partition(2), PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, directories=(UUID(int=7),))]
    )
    assert [[each.partition_id for each in created] for _, created in delta.new_partitions] == [[2]]
    assert [[each.directories for each in changed] for _, changed in delta.changed_partitions] == [[(UUID(int=7),)]]


def test_a_partition_that_is_new_and_changes_at_once_is_new_as_it_has_become():
    delta = MetadataImage().replay([*TOPIC, PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=())])
    ((_, created),) = delta.new_partitions
    assert created[0].isr == ()
    assert delta.changed_partitions == []


def test_a_topic_that_comes_and_goes_in_one_batch_leaves_no_trace():
    delta = MetadataImage().replay([*TOPIC, RemoveTopicRecord(topic_id=TOPIC_ID)])
    assert (delta.new_partitions, delta.deleted_topics) == ([], [])


def test_a_topic_that_changes_and_goes_is_gone():
    delta = image_of(*TOPIC).replay([partition(2), RemoveTopicRecord(topic_id=TOPIC_ID)])
    assert ([topic.name for topic in delta.deleted_topics], delta.new_partitions) == (["t"], [])


def test_each_change_of_a_partition_raises_its_epoch_and_a_leader_that_is_named_the_leader_epoch():
    image = image_of(*TOPIC)
    image.replay([PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=())])
    assert image.topics["t"].partitions[0] == partition(0, isr=(), partition_epoch=5)
    image.replay([PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=-1, eligible_leader_replicas=(1,))])
    assert image.topics["t"].partitions[0] == partition(
        0, isr=(), leader=-1, leader_epoch=4, partition_epoch=6, eligible_leader_replicas=(1,)
    )
    image.replay([ClearElrRecord(topic_name="")])
    assert image.topics["t"].partitions[0] == partition(0, isr=(), leader=-1, leader_epoch=4, partition_epoch=7)


def test_a_partition_without_eligible_leaders_has_none_rather_than_an_empty_list():
    image = image_of(TopicRecord(name="t", topic_id=TOPIC_ID), partition(0, eligible_leader_replicas=(2,)))
    image.replay([PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, eligible_leader_replicas=(), last_known_elr=())])
    assert image.topics["t"].partitions[0] == partition(0, partition_epoch=5)


@each_case(
    ("change", "expected"),
    [
        (FenceBrokerRecord(id=2, epoch=7), {"fenced": True}),
        (UnfenceBrokerRecord(id=2, epoch=7), {"fenced": False}),
        (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=7, fenced=-1), {"fenced": False}),
        (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=7, in_controlled_shutdown=1), {"in_controlled_shutdown": True}),
        (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=7, cordoned_log_dirs=()), {"cordoned_log_dirs": ()}),
    ],
    ids=repr,
)
def test_a_brokers_registration_changes(change, expected):
    image = image_of(BROKER)
    delta = image.replay([change])
    assert delta.brokers == image.kept.brokers
    assert {name: getattr(image.kept.brokers[2], name) for name in expected} == expected


def test_a_broker_is_gone_when_it_is_unregistered():
    image = image_of(BROKER)
    delta = image.replay([UnregisterBrokerRecord(broker_id=2, broker_epoch=7)])
    assert (image.kept.brokers, delta.brokers) == ({}, {2: None})


def quota(value, *, remove=False):
    return ClientQuotaRecord(entity=(QuotaEntity(entity_type="user", entity_name="u"),), key="k", value=value, remove=remove)


def right(number, operation=3):
    return AccessControlEntryRecord(
        id=UUID(int=number),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:u",
        host="*",
        operation=operation,
        permission_type=3,
    )


CONTROLLER = RegisterControllerRecord(
    controller_id=1, incarnation_id=UUID(int=3), zk_migration_ready=False, end_points=(), features=()
)


def test_what_odradek_does_not_act_on_is_kept_as_it_stands():
    image = image_of(
        *(right(1), quota(1.0), CONTROLLER, right(2), quota(2.0), NoOpRecord(), BROKER),
        *(RemoveAccessControlEntryRecord(id=UUID(int=1)), ZkMigrationStateRecord(zk_migration_state=0)),
    )
    assert list(image.kept.records()) == [CONTROLLER, BROKER, ZkMigrationStateRecord(zk_migration_state=0), right(2)]
    assert list(image.quotas.records()) == [quota(2.0)]
    image.replay([quota(2.0, remove=True)])
    assert not list(image.quotas.records())


def test_rights_that_come_and_go_are_told():
    image = image_of(right(1))
    delta = image.replay([right(2), RemoveAccessControlEntryRecord(id=UUID(int=1))])
    assert delta.acls == {UUID(int=2): right(2), UUID(int=1): None}
    assert not delta.is_empty
    assert image.kept.acls == {UUID(int=2): right(2)}


def test_quotas_that_come_and_go_are_told():
    image = image_of(right(1))
    for record in (quota(1.0), quota(2.0), quota(2.0, remove=True)):
        delta = image.replay([record])
        assert delta.quotas
        assert not delta.is_empty
    assert not image.replay([right(2)]).quotas


@each_case(
    "record",
    [
        PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=9),
        PartitionChangeRecord(topic_id=DIRECTORY, partition_id=0),
        UnregisterBrokerRecord(broker_id=3, broker_epoch=1),
        FenceBrokerRecord(id=3, epoch=1),
        BeginTransactionRecord(),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_change_of_what_does_not_exist_is_refused(record):
    with pytest.raises(MalformedMessage):
        image_of(*TOPIC).replay([record])


def test_one_operation_is_published_once(controller, witness):
    controller.create_topics([NewTopic(name="a"), NewTopic(name="b")])
    controller.create_partitions([NewPartitions(name="a", partition_count=2), NewPartitions(name="b", partition_count=2)])
    assert len(witness.deltas) == 2
    assert witness.created == [("a", [0]), ("b", [0]), ("a", [1]), ("b", [1])]


@given(st.permutations(list(PublishingOrder)))
def test_publishers_are_told_in_kafkas_order_whoever_subscribed_first(subscribed):
    from .doubles import RecordedLog, make_controller

    controller = make_controller(RecordedLog())
    told = []

    class Publisher:
        def __init__(self, order):
            self.order = order

        def publish(self, delta, image):
            assert image.configs(BROKER_RESOURCE, "")["a"] == "x"
            told.append(self.order)

    for order in subscribed:
        controller.subscribe(Publisher(order), order)
    controller.alter_configs([(BROKER_RESOURCE, "", "a", "x")])
    assert told == sorted(PublishingOrder)


def test_a_publisher_that_fails_keeps_nothing_from_the_others(controller, capfd):
    class Failing:
        def publish(self, delta, image):
            raise RuntimeError("broken")

    witness = Witness()
    controller.subscribe(Failing(), PublishingOrder.PARTITIONS)
    controller.subscribe(witness, PublishingOrder.COORDINATORS)
    (result,) = done(controller.create_topics([NewTopic(name="t")]))
    assert (result.error, witness.created) == (None, [("t", [0])])
    assert "Failing" in capfd.readouterr().err
