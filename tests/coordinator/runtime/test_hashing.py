"""Routing: ids hash as Java's strings do."""

import pytest

from odradek.coordinator.runtime.hashing import java_string_hash, partition_for

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
