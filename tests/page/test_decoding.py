"""Any bytes are shown as something, and nothing as what it is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.page.facts.decoding import Format, show


@pytest.mark.parametrize(
    ("data", "format_", "text"),
    [
        (None, Format.NULL, "null"),
        (b"", Format.EMPTY, ""),
        (b"12 books", Format.TEXT, "12 books"),
        (b"12", Format.TEXT, "12"),
        (b'{"total":12}', Format.JSON, '{\n  "total": 12\n}'),
        (b'{"total":12', Format.TEXT, '{"total":12'),
        ("<b>\u202egrün".encode(), Format.TEXT, "<b>\u202egrün"),
        (b"\xff\xfe", Format.HEX, "ff fe"),
        (b"\x1b[2J", Format.HEX, "1b 5b 32 4a"),
    ],
)
def test_a_field_is_shown_as_its_bytes_say(data, format_, text):
    shown = show(data)
    assert (shown.format, shown.text, shown.size_bytes) == (format_, text, len(data or b""))
    assert not shown.is_cut


def test_a_value_of_a_schema_registry_says_which_schema_it_needs():
    assert "schema 258 of a schema registry" in show(b"\x00\x00\x00\x01\x02\x06foo").note


def test_half_a_surrogate_pair_is_shown_in_a_way_that_has_an_encoding():
    show(b'{"half": "\\ud800"}').text.encode()


def test_a_text_is_cut_between_characters():
    shown = show("ä".encode() * 10, limit_bytes=5)
    assert (shown.text, shown.is_cut, shown.size_bytes) == ("ää", True, 20)


def test_a_format_is_used_on_demand_if_the_bytes_allow_it():
    assert show(b"ab", Format.HEX).text == "61 62"
    assert show(b'{"a": 1}', Format.TEXT).text == '{"a": 1}'
    refused = show(b"ab", Format.JSON)
    assert (refused.format, refused.note) == (Format.HEX, "these bytes are not JSON")


def test_messagepack_is_shown_as_json():
    msgpack = pytest.importorskip("msgpack")
    document = {"total": 12, "lines": ["a", b"\x01\x02"]}
    shown = show(msgpack.packb(document))
    assert shown.format is Format.MESSAGEPACK
    assert json.loads(shown.text) == {"total": 12, "lines": ["a", "01 02"]}


@given(data=st.binary(), wanted=st.none() | st.sampled_from(Format), limit=st.integers(1, 50))
def test_any_bytes_are_shown_in_any_format(data, wanted, limit):
    shown = show(data, wanted, limit)
    assert shown.size_bytes == len(data)
    shown.text.encode()
