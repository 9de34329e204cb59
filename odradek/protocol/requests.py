"""Decoding requests: the reader of the request's version makes the canonical message (``readers``).

Most fields have the same name in all versions; fields that a version lacks have their defaults. If an older version has another
shape (one coordinator key instead of a list, topic names instead of topics), ``older_requests`` converts it to the canonical
message.

Produce has a handwritten reader (``produce_request``), which does not copy the records. So have the newer versions of
OffsetCommit (``offset_commit``). ConsumerGroupHeartbeat requests without news are decoded once (``consumer_heartbeats``).
benchmarks/README.md, "What the fast paths are worth", has the gains.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.older_requests import older_shape
from odradek.protocol.produce_request import (
    FIRST_BY_ID,
    FIRST_FLEXIBLE,
    Buffer,
    ProduceRequest,
    read_one_batch,
    read_produce_request,
)
from odradek.protocol.readers import compile_reader
from odradek.protocol.schemas import load

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
        from odradek.protocol.offset_commit import FIRST_FLEXIBLE as FIRST_FLEXIBLE_COMMIT

        if version >= FIRST_FLEXIBLE_COMMIT:
            return _make_offset_commit_decoder(version)
    if api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
        from odradek.protocol.consumer_heartbeats import remembering

        return remembering(_make_general_decoder(api_key, version))
    return _make_general_decoder(api_key, version)


def _make_general_decoder(api_key: ApiKey, version: int) -> Decoder:
    layout = load(api_key, version, "request")
    canonical = messages(api_key).classes["request"]
    shape = older_shape(api_key, version)
    rewrite = None if shape is None else shape.rewrite
    if shape is not None:
        own = {layout.name, *shape.reshaped}
        canonical = {name: of for name, of in canonical.items() if name not in own}
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
    from odradek.protocol.offset_commit import read_offset_commit_request

    def decode(frame: Buffer, position: int) -> Any:
        if type(frame) is not bytes:
            # A large frame is a view of a buffer that will be overwritten.
            frame = bytes(frame)
        return read_offset_commit_request(frame, skip_tagged_fields(frame, position), version)

    return decode
