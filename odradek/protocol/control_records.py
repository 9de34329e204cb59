"""Control batches: the markers that end a transaction in a partition (KIP-98).

A batch with the transactional and control attributes, with the producer's id and epoch, without sequence numbers, and with one
record:

    key     int16 version 0, int16 type: 0 abort, 1 commit
    value   int16 version 0, int32 coordinator epoch

Consumers do not deliver the record; they skip an unknown type.

Left out: the control records of KRaft's metadata log (leader change, snapshot header and footer, voters).
"""

from functools import lru_cache
from struct import Struct, error
from typing import Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import CONTROL_MASK, HEADER_SIZE, TRANSACTIONAL_MASK, assembled
from odradek.protocol.records import Record, build_batch

ABORT: Final = 0
COMMIT: Final = 1
_VERSION: Final = 0
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


def build_end_txn_marker(producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, timestamp_ms: int) -> bytes:
    """Build the control batch that commits or aborts a producer's transaction. Its offset is 0, which the log stamps."""
    record = _marker(coordinator_epoch, commit)
    return assembled(0, -1, TRANSACTIONAL_MASK | CONTROL_MASK, 1, timestamp_ms, producer_id, producer_epoch, [b"", record])


# A coordinator's epoch changes only with its leader.
@lru_cache(maxsize=256)
def _marker(coordinator_epoch: int, commit: bool) -> bytes:
    """Return the record. Its offset and timestamp are the batch's."""
    marker = Record(key=_KEY.pack(_VERSION, COMMIT if commit else ABORT), value=_VALUE.pack(_VERSION, coordinator_epoch))
    return build_batch([marker])[HEADER_SIZE:]


def read_control_record(record: Record) -> tuple[int, int]:
    """Return (type, coordinator epoch) of a control record. The epoch is -1 if the type is neither ABORT nor COMMIT.

    Later versions begin with the same fields. Raises MalformedMessage.
    """
    try:
        version, kind = _KEY.unpack_from(record.key or b"")
        if version < 0:
            raise MalformedMessage(f"a control record has the unknown version {version}")
        if kind not in (ABORT, COMMIT):
            return kind, -1
        version, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except error as problem:
        raise MalformedMessage("a control record ends early") from problem
    if version < 0:
        raise MalformedMessage(f"a transaction marker has the unknown version {version}")
    return kind, coordinator_epoch
