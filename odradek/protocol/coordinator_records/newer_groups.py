"""The records of consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) on ``__consumer_offsets``, keys 3 to 23.

    key      int16 version, which is the kind | string group id | string member id, or a regular expression, in some kinds
    value    int16 version, 0 | fields | tagged fields

Also the states of share partitions on ``__share_group_state``, keys 0 and 1 (``SHARE_STATE_KINDS``). Their key goes on with a
topic id and a partition.

All values are flexible. The tables of fields decode them into dictionaries under Kafka's names, for display. A broker without
such groups does not import this module. Topic ids are in Kafka's base64, bytes in base64. Tagged fields missing in the table are
skipped. Those missing in a record are missing in the dictionary.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from odradek.protocol.coordinator_records.fields import ensure_end, read_int16
from odradek.protocol.coordinator_records.tables import KEYS, SHARE_STATE_KEYS, SHARE_STATE_VALUES, VALUES
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import FieldSpec, Layout, layout_of
from odradek.protocol.readers import ReaderCompiler, ReadFrame, compile_reader
from odradek.protocol.texts import encode_base64, uuid_bytes_text

# FieldSpec and Layout are for the pipeline, which imports nothing else from ``protocol``.
__all__ = ["KINDS", "SHARE_STATE_KINDS", "VALUE_VERSION", "FieldSpec", "Kind", "Layout", "NewerRecord", "decode_newer"]

VALUE_VERSION: Final = 0
_MISSING: Final = object()


class Kind(NamedTuple):
    """A kind of record, and the fields of its key and of its value."""

    name: str
    key: Layout
    value: Layout


class NewerRecord(NamedTuple):
    """A decoded record. ``value`` is None for a tombstone."""

    kind: str
    key: dict[str, Any]
    value: dict[str, Any] | None
    value_version: int | None


def _kind(key_table: str, value_table: str) -> Kind:
    key = layout_of(key_table, 0)
    name = re.sub("(?<!^)([A-Z])", r"_\1", key.name.removesuffix("Key")).lower()
    return Kind(name, key, layout_of(value_table, VALUE_VERSION))


# By the key's version.
KINDS: Final = {version: _kind(key, VALUES[version]) for version, key in KEYS.items()}
SHARE_STATE_KINDS: Final = {version: _kind(key, SHARE_STATE_VALUES[version]) for version, key in SHARE_STATE_KEYS.items()}


class _DocumentCompiler(ReaderCompiler):
    """Reads structs into dictionaries. Tagged fields that a record lacks are missing."""

    longest_string = 0x7FFFFFFF

    def __init__(self, layout: Layout, canonical: Mapping[str, type[Any]], *, views: bool) -> None:
        tagged = [spec._replace(default=_MISSING) for spec in layout.fields if spec.tag is not None]
        # In the order of the bytes.
        fields = (*(spec for spec in layout.fields if spec.tag is None), *sorted(tagged, key=lambda spec: spec.tag or 0))
        super().__init__(Layout(layout.name, flexible=layout.flexible, fields=fields), canonical, views=views)
        self._scope |= {"MISSING": _MISSING, "base64": encode_base64, "uuid_text": uuid_bytes_text}

    def _result(self) -> str:
        items = ", ".join(f"({name!r}, f_{name})" for name in self._fields)
        return f"{{name: value for name, value in ({items},) if value is not MISSING}}"

    def _uuid(self, value: str) -> str:
        return f"uuid_text({value})"

    def _items(self, spec: FieldSpec, to: str) -> list[str]:
        return [*super()._items(spec, to), f"{to} = list({to})"]

    def _string_or_bytes(self, spec: FieldSpec, to: str, *, nullable: bool) -> list[str]:
        lines = super()._string_or_bytes(spec, to, nullable=nullable)
        return lines if spec.kafka_type == "string" else [*lines, f"{to} = base64({to})"]


@cache
def _reader(layout: Layout) -> ReadFrame:
    return compile_reader(layout, {}, compiler=_DocumentCompiler)


def decode_newer(key: bytes, value: bytes | None, kinds: Mapping[int, Kind] = KINDS) -> NewerRecord:
    """Decode a record of one of these kinds. Raises MalformedMessage, also for an unknown version."""
    key_version, position = read_int16(key, 0)
    if key_version not in kinds:
        raise MalformedMessage(f"the key's version, {key_version}, does not exist in Kafka 4.4")
    kind, of_key, layout = kinds[key_version]
    named, position = _reader(of_key)(key, position)
    ensure_end(key, position)
    if value is None:
        return NewerRecord(kind, named, None, None)
    value_version, position = read_int16(value, 0)
    if value_version != VALUE_VERSION:
        raise MalformedMessage(f"the value of {kind} has version {value_version}, not {VALUE_VERSION}")
    fields, position = _reader(layout)(value, position)
    ensure_end(value, position)
    return NewerRecord(kind, named, fields, value_version)
