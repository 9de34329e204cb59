"""Consumer, share and streams groups' records: what Kafka's own classes wrote and said is what is read."""

import json
import re
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.coordinator_records.newer_groups import NewerRecord, decode_newer
from odradek.protocol.errors import MalformedMessage
from tests.cases import each_case

WRITTEN = [
    line.split("\t") for line in Path(__file__).with_name("newer_groups.txt").read_text().splitlines() if not line.startswith("#")
]
GROUP_EPOCH_KEY = bytes.fromhex("00030002") + b"gs"


def words(value) -> list[str]:
    """Names and scalars in their order, as both say them."""
    if isinstance(value, dict):
        return [word for name, each in value.items() for word in (name, *bytes_as_kafka_says(name, each))]
    if isinstance(value, list):
        return [word for each in value for word in words(each)]
    return ["null" if value is None else str(value)]


def bytes_as_kafka_says(name, value):
    return [str(byte) for byte in b64decode(value)] if name == "metadata" else words(value)


def words_of_kafka(text: str) -> list[str]:
    without_classes = re.sub(r"\b[A-Z]\w*\(", "(", text)
    return re.findall(r"[\w-]+", re.sub(r"\w+(?==)", lambda name: snake_case(name[0]), without_classes))


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0]}", name).lower()


@each_case(("name", "key", "value", "said"), WRITTEN, ids=[line[0] for line in WRITTEN])
def test_what_kafka_wrote_is_read_as_kafka_reads_it(name, key, value, said):
    record = decode_newer(bytes.fromhex(key), bytes.fromhex(value))
    assert record.kind == name.partition("-")[0].lower()
    found = [word for text in words(record.value) for word in re.findall(r"[\w-]+", text)]
    told = words_of_kafka(said)
    # A tagged field that has its default is not in the bytes: what is read is what Kafka says up to there.
    assert found == (told[: len(found)] if name.endswith("-default") else told)


@each_case(("name", "key", "value", "said"), WRITTEN, ids=[line[0] for line in WRITTEN])
def test_a_record_that_is_cut_short_is_malformed(name, key, value, said):
    whole = bytes.fromhex(value)
    for size in range(len(whole)):
        with pytest.raises(MalformedMessage):
            decode_newer(bytes.fromhex(key), whole[:size])


def test_a_tombstone_says_whose_it_is():
    assert decode_newer(GROUP_EPOCH_KEY, None) == NewerRecord("consumer_group_metadata", {"group_id": "gs"}, None, None)


def test_a_key_that_kafka_does_not_have_is_malformed():
    with pytest.raises(MalformedMessage, match=r"the key's version, 99, does not exist in Kafka 4\.4"):
        decode_newer(b"\0\x63\0\1a", b"")


def test_tagged_fields_that_are_not_known_are_passed_over():
    value = bytes.fromhex("0000" + "00000007" + "01" + "2a" + "02" + "beef")
    assert decode_newer(GROUP_EPOCH_KEY, value).value == {"epoch": 7}


@given(st.sampled_from(WRITTEN), st.binary(max_size=60))
def test_whatever_the_bytes_are_they_are_read_or_malformed(written, tail):
    value = bytes.fromhex(written[2])[: len(tail)] + tail
    try:
        record = decode_newer(bytes.fromhex(written[1]), value)
    except MalformedMessage:
        return
    assert json.loads(json.dumps(record.value)) == record.value
