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
from typing import Final

from odradek.protocol.message_types.produce import PartitionProduceResponse, ProduceResponse
from odradek.protocol.produce_request import FIRST_BY_ID, FIRST_FLEXIBLE
from odradek.protocol.varint import uvarint

FIRST_WRITTEN: Final = FIRST_FLEXIBLE
_PARTITION: Final = Struct(">ihqqq3s").pack
_NO_ERRORS: Final = b"\1\0\0"
_NO_TAGS: Final = b"\0"
_END: Final = b"\0\0\0\0\0"
_ZERO_ID: Final = bytes(16)
_NO_LEADER: Final = PartitionProduceResponse().current_leader
# Named tuples are made without their constructors, in a third of the time: all fields are given, in their order.
_new: Final = tuple.__new__


def appended(index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> PartitionProduceResponse:
    """The response for a partition that appended its batch; the log append time is -1 for CreateTime."""
    return _new(PartitionProduceResponse, (index, 0, base_offset, log_append_time_ms, log_start_offset, (), None, _NO_LEADER))


def body_if_all_appended(response: ProduceResponse, version: int) -> bytes | None:
    """The body of a response of version 9 or later; None if a field has a value beyond those above."""
    if response.throttle_time_ms or response.node_endpoints:
        return None
    by_id = version >= FIRST_BY_ID
    chunks = [uvarint(len(response.responses) + 1)]
    append = chunks.append
    for topic_id, partitions, topic in response.responses:
        if by_id:
            append(_ZERO_ID if topic_id is None else topic_id.bytes)
        else:
            name = topic.encode()
            append(uvarint(len(name) + 1))
            append(name)
        append(uvarint(len(partitions) + 1))
        for index, error_code, base_offset, log_append_time_ms, log_start_offset, record_errors, message, leader in partitions:
            if error_code or record_errors or message is not None or leader is not _NO_LEADER:
                return None
            append(_PARTITION(index, 0, base_offset, log_append_time_ms, log_start_offset, _NO_ERRORS))
        append(_NO_TAGS)
    append(_END)
    return b"".join(chunks)
