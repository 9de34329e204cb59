"""The broker's codecs: decodes requests to canonical messages, and encodes responses.

Requests: the reader of the request's version makes the canonical message (``readers``). Most fields have the same name in all
versions; fields that a version lacks have their defaults. If an older version has another shape (one coordinator key instead of
a list, topic names instead of topics), ``older_requests`` converts it to the canonical message.

Produce has a handwritten reader (``produce_request``), which does not copy the records. So have the newer versions of
OffsetCommit (``offset_commit``). ConsumerGroupHeartbeat requests without news are decoded once (``consumer_heartbeats``).
benchmarks/README.md, "What the fast paths are worth", has the gains.

Responses: the canonical message, in the requested version, as a frame. Handlers return the typed response. Frequent responses
are optimized (``success_encoder``). A Produce response without errors and a ConsumerGroupHeartbeat response without news
have handwritten encoders. The bytes of a shared OffsetCommit response are cached. A response of fixed-width fields is one
``pack``.

A response is sent as chunks. The chunks of a Fetch response are not joined: its records may be megabytes, or an unread slice of
a file. The first chunk is the frame's length and the response header (``frames``); the rest is the body from ``writers``. If an
older version has the same content in another shape, ``_REWRITES`` makes the object that its writer reads.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import skip_tagged_fields
from odradek.protocol.messages import Layout, load, messages
from odradek.protocol.older_requests import request_shape
from odradek.protocol.produce_request import (
    FIRST_BY_ID,
    FIRST_FLEXIBLE,
    Buffer,
    ProduceRequest,
    read_one_batch,
    read_produce_request,
)
from odradek.protocol.readers import compile_reader
from odradek.protocol.writers import Write, compile_fixed_width_encoder, compile_writer

Decoder = Callable[[Buffer, int], Any]


@cache
def request_decoder(api_key: ApiKey, version: int) -> Decoder:
    """Return ``decode(frame, position)``: the canonical request in a frame whose header v1 ends at ``position``.

    ``decode`` raises ``MalformedMessage`` only.
    """
    read = _make_decoder(api_key, version)

    def decode(frame: Buffer, position: int) -> Any:
        try:
            return read(frame, position)
        except MalformedMessage as error:
            raise MalformedMessage(f"{api_key.name} v{version}: {error.reason}") from None
        except Exception as error:  # noqa: BLE001  any exception of a decoder is the bytes' fault
            raise MalformedMessage(f"{api_key.name} v{version}: {type(error).__name__}: {error}") from None

    return _one_batch_first(decode, version) if api_key == ApiKey.PRODUCE and version >= FIRST_FLEXIBLE else decode


def _one_batch_first(decode: Decoder, version: int) -> Decoder:
    """Wrap ``decode`` for Produce requests, to save two calls for a single batch, as nearly all small requests have."""
    by_id = version >= FIRST_BY_ID

    def decode_one_batch(frame: Buffer, position: int) -> Any:
        if type(frame) is bytes:
            try:
                request = read_one_batch(frame, position, by_id)
            except (IndexError, struct.error, UnicodeDecodeError):
                # ``decode`` will report the error.
                request = None
            if request is not None:
                return request
        return decode(frame, position)

    return decode_one_batch


def _make_decoder(api_key: ApiKey, version: int) -> Decoder:
    if api_key == ApiKey.PRODUCE:
        return _make_produce_decoder(version)
    if api_key == ApiKey.OFFSET_COMMIT:
        from odradek.protocol.offset_commit import FIRST_FLEXIBLE as FIRST_FLEXIBLE_COMMIT  # 1.9 ms

        if version >= FIRST_FLEXIBLE_COMMIT:
            return _make_offset_commit_decoder(version)
    if api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
        from odradek.protocol.consumer_heartbeats import remembering  # 1.0 ms

        return remembering(_make_general_decoder(api_key, version))
    return _make_general_decoder(api_key, version)


def _make_general_decoder(api_key: ApiKey, version: int) -> Decoder:
    layout, canonical, rewrite = request_shape(api_key, version)
    read = compile_reader(layout, canonical)
    flexible = layout.flexible

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            # A large frame is a view of a buffer that will be overwritten.
            frame = bytes(frame)
        if flexible:
            position = skip_tagged_fields(frame, position)
        request, _ = read(frame, position)
        return request if rewrite is None else rewrite(request)

    return decode


def _make_produce_decoder(version: int) -> Decoder:
    flexible = version >= FIRST_FLEXIBLE

    def decode(frame: Buffer, position: int) -> ProduceRequest:
        if flexible:
            position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
        return read_produce_request(frame, position, version)

    return decode


def _make_offset_commit_decoder(version: int) -> Decoder:
    from odradek.protocol.offset_commit import read_offset_commit_request  # 1.9 ms

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            # A large frame is a view of a buffer that will be overwritten.
            frame = bytes(frame)
        return read_offset_commit_request(frame, skip_tagged_fields(frame, position), version)

    return decode


_HEADER_V0: Final = Struct(">ii").pack
_HEADER_V1: Final = Struct(">iib").pack
_INT32: Final = Struct(">i").pack

_WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})

# The coordinators keep this many shared responses.
_MOST_REMEMBERED: Final = 1024

Encoder = Callable[[int, Any], list[Any]]
# Returns None for a response that has errors, or may have some.
SuccessEncoder = Callable[[int, Any], "bytes | None"]


@cache
def response_encoder(api_key: ApiKey, version: int) -> Encoder:
    """Return ``encode(correlation_id, response)``: the frame with its length, as chunks of bytes or anything with a length."""
    layout, canonical, rewrite, flexible = response_shape(api_key, version)
    if rewrite is None:
        encode_in_one = compile_fixed_width_encoder(layout, canonical, tagged_header=flexible)
        if encode_in_one is not None:
            return encode_in_one
    write: Write = compile_writer(layout, canonical)
    carries_records = api_key in _WITH_RECORDS

    def encode(correlation_id: int, response: Any) -> list[Any]:
        chunks: list[Any] = [b""]
        write(chunks.append, response if rewrite is None else rewrite(response))
        size = sum(map(len, chunks)) + 4
        chunks[0] = _HEADER_V1(size + 1, correlation_id, 0) if flexible else _HEADER_V0(size, correlation_id)
        return chunks if carries_records else [b"".join(chunks)]

    return encode


def response_shape(api_key: ApiKey, version: int) -> tuple[Layout, Mapping[str, type[Any]], Callable[[Any], Any] | None, bool]:
    """Return the fields of a response in that version, the canonical classes for its writer, and whether it has header v1.

    The third item makes the object for the writer; None if the canonical response serves.
    """
    layout = load(api_key, version, "response")
    rewrite = _REWRITES.get((api_key, version))
    canonical = messages(api_key).classes["response"] if rewrite is None else {}
    # An ApiVersions response has header v0 in every version: the client may not know the flexible one (KIP-511).
    return layout, canonical, rewrite, layout.flexible and api_key != ApiKey.API_VERSIONS


def success_encoder(api_key: ApiKey, version: int) -> SuccessEncoder | None:
    """Return ``encode(correlation_id, response)``: the frame of a response without errors; None for APIs without one.

    ``encode`` returns None unless the response is seen to have no error code. Its bytes equal those of ``response_encoder``. A
    caller that gets them need not look for error codes, which takes as long as writing.
    """
    if api_key == ApiKey.OFFSET_COMMIT:
        return _remembering(response_encoder(api_key, version))
    if api_key == ApiKey.PRODUCE:
        return _appended(version)
    if api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
        from odradek.protocol.consumer_heartbeats import unchanged_frame  # 1.0 ms

        return unchanged_frame
    return None


def _appended(version: int) -> SuccessEncoder | None:
    """Return a handwritten encoder of Produce responses in which every partition appended its batch."""
    from odradek.protocol.produce_response import FIRST_WRITTEN, OneBatchWriter, body_if_all_appended  # 1.1 ms

    if version < FIRST_WRITTEN:
        return None

    def encode_appended(correlation_id: int, response: Any) -> bytes | None:
        body = body_if_all_appended(response, version)
        return None if body is None else _HEADER_V1(len(body) + 5, correlation_id, 0) + body

    return OneBatchWriter(version, encode_appended).write


def _remembering(encode: Encoder) -> SuccessEncoder:
    """Wrap ``encode``, so that a shared response is encoded once. Later frames differ only in the correlation id."""
    from odradek.protocol.accepted_commit import AcceptedCommit  # 1.3 ms

    # By identity; the reference to the response keeps its id unique. Values: the bytes before and after the correlation id.
    remembered: dict[int, tuple[Any, bytes, bytes]] = {}

    def encode_once(correlation_id: int, response: Any) -> bytes | None:
        if type(response) is not AcceptedCommit:
            return None
        known = remembered.get(id(response))
        if known is None:
            (frame,) = encode(correlation_id, response)
            if len(remembered) >= _MOST_REMEMBERED:
                remembered.clear()
            remembered[id(response)] = known = (response, frame[:4], frame[8:])
        _, before, behind = known
        return before + _INT32(correlation_id) + behind

    return encode_once


class _OneCoordinator:
    """FindCoordinator before version 4: the response for one key, at the top."""

    __slots__ = ("error_code", "error_message", "host", "node_id", "port", "throttle_time_ms")

    def __init__(self, response: Any) -> None:
        coordinator = response.coordinators[0]
        self.throttle_time_ms = response.throttle_time_ms
        self.error_code = coordinator.error_code
        self.error_message = coordinator.error_message
        self.node_id = coordinator.node_id
        self.host = coordinator.host
        self.port = coordinator.port


class _OneGroup:
    """OffsetFetch before version 8: the response for one group, at the top."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")

    def __init__(self, response: Any) -> None:
        group = response.groups[0]
        self.throttle_time_ms = response.throttle_time_ms
        self.error_code = group.error_code
        self.topics = group.topics


class _OneTransaction:
    """AddPartitionsToTxn before version 4: the response for one transaction, at the top."""

    __slots__ = ("results_by_topic_v3_and_below", "throttle_time_ms")

    def __init__(self, response: Any) -> None:
        self.throttle_time_ms = response.throttle_time_ms
        self.results_by_topic_v3_and_below = response.results_by_transaction[0].topic_results


_REWRITES: dict[tuple[ApiKey, int], Callable[[Any], Any]] = {
    **{(ApiKey.FIND_COORDINATOR, version): _OneCoordinator for version in range(4)},
    **{(ApiKey.OFFSET_FETCH, version): _OneGroup for version in range(1, 8)},
    **{(ApiKey.ADD_PARTITIONS_TO_TXN, version): _OneTransaction for version in range(4)},
}
