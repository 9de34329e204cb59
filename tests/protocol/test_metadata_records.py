"""Metadata records: the bytes are Kafka's, and bytes that are no record raise one error."""

import sys
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import layout_of, newest_version
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownMetadataRecord,
    decode,
    encode,
    kind_of,
    record_types,
)
from odradek.protocol.metadata_records.log_control import BeginTransactionRecord, NoOpRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    NodeEndpoint,
    NodeFeature,
    RegisterBrokerRecord,
)
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from odradek.protocol.metadata_records.security import ClientQuotaRecord, QuotaEntity
from tests.cases import each_case

TOPIC_ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
TOPIC_ID_HEX = "000102030405060708090a0b0c0d0e0f"

PARTITION = PartitionRecord(
    partition_id=3,
    topic_id=TOPIC_ID,
    replicas=(1,),
    isr=(1,),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    directories=(TOPIC_ID,),
)

PARTITION_CHANGE = PartitionChangeRecord(
    partition_id=0, topic_id=TOPIC_ID, isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,)
)
CORDONED = "01110300000001000000000000000f01030101"

# What Kafka's own generated classes write; the first is from a log that `kafka-storage format` of 4.3.1 made.
AS_KAFKA_WRITES = [
    (FeatureLevelRecord(name="metadata.version", feature_level=30), "010c0011" + b"metadata.version".hex() + "001e00"),
    (TopicRecord(name="abc", topic_id=TOPIC_ID), "01020004616263" + TOPIC_ID_HEX + "00"),
    (RemoveTopicRecord(topic_id=TOPIC_ID), "010900" + TOPIC_ID_HEX + "00"),
    (ConfigRecord(resource_type=2, resource_name="t", name="a", value="b"), "0104000202740261026200"),
    (ConfigRecord(resource_type=4, resource_name="", name="a", value=None), "010400040102610000"),
    (ProducerIdsRecord(broker_id=1, next_producer_id=1000), "010f0000000001ffffffffffffffff00000000000003e800"),
    (
        PARTITION,
        "01030200000003" + TOPIC_ID_HEX + "02000000010200000001010100000001000000000000000002" + TOPIC_ID_HEX + "00",
    ),
    # These are from the log of a Kafka 4.3.1 that was started, and stopped, once.
    (BeginTransactionRecord(name="Bootstrap records"), "01170001001212" + b"Bootstrap records".hex()),
    (NoOpRecord(), "01140000"),
    (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=15, cordoned_log_dirs=()), CORDONED),
    (PARTITION_CHANGE, "01050200000000" + TOPIC_ID_HEX + "040001010104ffffffff0605020000000107050200000001"),
]


@each_case(("record", "expected"), AS_KAFKA_WRITES, ids=lambda value: type(value).__name__)
def test_a_record_is_written_as_kafka_writes_it(record: MetadataRecord, expected: str):
    assert encode(record).hex() == expected


@each_case(("record", "expected"), AS_KAFKA_WRITES, ids=lambda value: type(value).__name__)
def test_a_record_is_read_back(record: MetadataRecord, expected: str):
    assert decode(bytes.fromhex(expected)) == record


def test_tagged_fields_are_read():
    tagged = bytes.fromhex("010302ffffffff" + TOPIC_ID_HEX + "010101010000000100000000000000000101000101")
    assert decode(tagged).leader_recovery_state == 1  # type: ignore[union-attr]


NAMES = st.text(max_size=20)
IDS = st.uuids()
INT32 = st.integers(-(2**31), 2**31 - 1)


def made(record_type, **fields):
    """Records with these fields drawn. ``st.builds`` would draw the others as well."""
    return st.fixed_dictionaries(fields).map(lambda drawn: record_type(**drawn))


