"""Reading TxnOffsetCommit and EndTxn by hand, since every transaction sends them: the flexible versions, from 3 on.

TxnOffsetCommit, request:

    transactional id   compact string
    group id           compact string
    producer id        int64, epoch int16
    generation         int32
    member id          compact string
    instance id        compact nullable string
    topics             array of names, each with partitions as in OffsetCommit (odradek.protocol.offset_commit)

EndTxn, request:

    transactional id   compact string
    producer id        int64, epoch int16
    committed          int8
    tags

Unknown tags are skipped (KIP-482). Tests compare this with kio's writers.
"""

import struct
from struct import Struct
from typing import Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.message_types.end_txn import EndTxnRequest
from odradek.protocol.message_types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.offset_commit import read_count, read_nullable_string, read_partitions, read_string

FIRST_FLEXIBLE: Final = 3

# Producer id and epoch, and the next field: the generation, or whether to commit.
_PRODUCER_AND_GENERATION: Final = Struct(">qhi").unpack_from
_PRODUCER_AND_RESULT: Final = Struct(">qhb").unpack_from
# Named tuples are made without their constructors, in a third of the time: all fields are given, in order.
_new: Final = tuple.__new__


def read_txn_offset_commit_request(frame: bytes, position: int) -> TxnOffsetCommitRequest:
    """The request whose body begins at ``position``. Raises MalformedMessage."""
    try:
        return _read_txn_offset_commit(frame, position)
    except (IndexError, struct.error):
        raise MalformedMessage("the request ends before its fields do") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a string that is not UTF-8: {error}") from None


def _read_txn_offset_commit(frame: bytes, position: int) -> TxnOffsetCommitRequest:
    transactional_id, position = read_string(frame, position, "the transactional id")
    group_id, position = read_string(frame, position, "the group id")
    producer_id, producer_epoch, generation_id = _PRODUCER_AND_GENERATION(frame, position)
    member_id, position = read_string(frame, position + 14, "the member id")
    group_instance_id, position = read_nullable_string(frame, position)
    count, position = read_count(frame, position)
    topics = []
    for _ in range(count):
        name, position = read_string(frame, position, "a topic's name")
        partitions, position = read_partitions(frame, position, TxnOffsetCommitRequestPartition)
        topics.append(_new(TxnOffsetCommitRequestTopic, (name, partitions)))
    if frame[position]:
        skip_tagged_fields(frame, position)
    return _new(
        TxnOffsetCommitRequest,
        (
            transactional_id,
            group_id,
            producer_id,
            producer_epoch,
            generation_id,
            member_id,
            group_instance_id,
            tuple(topics),
        ),
    )


def read_end_txn_request(frame: bytes, position: int) -> EndTxnRequest:
    """The request whose body begins at ``position``. Raises MalformedMessage."""
    try:
        transactional_id, position = read_string(frame, position, "the transactional id")
        producer_id, producer_epoch, committed = _PRODUCER_AND_RESULT(frame, position)
        if frame[position + 11]:
            skip_tagged_fields(frame, position + 11)
    except (IndexError, struct.error):
        raise MalformedMessage("the request ends before its fields do") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a string that is not UTF-8: {error}") from None
    return _new(EndTxnRequest, (transactional_id, producer_id, producer_epoch, committed != 0))
