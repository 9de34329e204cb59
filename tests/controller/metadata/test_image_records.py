"""A snapshot has every field of the image: one that ``records_of`` forgets is lost by the next start."""

from dataclasses import fields
from uuid import UUID

from odradek.controller.metadata.client_quotas import ClientQuotas
from odradek.controller.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.kept_records import _KEYS, KeptRecords
from odradek.controller.metadata.snapshot_generator import records_of
from odradek.controller.metadata.topic import Topic
from odradek.protocol.metadata_records import ConfigRecord, FeatureLevelRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from odradek.protocol.metadata_records.log_control import ZkMigrationStateRecord
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord, RegisterControllerRecord
from odradek.protocol.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    UserScramCredentialRecord,
)
from tests.cases import each_case

RATE = "connection_creation_rate"
TOPIC = TopicRecord(name="a.b", topic_id=UUID(int=3))
PARTITION = PartitionRecord(
    partition_id=0, topic_id=UUID(int=3), replicas=(1, 2), isr=(1,), leader=1, leader_epoch=7, partition_epoch=9
)
KEPT = [
    RegisterBrokerRecord(
        broker_id=1, incarnation_id=UUID(int=5), broker_epoch=7, end_points=(), features=(), rack="r", fenced=False
    ),
    RegisterControllerRecord(controller_id=1, incarnation_id=UUID(int=6), zk_migration_ready=False, end_points=(), features=()),
    AccessControlEntryRecord(
        id=UUID(int=7),
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    ),
    UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096),
    DelegationTokenRecord(
        owner="User:a",
        requester="User:b",
        renewers=("User:c",),
        issue_timestamp=1,
        max_timestamp=2,
        expiration_timestamp=3,
        token_id="i",
    ),
    ZkMigrationStateRecord(zk_migration_state=1),
]
# A field of the image, and records that put something into it.
CASES = {
    "topics": [TOPIC, PARTITION],
    "topics_by_id": [TOPIC, PARTITION],
    "features": [FeatureLevelRecord(name="metadata.version", feature_level=30), FeatureLevelRecord(name="f", feature_level=2)],
    "next_producer_id": [ProducerIdsRecord(broker_id=1, next_producer_id=5000)],
    "_configs": [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="a", value="1"),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="b", value="2"),
        ConfigRecord(resource_type=CLIENT_METRICS_RESOURCE, resource_name="s", name="metrics", value="*"),
    ],
    "_collisions": [TOPIC],
    "kept": KEPT,
    "quotas": [
        ClientQuotaRecord(entity=(QuotaEntity(entity_type="user", entity_name=None),), key="k", value=0.5, remove=False),
        ClientQuotaRecord(entity=(QuotaEntity(entity_type="ip", entity_name="::1"),), key=RATE, value=0.5, remove=False),
    ],
}
# Topics that were deleted since the last snapshot.
BEGINS_ANEW = {"removed_topic_ids"}


def plain(value):
    """What can be compared: classes of the image that are equal only to themselves become their fields."""
    match value:
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case Topic():
            return {field.name: getattr(value, field.name) for field in fields(value)}
        case KeptRecords():
            return vars(value)
        case ClientQuotas():
            return {name: getattr(value, name) for name in ClientQuotas.__slots__}
        case _:
            return value


def is_full(value):
    """Whether no field of ``value`` is left empty, so that none is lost unnoticed."""
    match value:
        case dict():
            return bool(value) and all(is_full(each) for each in value.values())
        case _:
            return bool(value)


@each_case("name", vars(MetadataImage()).keys() - BEGINS_ANEW)
def test_a_field_of_the_image_survives_a_snapshot(name):
    assert name in CASES, "a new field of the image needs a line in records_of, and a case here"
    image, again = MetadataImage(), MetadataImage()
    image.replay(CASES[name])
    again.replay(list(records_of(image)))
    found = plain(getattr(image, name))
    assert is_full(found)
    assert plain(getattr(again, name)) == found


def test_every_kind_of_record_that_is_kept_is_tried():
    assert {type(record) for record in KEPT} == {RegisterBrokerRecord, AccessControlEntryRecord, DelegationTokenRecord, *_KEYS}


def test_a_subscription_goes_with_its_last_config():
    image = MetadataImage()
    for value in ("*", None):
        image.replay([ConfigRecord(resource_type=CLIENT_METRICS_RESOURCE, resource_name="s", name="metrics", value=value)])
        assert image.configured(CLIENT_METRICS_RESOURCE) == (["s"] if value else [])
