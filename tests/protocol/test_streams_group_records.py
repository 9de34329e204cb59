"""The records of streams groups: the bytes of Kafka's own classes are read, and written again."""

import pytest

from odradek.coordinator.runtime.result import CoordinatorRecord, decode_group_record, encode_record
from odradek.protocol.coordinator_records import decode_value
from odradek.protocol.coordinator_records.streams_groups import (
    KEYS,
    LastAssignmentConfig,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
)
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case
from tests.protocol.test_newer_groups import WRITTEN

STREAMS = {name: (bytes.fromhex(key), bytes.fromhex(value)) for name, key, value, _ in WRITTEN if name.startswith("STREAMS")}


@each_case("name", STREAMS)
def test_a_record_of_kafkas_classes_is_read_and_written_again(name):
    key, value = STREAMS[name]
    record = decode_group_record(key, value)
    assert type(record.key) in KEYS.values()
    assert type(record.value).__name__ == type(record.key).__name__.removesuffix("Key") + "Value"
    assert encode_record(record) == (key, value)
    assert decode_group_record(key, None) == CoordinatorRecord(record.key, None)
    assert encode_record(CoordinatorRecord(record.key, None)) == (key, None)


@each_case("name", STREAMS)
def test_a_value_that_is_cut_off_is_malformed(name):
    key, value = STREAMS[name]
    for size in range(2, len(value)):
        with pytest.raises(MalformedMessage):
            decode_value(decode_group_record(key, value).key, value[:size])


# As the classes of Kafka 4.4.0 wrote them.
EPOCHS = {
    "000000000002000000000000000502000400000000011902156e756d2e7374616e6462792e7265706c69636173023000": (
        StreamsGroupMetadataValue(2, 5, 0, (LastAssignmentConfig("num.standby.replicas", "0"),))
    ),
    "0000000000030000000000000000020204fffffffe030400000004": StreamsGroupMetadataValue(3, 0, -1, (), -2, 4),
    "000000000004000000000000000000": StreamsGroupMetadataValue(4, 0),
}


@each_case(("data", "value"), EPOCHS.items())
def test_tagged_fields_at_their_defaults_are_left_out(data, value):
    key = StreamsGroupMetadataKey("g")
    assert encode_record(CoordinatorRecord(key, value))[1] == bytes.fromhex(data)
    assert decode_value(key, bytes.fromhex(data)) == value