RECORDS = st.one_of(
    made(TopicRecord, name=NAMES, topic_id=IDS),
    made(RemoveTopicRecord, topic_id=IDS),
    made(ConfigRecord, resource_type=st.integers(-128, 127), resource_name=NAMES, name=NAMES, value=st.none() | NAMES),
    made(FeatureLevelRecord, name=NAMES, feature_level=st.integers(-(2**15), 2**15 - 1)),
    made(ProducerIdsRecord, broker_id=INT32, broker_epoch=INT32, next_producer_id=st.integers(0, 2**63 - 1)),
    made(
        PartitionChangeRecord,
        topic_id=IDS,
        partition_id=INT32,
        isr=st.none() | st.tuples(INT32),
        leader=INT32,
        directories=st.none() | st.tuples(IDS),
    ),
    made(
        ClientQuotaRecord,
        entity=st.tuples(made(QuotaEntity, entity_type=NAMES, entity_name=st.none() | NAMES)),
        key=NAMES,
        value=st.floats(allow_nan=False),
        remove=st.booleans(),
    ),
    made(
        PartitionRecord,
        partition_id=INT32,
        topic_id=IDS,
        replicas=st.tuples(INT32),
        isr=st.tuples(INT32, INT32),
        directories=st.tuples(IDS),
        eligible_leader_replicas=st.none() | st.tuples(INT32),
    ),
)


@given(RECORDS)
def test_every_record_survives_the_log(record: MetadataRecord):
    assert decode(encode(record)) == record


def test_ids_of_zero_survive_the_log():
    zero = UUID(int=0)
    change = PartitionChangeRecord(partition_id=1, topic_id=zero, directories=(zero, TOPIC_ID))
    assert decode(encode(change)) == change


def test_partitions_share_what_they_have_in_common():
    value, other = encode(PARTITION), encode(PARTITION._replace(partition_id=7, isr=(2,)))
    first, second = decode(value), decode(other)
    assert isinstance(first, PartitionRecord)
    assert isinstance(second, PartitionRecord)
    assert (first.topic_id is second.topic_id, first.replicas is second.replicas, second.isr) == (True, True, (2,))


def test_what_an_older_version_lacks_has_its_default():
    end_point = NodeEndpoint(name="CONTROLLER", host="localhost", port=65535, security_protocol=0)
    feature = NodeFeature(name="metadata.version", min_supported_version=7, max_supported_version=25)
    oldest = (
        *("010000", "00000001", TOPIC_ID_HEX, "000000000000000f"),
        *("02", "0b" + b"CONTROLLER".hex(), "0a" + b"localhost".hex(), "ffff", "0000", "00"),
        *("02", "11" + b"metadata.version".hex(), "0007", "0019", "00"),
        *("00", "01", "00"),
    )
    assert decode(bytes.fromhex("".join(oldest))) == RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=TOPIC_ID,
        broker_epoch=15,
        end_points=(end_point,),
        features=(feature,),
        rack=None,
        fenced=True,
    )


def test_kafkas_record_types_are_known_all():
    assert sorted(kind_of(each()) for each in record_types()) == [
        *(0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
    ]


@given(RECORDS, st.data())
def test_a_record_cut_short_is_malformed(record: MetadataRecord, data: st.DataObject):
    value = encode(record)
    with pytest.raises(MalformedMessage):
        decode(value[: data.draw(st.integers(0, len(value) - 1))])


@given(RECORDS)
def test_a_record_with_bytes_behind_it_is_malformed(record: MetadataRecord):
    with pytest.raises(MalformedMessage):
        decode(encode(record) + b"\0")


@given(st.binary(max_size=80), st.sampled_from([b"", b"\1", b"\1\2\0", b"\1\3\2", b"\1\4\0", b"\1\17\0"]))
def test_any_bytes_decode_or_are_malformed(body: bytes, head: bytes):
    with suppress(MalformedMessage):
        decode(head + body)


@pytest.mark.parametrize(("value", "said"), [("017f00", "type 127, version 0"), ("010201", "type 2, version 1")])
def test_an_unknown_type_or_version_is_named(value: str, said: str):
    with pytest.raises(UnknownMetadataRecord, match=said):
        decode(bytes.fromhex(value) + bytes(40))


@each_case("value", ["000200", "020200", "017f00", "010201", "01ffffffffff0f"])
def test_an_unknown_frame_type_or_version_is_malformed(value: str):
    with pytest.raises(MalformedMessage):
        decode(bytes.fromhex(value) + bytes(40))


@each_case("record_type", record_types(), ids=lambda record_type: record_type.__name__)
def test_a_class_has_the_fields_and_defaults_of_its_newest_version(record_type):
    table = sys.modules[record_type.__module__].FIELDS[kind_of(record_type())]
    fields = layout_of(table, newest_version(table)).fields
    defaults = {spec.name: UUID(int=0) if spec.kafka_type == "uuid" and not spec.is_array else spec.default for spec in fields}
    assert record_type._field_defaults == defaults
