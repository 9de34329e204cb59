"""The body of a Produce response in which every partition has taken its batch: by hand, for it comes most often.

Of the flexible versions, 9 to 13. Byte for byte what the general writer makes of such a response:

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
from typing import Final, TypeAlias

from odradek.protocol.produce_request import FIRST_FLEXIBLE
from odradek.protocol.varint import uvarint

# Index, base offset, log append time (-1 for CreateTime), log start offset.
AppendedPartition: TypeAlias = tuple[int, int, int, int]
# A topic as the request names it, and its partitions.
AppendedTopic: TypeAlias = tuple[str | bytes, list[AppendedPartition]]

FIRST_WRITTEN: Final = FIRST_FLEXIBLE
_PARTITION: Final = Struct(">ihqqq3s").pack
_NO_ERRORS: Final = b"\1\0\0"
_NO_TAGS: Final = b"\0"
_END: Final = b"\0\0\0\0\0"


def produce_response_body(topics: list[AppendedTopic]) -> bytes:
    """The body of a response of version 9 or later."""
    chunks = [uvarint(len(topics) + 1)]
    append = chunks.append
    for topic, partitions in topics:
        if isinstance(topic, bytes):
            append(topic)
        else:
            name = topic.encode()
            append(uvarint(len(name) + 1))
            append(name)
        append(uvarint(len(partitions) + 1))
        for index, base_offset, log_append_time_ms, log_start_offset in partitions:
            append(_PARTITION(index, 0, base_offset, log_append_time_ms, log_start_offset, _NO_ERRORS))
        append(_NO_TAGS)
    append(_END)
    return b"".join(chunks)
