"""Handwritten codecs for unchanged ConsumerGroupHeartbeats, the most frequent requests of a large group.

A member without news sends the same body until its epoch changes. Such requests are cached by their bytes. The response without
news is, in both versions,

    throttle time      int32
    error code         int16, 0
    error message      compact nullable string, null
    member id          compact nullable string
    epoch, interval    int32 each
    assignment         int8, -1 for null
    tags               none

All others use the compiled reader and writer. Tests compare their bytes with these.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from odradek.protocol.message_types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

# Longer requests are not cached. The cache takes a few MiB at most.
_LONGEST_REMEMBERED: Final = 512
_MOST_REMEMBERED: Final = 4096
# Length of the frame, correlation id, tags; throttle time, error code, error message, length of the member id plus one.
_BEFORE_ID: Final = Struct(">iibihbB").pack
# Epoch, interval, assignment, tags.
_AFTER_ID: Final = Struct(">iibb").pack
_FIXED_SIZE: Final = 4 + 1 + 4 + 2 + 1 + 1 + 4 + 4 + 1 + 1
# The longest id whose length takes one byte.
_LONGEST_ID: Final = 126


def remembering(
    decode: Callable[[bytes | memoryview, int], Any],
) -> Callable[[bytes | memoryview, int], ConsumerGroupHeartbeatRequest]:
    """Wrap ``decode``, so that equal bodies of requests without news are decoded once."""
    remembered: dict[bytes, ConsumerGroupHeartbeatRequest] = {}

    def decode_once(frame: bytes | memoryview, position: int) -> ConsumerGroupHeartbeatRequest:
        if len(frame) - position > _LONGEST_REMEMBERED:
            long: ConsumerGroupHeartbeatRequest = decode(frame, position)
            return long
        body = bytes(frame[position:])
        known = remembered.get(body)
        if known is not None:
            return known
        request: ConsumerGroupHeartbeatRequest = decode(frame, position)
        if request.topic_partitions is None and request.subscribed_topic_names is None:
            if len(remembered) >= _MOST_REMEMBERED:
                remembered.clear()
            remembered[body] = request
        return request

    return decode_once


def unchanged_frame(correlation_id: int, response: object) -> bytes | None:
    """Return the frame of a response without news; None for any other. HOT."""
    if type(response) is not ConsumerGroupHeartbeatResponse:
        return None
    throttle_time_ms, error_code, error_message, name, epoch, interval_ms, assignment = response
    if error_code != 0 or error_message is not None or assignment is not None or name is None:
        return None
    member_id = name.encode()
    length = len(member_id)
    if length > _LONGEST_ID:
        return None
    return b"".join(
        (
            _BEFORE_ID(_FIXED_SIZE + length, correlation_id, 0, throttle_time_ms, 0, 0, length + 1),
            member_id,
            _AFTER_ID(epoch, interval_ms, -1, 0),
        )
    )
