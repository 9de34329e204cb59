"""Codecs of large messages: the same as ``requests`` and ``responses`` give, in slices and within limits.

They serve every API but Produce, whose requests are records, and Fetch.
"""

from collections.abc import Callable, Generator
from functools import cache
from struct import Struct
from typing import Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.older_requests import older_shape
from odradek.protocol.responses import older_response
from odradek.protocol.schemas import load
from odradek.protocol.sliced_readers import ItemBudget, compile_sliced_reader
from odradek.protocol.sliced_writers import ResponseTooLarge, Room, compile_sliced_writer

__all__ = ["ResponseTooLarge", "Room", "sliced_decoder", "sliced_encoder"]

# Of a chunk of a response: a millisecond's copying.
_CHUNK_BYTES: Final = 1024 * 1024
_HEADER_V0: Final = Struct(">ii").pack
_HEADER_V1: Final = Struct(">iib").pack

SlicedDecoder = Callable[[bytes, int, int], Generator[None, Any, Any]]
SlicedEncoder = Callable[[int, Any, Room], Generator[None, Any, list[bytes]]]


@cache
def sliced_decoder(api_key: ApiKey, version: int) -> SlicedDecoder:
    """``decode(frame, position, most_items)``: a generator that returns the canonical request. Raises MalformedMessage only.

    ``most_items`` is what its arrays may have, all together.
    """
    layout = load(api_key, version, "request")
    canonical = messages(api_key).classes["request"]
    shape = older_shape(api_key, version)
    if shape is not None:
        own = {layout.name, *shape.reshaped}
        canonical = {name: of for name, of in canonical.items() if name not in own}
    read = compile_sliced_reader(layout, canonical)
    flexible = layout.flexible

    def decode(frame: bytes, position: int, most_items: int) -> Generator[None, Any, Any]:
        try:
            start = skip_tagged_fields(frame, position) if flexible else position
            request, _ = yield from read(frame, start, ItemBudget(most_items))
        except MalformedMessage as error:
            raise MalformedMessage(f"{api_key.name} v{version}: {error.reason}") from None
        except Exception as error:  # noqa: BLE001  whatever bytes can make a decoder raise, it is the bytes' fault
            raise MalformedMessage(f"{api_key.name} v{version}: {type(error).__name__}: {error}") from None
        return request if shape is None else shape.rewrite(request)

    return decode


@cache
def sliced_encoder(api_key: ApiKey, version: int) -> SlicedEncoder:
    """``encode(correlation_id, response, room)``: a generator that returns the frame with its length, as chunks.

    It raises ResponseTooLarge for more than there is room for.
    """
    layout = load(api_key, version, "response")
    rewrite = older_response(api_key, version)
    canonical = messages(api_key).classes["response"] if rewrite is None else {}
    flexible = layout.flexible and api_key != ApiKey.API_VERSIONS
    write = compile_sliced_writer(layout, canonical)

    def encode(correlation_id: int, response: Any, room: Room) -> Generator[None, Any, list[bytes]]:
        chunks: list[bytes] = [b""]
        yield from write(chunks.append, response if rewrite is None else rewrite(response), room)
        size = sum(map(len, chunks)) + 4
        chunks[0] = _HEADER_V1(size + 1, correlation_id, 0) if flexible else _HEADER_V0(size, correlation_id)
        return (yield from _joined(chunks))

    return encode


def _joined(chunks: list[bytes]) -> Generator[None, Any, list[bytes]]:
    """The same bytes in chunks of ``_CHUNK_BYTES``, or a little more. Takes from ``chunks`` what it has joined."""
    found = []
    first = size = 0
    for place, chunk in enumerate(chunks, 1):
        size += len(chunk)
        if size >= _CHUNK_BYTES:
            found.append(b"".join(chunks[first:place]))
            chunks[first:place] = [b""] * (place - first)
            first, size = place, 0
            yield
    if size:
        found.append(b"".join(chunks[first:]))
    return found
