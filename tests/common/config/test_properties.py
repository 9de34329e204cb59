"""server.properties is read as java.util.Properties reads it; the expectations are what Java's own ``load`` gave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.config.broker_config import parse_properties
from odradek.common.config.definitions import InvalidConfig
from tests.cases import each_case


@each_case(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a = : b", {"a": ": b"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("", {}),
        ("  \f k\f=\fv", {"k": "v"}),
    ],
)
def test_a_key_and_its_value_are_parted_by_the_first_separator(text, properties):
    assert parse_properties(text) == properties


@each_case(
    ("text", "properties"),
    [
        ("#c\n!d\n  # e\nk=v", {"k": "v"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=b\\\n#c\nd=e", {"a": "b#c", "d": "e"}),
        ("\\\n#x=1", {}),
        ("\\#a=1", {"#a": "1"}),
    ],
)
def test_a_comment_is_a_line_that_starts_with_a_mark(text, properties):
    assert parse_properties(text) == properties


@each_case(
    ("text", "properties"),
    [
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=\\\n\\\n  x", {"a": "x"}),
        ("a=x\\\n\nb=c", {"a": "x", "b": "c"}),
        ("a\\\n b=c", {"ab": "c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("k=v\\", {"k": "v"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
    ],
)
def test_a_line_goes_on_after_an_odd_backslash_at_its_end(text, properties):
    assert parse_properties(text) == properties


@each_case(
    ("text", "properties"),
    [
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b:c", {"a:b": "c"}),
        ("a\\ b c", {"a b": "c"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("k=trail \\\\", {"k": "trail \\"}),
    ],
)
def test_escapes_mean_what_they_mean_in_java(text, properties):
    assert parse_properties(text) == properties


def test_of_equal_keys_the_last_counts():
    assert parse_properties("a=1\na=2") == {"a": "2"}


def test_an_escape_without_four_digits_is_refused():
    with pytest.raises(InvalidConfig, match="four hexadecimal digits"):
        parse_properties("a=\\u12x4")


@given(st.dictionaries(st.text("ab.= :#!\\\t", min_size=1), st.text("ab = :#!\\\t")))
def test_what_is_escaped_whole_comes_back_whole(properties):
    def escape(text):
        return "".join(f"\\u{ord(character):04x}" for character in text)

    written = "\n".join(f"{escape(key)}={escape(value)}" for key, value in properties.items())
    assert parse_properties(written) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        parse_properties(text)
    except InvalidConfig:
        assert "\\u" in text
