"""Routing: ids hash as Java's strings do."""

import pytest

from odradek.coordinator.runtime import runtime
from odradek.protocol.hashing import java_string_hash, partition_for
from tests.coordinator.memory_logs import MemoryLog
from tests.coordinator.runtime.bed import Bed

# (id, hashCode, partition of 50), computed by Java with Kafka's Utils.abs.
AS_JAVA_HASHES = [
    ("", 0, 0),
    ("a", 97, 47),
    ("group-1", 293427299, 49),
    ("grüße", 98768023, 23),
    ("😀", 1772899, 49),
    ("console-consumer-12345", 158455506, 6),
]


@pytest.mark.parametrize(("text", "expected", "partition"), AS_JAVA_HASHES)
def test_an_id_hashes_and_is_routed_as_in_java(text, expected, partition):
    assert java_string_hash(text) == expected
    assert partition_for(text, 50) == partition


def test_a_negative_hash_is_made_positive():
    assert java_string_hash("consumers") == -421004483
    assert partition_for("consumers", 50) == 33


def test_integer_min_value_which_java_cannot_negate_counts_as_zero():
    assert java_string_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("polygenelubricants", 7) == 0


def test_a_lone_surrogate_is_one_code_unit():
    assert java_string_hash("\ud83d") == 0xD83D


def test_a_runtime_routes_by_the_partitions_there_are():
    bed = Bed(partition_count=2)
    ids = [f"group-{number}" for number in range(20)]
    assert [bed.runtime.partition_for(each) for each in ids * 2] == [partition_for(each, 2) for each in ids * 2]
    bed.logs.logs.append(MemoryLog(1000))
    bed.runtime.start_loading(2, 0)
    assert [bed.runtime.partition_for(each) for each in ids] == [partition_for(each, 3) for each in ids]
    bed.runtime.unload(2)
    bed.logs.logs.pop()
    assert [bed.runtime.partition_for(each) for each in ids] == [partition_for(each, 2) for each in ids]


@pytest.mark.interpreted
def test_ids_that_are_made_up_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(runtime, "_MAX_KNOWN_IDS", 3)
    bed = Bed(partition_count=2)
    ids = [f"group-{number}" for number in range(20)]
    assert [bed.runtime.partition_for(each) for each in ids] == [partition_for(each, 2) for each in ids]
    assert len(bed.runtime._partition_of) <= 3
