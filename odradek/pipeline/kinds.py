"""Records of one kind into columns: how to read the key and the value of each version, and how to build columns.

A row is read here only if its whole key and value are well-formed and its texts are UTF-8. The result equals that of
``protocol.coordinator_records``. All other rows are left to ``one_by_one``.

A member's subscription and assignment are column values; None if the bytes are not in the consumer protocol.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from odradek.pipeline.columns import (
    NO_ELEMENTS,
    Bytes,
    Column,
    Cursor,
    Elements,
    Fields,
    Integers,
    Mask,
    arrow_columns,
    places_among,
)
from odradek.protocol.coordinator_records import MalformedMessage, consumer_protocol


class Rows(NamedTuple):
    """The fields of rows, by the name of the column, and the elements of the rows' array, if the kind has one."""

    fields: Fields
    elements: Elements = NO_ELEMENTS

    def where(self, is_kept: Mask) -> "Rows":
        """Return the kept rows. Mostly these are all rows."""
        if is_kept.all():
            return self
        kept = np.flatnonzero(is_kept)
        return Rows({name: field.take(kept, axis=0) for name, field in self.fields.items()}, self.elements.where(is_kept))


class Kind(NamedTuple):
    """A kind of record on ``__transaction_state`` or ``__consumer_offsets``, with the versions of its keys and values.

    ``value_versions`` are in the order in which they are tried, the most frequent first. ``read_value`` takes the version as
    its first argument. ``build`` makes the columns, out of the values' bytes and the result of ``read_value``; it may raise
    ArrowInvalid.
    """

    name: str
    is_on_transaction_state: bool
    key_versions: tuple[int, ...]
    value_versions: tuple[int, ...]
    read_key: Callable[[Cursor], Fields]
    read_value: Callable[[int, Cursor], Rows]
    build: Callable[[Bytes, Rows], dict[str, pa.Array]]


def read_rows(kind: Kind, version: int, key: Column, value: Column, rows: Integers) -> tuple[Integers, dict[str, pa.Array]]:
    """Return the well-formed ones among ``rows`` (keys of this kind, values of this ``version``), and their columns.

    A tombstone (a null value) has nulls in the columns that come from values. If any text is not UTF-8, no row is returned.
    """
    keys = key.cursor(rows)
    named = Rows(kind.read_key(keys))
    is_whole = keys.is_whole()
    rows, named = rows[is_whole], named.where(is_whole)
    has_value = ~value.is_null[rows]
    values = value.cursor(rows[has_value])
    told = kind.read_value(version, values)
    is_formed = ~has_value
    is_formed[has_value] = values.is_whole()
    rows, named, told = rows[is_formed], named.where(is_formed), told.where(values.is_whole())
    try:
        columns = kind.build(value.data, told)
        return rows, arrow_columns(key.data, named.fields) | _with_nulls(columns, ~has_value[is_formed])
    except pa.ArrowInvalid:
        return rows[:0], {}


def _with_nulls(columns: dict[str, pa.Array], is_null: Mask) -> dict[str, pa.Array]:
    """Return columns of the rows that have a value, extended by a null for each row without."""
    if not is_null.any():
        return columns
    places = places_among(~is_null)
    return {name: column.take(places) for name, column in columns.items()}


# A member mostly sends the same bytes in every generation, and members mostly send the same as each other.
@lru_cache(maxsize=4096)
def subscribed_topics(subscription: bytes) -> list[str] | None:
    """Return the subscribed topics, in the order given."""
    try:
        return consumer_protocol.subscribed_topics(subscription)
    except MalformedMessage:
        return None


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> list[dict[str, Any]] | None:
    """Return the assigned topics with their partitions; an empty list for empty bytes."""
    try:
        assigned = consumer_protocol.assigned_partitions(assignment)
    except MalformedMessage:
        return None
    return [{"topic": topic, "partitions": partitions} for topic, partitions in assigned]
