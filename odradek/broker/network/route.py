"""The dispatch entry of one API in one version: its codec, its handler, and its request metrics.

The times are those of Kafka's RequestMetrics. Total: from the arrival of a request until its response is in the socket's queue.
Queue: the part before the request began, while earlier requests were handled or waited. Remote: the part in which the response
waited for an event, in a purgatory or for an append.
"""

import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from odradek.protocol.error_codes_in import ErrorScan, compile_error_scan
from odradek.protocol.requests import Decoder, request_decoder
from odradek.protocol.responses import Encoder, GoodEncoder, good_response_encoder, response_encoder

if TYPE_CHECKING:
    from odradek.common.context import Handler
    from odradek.protocol.api_keys import ApiKey

# Upper bounds of the buckets of total times. One more bucket counts longer times.
TOTAL_TIME_BOUNDS_MS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
# Comparing a float with an integer is slower.
_BOUNDS_MS: Final = tuple(map(float, TOTAL_TIME_BOUNDS_MS))


class Route:
    """One API in one version. The metrics are plain numbers, read on demand. Each answered request is in one of ``buckets``.

    ``errors`` counts the error codes in responses, except NONE. As in Kafka, each partition's code counts. Times in milliseconds.
    """

    __slots__ = (
        "api_key",
        "buckets",
        "decode",
        "encode",
        "encode_good",
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

    def __init__(self, api_key: "ApiKey", version: int, handle: "Handler") -> None:
        self.api_key = api_key
        self.version = version
        self.decode: Decoder = request_decoder(api_key, version)
        self.handle = handle
        # Larger requests are answered in slices (``large_requests``).
        self.largest_small_bytes = sys.maxsize
        # True if small requests may have large responses, which are encoded in slices.
        self.has_large_answers = False
        self.encode: Encoder = response_encoder(api_key, version)
        self.encode_good: GoodEncoder | None = good_response_encoder(api_key, version)
        self.scan_errors: ErrorScan = compile_error_scan(api_key)
        self.buckets = [0] * (len(TOTAL_TIME_BOUNDS_MS) + 1)
        self.total_ms = 0.0
        self.queue_ms = 0.0
        self.remote_ms = 0.0
        self.errors: dict[int, int] = {}

    @property
    def requests(self) -> int:
        """The number of requests that were answered, or needed no answer."""
        return sum(self.buckets)

    def note_error(self, code: int) -> None:
        """Count an error code in a response."""
        self.errors[code] = self.errors.get(code, 0) + 1

    def note_waited(self, total_ms: float, remote_ms: float) -> None:
        """Count a response that had to wait. Dispatch counts the others itself."""
        self.buckets[bisect_left(_BOUNDS_MS, total_ms)] += 1
        self.total_ms += total_ms
        self.remote_ms += remote_ms
