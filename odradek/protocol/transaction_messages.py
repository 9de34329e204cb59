"""Reading TxnOffsetCommit and EndTxn by hand, for every transaction has them: their flexible versions, from 3 on.

TxnOffsetCommit, request:

    transactional id   compact string
    group id           compact string
    producer id        int64, epoch int16
    generation         int32
    member id          compact string
    instance id        compact nullable string
    topics             array of names, each with partitions as OffsetCommit has them (odradek.protocol.offset_commit)

EndTxn, request:

    transactional id   compact string
    producer id        int64, epoch int16
    committed          int8
    tags

Unknown tags are skipped (KIP-482). Tests hold this against kio's writers.
"""

import struct
from collections.abc import Sequence
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
from odradek.protocol.varint import uvarint

FIRST_FLEXIBLE: Final = 3

# Producer id and epoch, and what of a request is behind them: the generation, or whether to commit.
_PRODUCER_AND_GENERATION: Final = Struct(">qhi").unpack_from
_PRODUCER_AND_RESULT: Final = Struct(">qhb").unpack_from
_FIRST_END_WITH_EPOCH: Final = 5
_ACCEPTED: Final = Struct(">ihB").pack
_ENDED: Final = Struct(">ihB").pack
_ENDED_WITH_EPOCH: Final = Struct(">ihqhB").pack
_NO_TIME: Final = b"\0\0\0\0"
_NO_TAGS: Final = b"\0"
# Named tuples are made without their constructors, in a third of the time: all fields are given, in their order.
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


def accepted_offsets_body(topics: Sequence[TxnOffsetCommitRequestTopic]) -> bytes:
    """The body of a TxnOffsetCommit response, of version 3 or later, that says that all offsets of ``topics`` are in."""
    chunks = [_NO_TIME, uvarint(len(topics) + 1)]
    for topic in topics:
        name = topic.name.encode()
        partitions = topic.partitions
        chunks += (uvarint(len(name) + 1), name, uvarint(len(partitions) + 1))
        chunks += [_ACCEPTED(partition.partition_index, 0, 0) for partition in partitions]
        chunks.append(_NO_TAGS)
    chunks.append(_NO_TAGS)
    return b"".join(chunks)


def ended_transaction_body(version: int, producer_id: int, producer_epoch: int) -> bytes:
    """The body of an EndTxn response without an error, of version 3 or later."""
    if version < _FIRST_END_WITH_EPOCH:
        return _ENDED(0, 0, 0)
    return _ENDED_WITH_EPOCH(0, 0, producer_id, producer_epoch, 0)
