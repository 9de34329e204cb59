"""The size of a response before it is encoded: the number of items in its arrays, and the approximate size of its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

# The memory of an item with fields, including its own numbers; and of a reference to an item, which is mostly shared.
_STRUCT_BYTES: Final = 160
_PLACE_BYTES: Final = 8
# The number of items encoded in about a millisecond. Of a field without a size limit, this many bytes count as an item.
_SMALL_ITEMS: Final = 1_000
_BYTES_AN_ITEM: Final = 256


class ResponseSize:
    """The counted size of one response. The memory of an object that occurs twice counts once."""

    __slots__ = ("_by_struct", "_uninterrupted", "items", "object_bytes")

    def __init__(self) -> None:
        self.items = 0
        self.object_bytes = 0
        # The number of items of each struct with arrays.
        self._by_struct: dict[int, int] = {}
        # Items counted since the last yield.
        self._uninterrupted = 0

    def count(self, struct: tuple[Any, ...]) -> Generator[None, None, None]:
        """Count ``struct``, one of the canonical messages. Yields None after each millisecond's worth of encoding."""
        for value in struct:
            if type(value) is list or type(value) is tuple:
                if not value:
                    continue
                self._add(len(value), _PLACE_BYTES * len(value))
                if _has_arrays(value[0]):
                    for item in value:
                        yield from self._count_once(item)
                elif isinstance(value[0], tuple):
                    self.object_bytes += _STRUCT_BYTES * len(value)
                    self._uninterrupted += _field_bytes(value) // _BYTES_AN_ITEM
            elif isinstance(value, tuple):
                yield from self._count_once(value)
            elif type(value) is bytes:
                self._uninterrupted += len(value) // _BYTES_AN_ITEM
        if self._uninterrupted >= _SMALL_ITEMS:
            self._uninterrupted = 0
            yield

    def _count_once(self, struct: tuple[Any, ...]) -> Generator[None, None, None]:
        known = self._by_struct.get(id(struct))
        if known is None:
            before = self.items
            self.object_bytes += _STRUCT_BYTES
            # Its arrays may be empty.
            self._uninterrupted += 1
            yield from self.count(struct)
            self._by_struct[id(struct)] = self.items - before
            return
        self._add(known, 0)
        if self._uninterrupted >= _SMALL_ITEMS:
            self._uninterrupted = 0
            yield

    def _add(self, items: int, object_bytes: int) -> None:
        self.items += items
        self._uninterrupted += items
        self.object_bytes += object_bytes


def is_small(response: tuple[Any, ...]) -> bool:
    """Return whether a response is encoded in about a millisecond."""
    return next(ResponseSize().count(response), response) is response


def _field_bytes(items: Sequence[tuple[Any, ...]]) -> int:
    """Return the approximate bytes in the strings and blobs of ``items``, which all have the same fields."""
    places = [place for place, field in enumerate(items[0]) if type(field) is bytes or type(field) is str]
    return sum(len(item[place] or "") for place in places for item in items)


def _has_arrays(item: object) -> bool:
    return isinstance(item, tuple) and any(type(value) is list or isinstance(value, tuple) for value in item)
