"""The records of consumer groups: what is written is read again, and is what the decoder for display makes of it."""

from uuid import UUID

import pytest

from odradek.coordinator.runtime.result import CoordinatorRecord, decode_group_record, encode_record
from odradek.protocol.coordinator_records import decode_value
from odradek.protocol.coordinator_records.consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OwnedPartitions,
    PartitionMetadata,
    TargetPartitions,
    TopicMetadata,
)
from odradek.protocol.coordinator_records.newer_groups import decode_newer
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

TOPIC = UUID(int=5)
CLASSIC = ClassicMemberMetadata(9, (ClassicProtocol("range", b"\1\2"),))
RECORDS = {
    "consumer_group_metadata": (ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3, -7)),
    "consumer_group_partition_metadata": (
        ConsumerGroupPartitionMetadataKey("g"),
        ConsumerGroupPartitionMetadataValue((TopicMetadata(TOPIC, "t", 1, (PartitionMetadata(0, ("r",)),)),)),
    ),
    "consumer_group_member_metadata": (
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupMemberMetadataValue("i", None, "c", "/h", ("a", "b"), "x.*", 5, "uniform", CLASSIC),
    ),
    "consumer_group_target_assignment_metadata": (
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(3, 99),
    ),
    "consumer_group_target_assignment_member": (
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupTargetAssignmentMemberValue((TargetPartitions(TOPIC, (0, 2)),)),
    ),
    "consumer_group_current_member_assignment": (
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentValue(
            3, 2, 1, (OwnedPartitions(TOPIC, (0, 2), (2, 3)),), (OwnedPartitions(TOPIC, (4,), ()),)
        ),
    ),
    "consumer_group_regular_expression": (
        ConsumerGroupRegularExpressionKey("g", "a.*"),
        ConsumerGroupRegularExpressionValue(("a", "ab"), 5, 99),
    ),
}


@each_case("kind", RECORDS)
def test_what_is_written_is_read_again(kind):
    record = CoordinatorRecord(*RECORDS[kind])
    key, value = encode_record(record)
    assert decode_group_record(key, value) == record
    assert decode_newer(key, value).kind == kind


@each_case("kind", RECORDS)
def test_a_tombstone_is_read_again(kind):
    record = CoordinatorRecord(RECORDS[kind][0], None)
    assert decode_group_record(*encode_record(record)) == record


@each_case("kind", RECORDS)
def test_a_value_that_is_cut_off_is_malformed(kind):
    key, value = RECORDS[kind]
    _, data = encode_record(CoordinatorRecord(key, value))
    for size in range(2, len(data)):
        with pytest.raises(MalformedMessage):
            decode_value(key, data[:size])


def test_a_member_of_the_consumer_protocol_is_written_as_no_classic_one():
    member = ConsumerGroupMemberMetadataValue(None, None, "raw", "/127.0.0.1", ("t",), "", 300_000, None)
    _, data = encode_record(CoordinatorRecord(ConsumerGroupMemberMetadataKey("g", "m"), member))
    # As Apache Kafka 4.3.1 has written it. Without the tagged field it takes the member for a classic one.
    assert data == b"\x00\x00\x00\x00\x04raw\x0b/127.0.0.1\x02\x02t\x01\x00\x04\x93\xe0\x00" + b"\x01\x00\x01\x00"


def test_a_number_at_its_default_is_left_out():
    _, data = encode_record(CoordinatorRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(3)))
    assert data == b"\0\0" + b"\0\0\0\3" + b"\0"


def test_a_value_of_another_version_is_malformed():
    with pytest.raises(MalformedMessage):
        decode_value(ConsumerGroupMetadataKey("g"), b"\0\1\0\0\0\3\0")
