"""Records of newer groups and share partitions: read by columns into the JSON that they are read into one by one."""

import json

from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.coordinator_records import encode_key
from odradek.protocol.varint import uvarint
from tests.cases import each_case
from tests.pipeline.decoded import OFFSETS, SHARES, TRANSACTIONS, batch_of, left_of, rows_of, rows_one_by_one
from tests.pipeline.record_bytes import compact_string, names, string
from tests.protocol import test_share_state_records
from tests.protocol.test_newer_groups import WRITTEN

SHARE_STATES = [(SHARES, encode_key(key), bytes.fromhex(value)) for key, _, value in test_share_state_records.WRITTEN]
KAFKAS = [*((OFFSETS, bytes.fromhex(key), bytes.fromhex(value)) for _, key, value, _ in WRITTEN), *SHARE_STATES]
TOMBSTONES = [(topic, key, None) for topic, key, _ in KAFKAS]


def test_what_kafka_writes_is_read_by_columns():
    some = [*KAFKAS, *TOMBSTONES, *KAFKAS]
    assert left_of(*some) == []
    assert rows_of(batch_of(*some)) == rows_one_by_one(batch_of(*some))


def test_the_state_of_a_share_partition_has_kafkas_names():
    row = rows_of(batch_of(SHARE_STATES[0]))[0]
    assert (row["kind"], row["key_version"], row["group"]) == ("share_snapshot", 0, "grüp")
    assert json.loads(row["fields"]) == {
        "group_id": "grüp",
        "topic_id": "AQIDBAUGBwgJCgsMDQ4PEA",
        "partition": 2,
        "snapshot_epoch": 3,
        "state_epoch": 4,
        "leader_epoch": 5,
        "start_offset": 5,
        "create_timestamp": 1_700_000_000_000,
        "write_timestamp": 1_700_000_001_000,
        "state_batches": [
            {"first_offset": 5, "last_offset": 9, "delivery_state": 0, "delivery_count": 1},
            {"first_offset": 10, "last_offset": 10, "delivery_state": 2, "delivery_count": 3},
        ],
        "delivery_complete_count": 7,
    }


@st.composite
def bent(draw):
    """Kafka's own, some of them cut, with bytes of their own in the middle, or behind."""
    topic, key, value = draw(st.sampled_from(KAFKAS))
    at = draw(st.integers(2, len(value)))
    return topic, key, value[:at] + draw(st.binary(max_size=3)) + value[at + draw(st.integers(0, 3)) :]


@given(st.lists(st.one_of(bent(), st.sampled_from(KAFKAS)), max_size=20))
def test_whatever_is_read_by_columns_is_what_is_read_one_by_one(some):
    batch = batch_of(*some)
    assert rows_of(batch) == rows_one_by_one(batch)


def share_member(group="g", member="m", rack=None, client="c", host="h", topics=("t",), tail=b"\0"):
    """A share group's member, of which all is text."""
    texts = uvarint(len(topics) + 1) + b"".join(map(compact_string, topics))
    value = b"\0\0" + compact_string(rack) + compact_string(client) + compact_string(host) + texts + tail
    return OFFSETS, b"\0\x0a" + string(group) + string(member), value


texts = st.one_of(names, st.sampled_from(['"', "\\", "a\nb", "\0", "\x7f", "\u2028", "'"]))


@given(st.lists(st.builds(share_member, texts, texts, st.none() | texts, texts, texts, st.lists(texts, max_size=4)), max_size=8))
def test_any_text_is_json(some):
    batch = batch_of(*some)
    assert left_of(*some) == []
    rows = rows_of(batch)
    assert rows == rows_one_by_one(batch)
    for row in rows:
        json.loads(row["fields"])


@each_case(
    "record",
    [
        share_member(topics=["t"] * 129),
        share_member(client="x" * 20_000),
        share_member(tail=b"\1\7\1x"),  # a tagged field that is not known
        share_member(tail=b"\0\0"),
        share_member(tail=b""),
        (OFFSETS, share_member()[1], share_member()[2].replace(b"\2c", b"\2\xff")),
        (OFFSETS, share_member()[1].replace(b"g", b"\xff"), share_member()[2]),
        (OFFSETS, share_member()[1], b"\0\1" + share_member()[2][2:]),
        (OFFSETS, share_member()[1] + b"\0", None),
        (OFFSETS, b"\0\x09\0\1g", None),
        (TRANSACTIONS, *share_member()[1:]),
        (SHARES, *share_member()[1:]),
        (SHARES, SHARE_STATES[0][1][:-1], None),
    ],
)
def test_other_forms_are_left_and_nothing_of_them_is_lost(record):
    some = [share_member(), record, share_member(group="other")]
    assert left_of(*some) == [1]
    assert rows_of(batch_of(*some)) == rows_one_by_one(batch_of(*some))
