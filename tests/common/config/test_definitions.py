"""Text becomes a value, and a value text, as in Kafka's ConfigDef; the expectations are what Kafka 4.3 gave."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.config.definitions import (
    AtLeast,
    Between,
    ConfigDefinition,
    ConfigType,
    Entries,
    InvalidConfig,
    OneOf,
    ThrottledReplicas,
    parse,
    to_text,
)
from tests.cases import each_case


def config(kind, valid=None):
    return ConfigDefinition("a.config", kind, None, "", valid)


@each_case(
    ("kind", "text", "value"),
    [
        (ConfigType.INT, " +5 ", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.BOOLEAN, " True ", True),
        (ConfigType.BOOLEAN, "FALSE", False),
        (ConfigType.STRING, "  x y ", "x y"),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.DOUBLE, "5f", 5.0),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.DOUBLE, "-Infinity", -math.inf),
        (ConfigType.LIST, " a , b,a,,c ", ("a", "b", "", "c")),
        (ConfigType.LIST, "", ()),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_read_by_its_type(kind, text, value):
    assert parse(config(kind), text) == value


@each_case(
    ("kind", "text"),
    [
        (ConfigType.INT, ""),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "+-5"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.SHORT, "40000"),
        (ConfigType.LONG, "9" * 5000),
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.DOUBLE, "x"),
        (ConfigType.DOUBLE, "1_0"),
        (ConfigType.DOUBLE, "inf"),
    ],
)
def test_text_of_another_type_is_refused_and_named(kind, text):
    with pytest.raises(InvalidConfig) as refusal:
        parse(config(kind), text)
    assert (refusal.value.key, refusal.value.value) == ("a.config", text)
    assert refusal.value.allowed


@each_case(
    ("valid", "fine", "wrong"),
    [
        (AtLeast(-1), -1, -2),
        (Between(1, 9, -1), -1, 0),
        (Between(1, 9), 9, 10),
        (OneOf("gzip", "zstd"), "gzip", "gz"),
        (OneOf("gzip", any_case=True), "GZip", "gz"),
        (Entries("compact", "delete"), (), ("compact", "foo")),
        (Entries(), ("a", "b"), ("a", "")),
        (Entries(least=1), ("a",), ()),
        (Entries(least=1, most=1), ("a",), ("a", "b")),
        (ThrottledReplicas(), ("*",), ("*", "0:1")),
        (ThrottledReplicas(), ("0:1", "1:2"), ("0:1", "1:x")),
    ],
)
def test_a_validator_lets_pass_what_is_allowed_and_tells_what_is_not(valid, fine, wrong):
    assert valid(fine) is None
    assert valid(wrong) is not None
    assert valid.allowed


def test_a_refusal_names_the_entry_of_a_list_that_is_wrong():
    with pytest.raises(InvalidConfig) as refusal:
        parse(config(ConfigType.LIST, Entries("compact", "delete")), "compact,foo")
    assert refusal.value.value == "foo"
    assert str(refusal.value) == "Invalid value foo for configuration a.config: must be a list of compact, delete"


@each_case(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e21, "-1.0E21"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (0.0, "0.0"),
        (True, "true"),
        (("a", "b"), "a,b"),
        (7, "7"),
        (None, None),
    ],
)
def test_a_value_is_told_as_java_writes_it(value, text):
    assert to_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_that_is_told_reads_back_the_same(value):
    assert parse(config(ConfigType.DOUBLE), to_text(value)) == value


@given(st.text())
def test_any_text_is_a_value_of_its_type_or_refused(text):
    for kind in ConfigType:
        with contextlib.suppress(InvalidConfig):
            parse(config(kind), text)
