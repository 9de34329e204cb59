"""Records of one kind into columns: how the key and the value of one of its forms are read, and what becomes of the fields.

A row is read here only if all of its key and value has that form, and its texts are UTF-8; what is read then is what
``protocol.coordinator_records`` would have read. All other rows are left to who reads records one by one.
"""

from collections.abc import Callable
from typing import NamedTuple

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


class Rows(NamedTuple):
    """What was read of rows: their fields by the name of the column, and the elements of the array that they have, if any."""

    fields: Fields
    elements: Elements = NO_ELEMENTS

    def where(self, is_kept: Mask) -> "Rows":
        """Those that are kept, mostly all."""
        if is_kept.all():
            return self
        kept = np.flatnonzero(is_kept)
        return Rows({name: field.take(kept, axis=0) for name, field in self.fields.items()}, self.elements.where(is_kept))


class Kind(NamedTuple):
    """A kind of record, on ``__transaction_state`` or on ``__consumer_offsets``, with keys and values of these versions.

    Those of values are in the order in which they are looked for, the most frequent first: ``read_value`` is told which it reads.
    ``build`` makes the columns, out of the values' bytes and what ``read_value`` read of them. It may raise ArrowInvalid.
    """

    name: str
    is_on_transaction_state: bool
    key_versions: tuple[int, ...]
    value_versions: tuple[int, ...]
    read_key: Callable[[Cursor], Fields]
    read_value: Callable[[int, Cursor], Rows]
    build: Callable[[Bytes, Rows], dict[str, pa.Array]]


def read_rows(kind: Kind, version: int, key: Column, value: Column, rows: Integers) -> tuple[Integers, dict[str, pa.Array]]:
    """Those of ``rows``, with keys of the kind and values of a ``version``, that have its form, and their columns.

    A null value is a tombstone: the columns that come from values are null there. None of the rows where a text is not UTF-8.
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
    """Columns of the rows that have a value, with a null for each that has none."""
    if not is_null.any():
        return columns
    places = places_among(~is_null)
    return {name: column.take(places) for name, column in columns.items()}
