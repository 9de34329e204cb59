"""The state changes of transactions, as the coordinator writes them to ``__transaction_state``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metadata.topic_names import TRANSACTION_STATE_TOPIC
from odradek.coordinator.transaction.states import STATE_NAMES, TransactionState
from odradek.protocol.coordinator_records import TransactionLogKey, decode_transaction_key
from odradek.protocol.coordinator_records.transactions import decode_value
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.server import Broker as BrokerCore
    from odradek.protocol.records import Record
    from odradek.storage.log import Log

__tracebackhide__ = True

_READ_BYTES = 1024 * 1024


class TransactionWatch:
    """Reads what is appended from its making on, to the logs of one process of a broker (``core``). Loop thread only."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self._read_to = {index: log.log_end_offset for index, log in self._logs()}

    def changes(self) -> Iterator[tuple[str, dict[str, object]]]:
        """What has become of transactional ids since the last call: (event, fields)."""
        for index, log in self._logs():
            offset, end = self._read_to.get(index, 0), log.log_end_offset
            if offset < end:
                self._read_to[index] = end
                for record in _records(log, offset):
                    key = decode_transaction_key(record.key or b"")
                    if isinstance(key, TransactionLogKey):
                        yield _change(key, record.value)

    def _logs(self) -> Iterator[tuple[int, Log]]:
        for index, partition in self.core.partitions.of_topic(TRANSACTION_STATE_TOPIC).items():
            if partition.log is not None:
                yield index, partition.log


def _records(log: Log, offset: int) -> Iterator[Record]:
    while found := log.read(offset, _READ_BYTES, upper_offset=log.log_end_offset, min_one_batch=True):
        data = found.read()
        next_offset = offset
        for position, header in iter_batches(data):
            if not header.is_control:
                yield from (record for record in read_records(data, position) if record.offset >= offset)
            next_offset = header.next_offset
        if next_offset == offset:
            return
        offset = next_offset


def _change(key: TransactionLogKey, value: bytes | None) -> tuple[str, dict[str, object]]:
    if value is None:
        return "transactional id removed", {"transactional_id": key.transactional_id}
    state = decode_value(value)
    return f"transaction {STATE_NAMES[TransactionState(state.status)]}", {
        "transactional_id": key.transactional_id,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "partitions": sorted(f"{topic}-{index}" for topic, index in state.partitions),
    }
