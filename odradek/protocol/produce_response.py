"""The body of a Produce response without errors, written by hand because it is the most frequent one.

For the flexible versions, 9 to 13. The bytes equal those of the general writer:

    topics             array of
        topic          compact string, or from version 13 on the 16 bytes of its id
        partitions     array of
            index      int32
            error      int16 0
            base offset, log append time, log start offset     int64 each
            record errors, error message, tags                 none
        tags
    throttle time      int32 0
    tags
"""

from struct import Struct
from typing import TYPE_CHECKING, Final
from uuid import UUID

from odradek.protocol.message_types.produce import PartitionProduceResponse, ProduceResponse
from odradek.protocol.produce_request import FIRST_BY_ID, FIRST_FLEXIBLE
from odradek.protocol.varint import SMALL_UVARINTS, uvarint

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_WRITTEN: Final = FIRST_FLEXIBLE
_PARTITION: Final = Struct(">ihqqq3s").pack
_NO_ERRORS: Final = b"\1\0\0"
_NO_TAGS: Final = b"\0"
_END: Final = b"\0\0\0\0\0"
# An array of one.
_ONE: Final = b"\2"
_MOST_HEADS: Final = 1024
# The bytes after the log start offset of the only partition.
_ONE_BATCH_END: Final = _NO_ERRORS + _NO_TAGS + _END
_ZERO_ID: Final = bytes(16)
# The current leader of a partition's response that names no leader.
NO_LEADER: Final = PartitionProduceResponse().current_leader


class OneBatchWriter:
    """Writes the response to a request of one appended batch, the usual case: 0.2 us, not 0.5.

    A producer names the same topics again and again. For each topic, the bytes before the partition are kept, and the packer of a
    frame with them.
    """

    __slots__ = ("_by_id", "_heads", "_write_other")

    def __init__(self, version: int, write_other: "Callable[[int, ProduceResponse], bytes | None]") -> None:
        self._write_other = write_other
        self._by_id = version >= FIRST_BY_ID
        # By name, or by the identity of the id: hashing a UUID takes as long as writing the rest.
        self._heads: dict[str | int, _Head] = {}

    def write(self, correlation_id: int, response: ProduceResponse) -> bytes | None:
        """Return the frame of a response of version 9 or later; for any other response, the result of ``write_other``."""
        topics, throttle_time_ms, node_endpoints = response
        if len(topics) != 1 or throttle_time_ms or node_endpoints:
            return self._write_other(correlation_id, response)
        topic_id, partitions, topic = topics[0]
        if len(partitions) != 1:
            return self._write_other(correlation_id, response)
        index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors, message, leader = partitions[0]
        if error_code or record_errors or message is not None or leader is not NO_LEADER:
            return self._write_other(correlation_id, response)
        known = self._heads.get(id(topic_id) if self._by_id else topic)
        if known is None:
            known = self._remember(topic_id, topic)
        return known.pack(
            known.frame_bytes,
            correlation_id,
            0,
            known.head,
            index,
            0,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            _ONE_BATCH_END,
        )

    def _remember(self, topic_id: UUID | None, topic: str) -> "_Head":
        name = topic.encode()
        named = (_ZERO_ID if topic_id is None else topic_id.bytes) if self._by_id else uvarint(len(name) + 1) + name
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        known = self._heads[id(topic_id) if self._by_id else topic] = _Head(topic_id, _ONE + named + _ONE)
        return known


class _Head:
    """The bytes from a topic to its partition, the packer of a frame with them, and the frame's length field, ``frame_bytes``."""

    __slots__ = ("_topic_id", "frame_bytes", "head", "pack")

    def __init__(self, topic_id: UUID | None, head: bytes) -> None:
        # Held, so that its identity stays unique.
        self._topic_id = topic_id
        self.head = head
        # The frame's length, correlation id and header tags; the head; index, error, offsets and time; the rest.
        frame = Struct(f">iib{len(head)}sihqqq{len(_ONE_BATCH_END)}s")
        self.pack: Callable[..., bytes] = frame.pack
        self.frame_bytes = frame.size - 4


def body_if_all_appended(response: ProduceResponse, version: int) -> bytes | None:
    """Return the body of a response of version 9 or later; None if a field has a value beyond those above."""
    if response.throttle_time_ms or response.node_endpoints:
        return None
    by_id = version >= FIRST_BY_ID
    topics = response.responses
    count = len(topics) + 1
    chunks = [SMALL_UVARINTS[count] if count <= 0x7F else uvarint(count)]
    append = chunks.append
    for topic_id, partitions, topic in topics:
        if by_id:
            append(_ZERO_ID if topic_id is None else topic_id.bytes)
        else:
            name = topic.encode()
            count = len(name) + 1
            append(SMALL_UVARINTS[count] if count <= 0x7F else uvarint(count))
            append(name)
        count = len(partitions) + 1
        append(SMALL_UVARINTS[count] if count <= 0x7F else uvarint(count))
        for index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors, message, leader in partitions:
            if error_code or record_errors or message is not None or leader is not NO_LEADER:
                return None
            append(_PARTITION(index, 0, base_offset, log_append_time_ms, log_start_offset, _NO_ERRORS))
        append(_NO_TAGS)
    append(_END)
    return b"".join(chunks)
