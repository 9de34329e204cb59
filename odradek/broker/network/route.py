"""The dispatch entry of one API in one version: its codec, its handler, its request metrics, and the size of its responses.

The times are those of Kafka's RequestMetrics. Total: from the arrival of a request until its response is in the socket's queue.
Queue: the part before the request began, while earlier requests were handled or waited. Remote: the part in which the response
waited for an event, in a purgatory or for an append.

``ResponseSize`` counts a response before it is encoded: the items in its arrays, and the approximate size of its objects.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.broker_codecs import Decoder, Encoder, SuccessEncoder, request_decoder, response_encoder, success_encoder
from odradek.protocol.error_codes_in import ErrorScan, compile_error_scan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from odradek.common.context import Handler, RequestContext
    from odradek.protocol.api_keys import ApiKey

    # Gets the error codes in a response; none if the connection is closed in place of an answer.
    ErrorWatcher = Callable[[RequestContext, Sequence[int]], None]

# Upper bounds of the buckets of total times. One more bucket counts longer times.
TOTAL_TIME_BOUNDS_MS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
# Comparing a float with an integer is slower.
_BOUNDS_MS: Final = tuple(map(float, TOTAL_TIME_BOUNDS_MS))


class Route:
    """One API in one version. The metrics are plain numbers, read on demand. Each answered request is in one of ``buckets``.

    ``errors`` counts the error codes in responses, except NONE. As in Kafka, each partition's code counts. Times in milliseconds.
    An ``error_watcher`` is told the codes of each response that has some.
    """

    __slots__ = (
        "_told",
        "api_key",
        "buckets",
        "decode",
        "encode",
        "encode_success",
        "error_watcher",
        "errors",
        "handle",
        "has_large_answers",
        "largest_small_bytes",
        "queue_ms",
        "remote_ms",
        "scan_errors",
        "total_ms",
        "version",
    )

    def __init__(self, api_key: ApiKey, version: int, handle: Handler) -> None:
        self.api_key = api_key
        self.version = version
        self.decode: Decoder = request_decoder(api_key, version)
        self.handle = handle
        # Larger requests are answered in slices (``large_requests``).
        self.largest_small_bytes = sys.maxsize
        # True if small requests may have large responses, which are encoded in slices.
        self.has_large_answers = False
        self.encode: Encoder = response_encoder(api_key, version)
        self.encode_success: SuccessEncoder | None = success_encoder(api_key, version)
        self.scan_errors: ErrorScan = compile_error_scan(api_key)
        self.error_watcher: ErrorWatcher | None = None
        self.buckets = [0] * (len(TOTAL_TIME_BOUNDS_MS) + 1)
        self.total_ms = 0.0
        self.queue_ms = 0.0
        self.remote_ms = 0.0
        self.errors: dict[int, int] = {}
        # The codes of the response that is scanned, for the watcher.
        self._told: list[int] = []

    @property
    def requests(self) -> int:
        """The number of requests that were answered, or needed no answer."""
        return sum(self.buckets)

    def note_error(self, code: int) -> None:
        """Count an error code in a response."""
        self.errors[code] = self.errors.get(code, 0) + 1
        if self.error_watcher is not None:
            self._told.append(code)

    def note_errors(self, context: RequestContext, response: Any) -> None:  # noqa: ANN401  any API's message
        """Count the error codes in a response."""
        self.scan_errors(response, self)
        if self._told and self.error_watcher is not None:
            told, self._told = self._told, []
            self.error_watcher(context, told)

    def note_waited(self, total_ms: float, remote_ms: float) -> None:
        """Count a response that had to wait. Dispatch counts the others itself."""
        self.buckets[bisect_left(_BOUNDS_MS, total_ms)] += 1
        self.total_ms += total_ms
        self.remote_ms += remote_ms


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
