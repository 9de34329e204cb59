"""Filters each batch in a clean: a batch stays, is replaced by one with fewer records, or is dropped.

A record is dropped if a later one has its key, if it is an expired tombstone, if its transaction was aborted, or if it has no
key. A retained record keeps its offset, and its batch keeps base offset, last offset and base sequence. A batch without records
is kept, as a header only, if it has the last sequence number of a known producer, or if a cleaned segment ends there. (Kafka
keeps only the last one of each clean. odradek.storage.log.segment_files explains the use of the others.)

A tombstone or marker expires ``delete.retention.ms`` after the first clean that found it (KIP-534). That time, the horizon, is
the batch's base timestamp in ms, with bit 6 of the attributes set. The records' timestamp deltas are relative to it. If the
horizon or a delta does not fit into 64 bits, the batch gets no horizon, and its tombstones stay.

Records retained from a message in format v0 or v1 are put into a batch, as Kafka does since 4.3. Their tombstones get a horizon
then. Only if an older broker has cleaned the log may they be dropped at once, by the age of their segment.

The filter tracks transactions from the log's first batch on (``CleanedTransactions``). A batch of an aborted transaction is
dropped. A marker may be dropped once no data of its transaction is left before it. One clean finds that out and notes a horizon
in the marker's batch. A later one, after ``delete.retention.ms``, drops the marker (KIP-534).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.protocol.compression import compress
from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.record_batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    read_header,
    sealed,
)
from odradek.protocol.records import Record, build_batch, read_records
from odradek.protocol.varint import read_varint, write_varint
from odradek.storage.cleaning.record_spans import OffsetMap, RecordSpan, legacy_spans, payload, spans
from odradek.storage.log.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions of a clean, which passes each batch in turn.

    ``kept_aborts`` collects the aborted transactions whose markers must stay in the index.
    """

    __slots__ = ("_aborted", "_committed", "_has_data", "_upcoming", "kept_aborts")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take ``aborted``, all aborted transactions with records in the part to be read."""
        self._upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        # Aborted transactions that have begun, by producer id; the producers with a batch in them; and the producers with data in
        # a transaction that is not aborted.
        self._aborted: dict[int, AbortedTransaction] = {}
        self._has_data: set[int] = set()
        self._committed: set[int] = set()
        self.kept_aborts: list[AbortedTransaction] = []

    @property
    def has_open(self) -> bool:
        """Return whether a transaction with data has not met its marker yet."""
        return bool(self._committed or self._has_data)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch of data belongs to an aborted transaction, and can be dropped."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._has_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, batch: bytes | memoryview) -> bool:
        """Return whether no data of the transaction that a control batch ends is left. Raises MalformedMessage."""
        self._begin_up_to(header.last_offset)
        if not header.record_count:
            # An empty control batch was spent before, and was kept for its producer's epoch.
            return True
        record = next(read_records(batch))
        try:
            kind, _ = read_control_record(record)
        except MalformedMessage:
            return False
        producer_id = header.producer_id
        if kind == ABORT:
            aborted = self._aborted.pop(producer_id, None)
            if aborted is None or producer_id not in self._has_data:
                return True
            self._has_data.discard(producer_id)
            self.kept_aborts.append(aborted)
            return False
        if kind == COMMIT:
            is_spent = producer_id not in self._committed
            self._committed.discard(producer_id)
            return is_spent
        return False

    def _begin_up_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[-1].first_offset <= offset:
            aborted = upcoming.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)


DELETE_HORIZON_MASK = 0x40
GONE = b""
_NO_TIMESTAMP = -1
_MIN_INT64 = -(1 << 63)
_MAX_INT64 = (1 << 63) - 1


class LastRecord(NamedTuple):
    """A producer's batch to keep: the one that ends with ``last_data_offset``; if that is -1, its epoch's marker."""

    last_data_offset: int
    producer_epoch: int


class BatchFilter:
    """Decides batch by batch, in the order of the log."""

    __slots__ = (
        "_horizon_ms",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
        "drops_legacy_tombstones",
        "kept_records",
        "keyless_records",
        "read_records",
        "upper_offset",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """Take ``last_records``, those of the known producers, by producer id."""
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        # The end of the segments that are merged into one. A batch that ends there stays, to mark the end of the new segment.
        self.upper_offset = -1
        # True if tombstones in formats v0 and v1 have expired in the current segment.
        self.drops_legacy_tombstones = False
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self.read_records = 0
        self.kept_records = 0
        self.keyless_records = 0

    def apply(self, header: BatchHeader, batch: memoryview) -> bytes | None:
        """Return None if ``batch`` stays, or else its replacement, which may be GONE. Raises MalformedMessage."""
        if header.magic != MAGIC:
            return self._filter_legacy_records(header, batch)
        self.read_records += header.record_count
        if header.attributes & DELETE_HORIZON_MASK:
            is_over, needs_horizon = header.base_timestamp <= self._now_ms, False
        else:
            is_over, needs_horizon = False, True
        if header.is_control:
            is_spent = self._transactions.is_spent(header, batch)
            if (is_spent and is_over) or not header.record_count:
                return self._emptied(header)
            self.kept_records += header.record_count
            if not (is_spent and needs_horizon):
                return None
            data = payload(header, batch)
            return _with_horizon(header, data, spans(header, data), self._horizon_ms)
        if self._transactions.is_aborted(header) or not header.record_count:
            return self._emptied(header)
        return self._filter_records(header, batch, is_over=is_over, needs_horizon=needs_horizon)

    def take_kept_aborts(self) -> list[AbortedTransaction]:
        """Return, and clear, the aborted transactions whose markers were kept, as some of their data may be left."""
        taken = self._transactions.kept_aborts
        self._transactions.kept_aborts = []
        return taken

    def _filter_records(self, header: BatchHeader, batch: memoryview, *, is_over: bool, needs_horizon: bool) -> bytes | None:
        data = payload(header, batch)
        found = spans(header, data)
        kept, has_tombstones = self._kept(header.base_offset, found, is_over=is_over)
        if not kept:
            return self._emptied(header)
        self.kept_records += len(kept)
        rebuilt = _with_horizon(header, data, kept, self._horizon_ms) if has_tombstones and needs_horizon else None
        if rebuilt is not None or len(kept) == len(found):
            return rebuilt
        return _rebuilt(header, data, kept)

    def _filter_legacy_records(self, header: BatchHeader, message: memoryview) -> bytes | None:
        records = list(read_legacy_records(header, message))
        self.read_records += len(records)
        found, has_tombstones = self._kept(
            header.base_offset, legacy_spans(header, records), is_over=self.drops_legacy_tombstones
        )
        if not found:
            return self._emptied(header)
        self.kept_records += len(found)
        offsets = {header.base_offset + span.offset_delta for span in found}
        kept = [Record(*record) for record in records if record[0] in offsets]
        batch = build_batch(
            kept, base_offset=kept[0].offset, compression=header.compression, timestamp_type=header.timestamp_type
        )
        converted = read_header(batch)
        reach = header.last_offset - converted.last_offset if header.next_offset == self.upper_offset else 0
        if not has_tombstones and not reach:
            return batch
        converted = converted._replace(last_offset_delta=converted.last_offset_delta + reach)
        data = payload(converted, batch)
        found = spans(converted, data)
        rebuilt = _with_horizon(converted, data, found, self._horizon_ms) if has_tombstones else None
        return rebuilt or _rebuilt(converted, data, found)

    def _kept(self, base_offset: int, found: list[RecordSpan], *, is_over: bool) -> tuple[list[RecordSpan], bool]:
        """Return the retained records, and whether there are tombstones among them. Tombstones are dropped if ``is_over``."""
        kept: list[RecordSpan] = []
        has_tombstones = False
        last_of = self._offsets.get
        latest_offset = self._offsets.latest_offset
        for span in found:
            delta, key, has_value, *_ = span
            offset = base_offset + delta
            if offset <= latest_offset:
                if key is None:
                    self.keyless_records += 1
                    continue
                if offset < last_of(key) or (is_over and not has_value):
                    continue
            if not has_value:
                has_tombstones = True
            kept.append(span)
        return kept, has_tombstones

    def _emptied(self, header: BatchHeader) -> bytes | None:
        if self._is_last_of_producer(header):
            return _empty(header) if header.record_count else None
        if header.next_offset != self.upper_offset:
            return GONE
        # A last batch's timestamp shows when its producer was last active. Here it would suggest that records are still there.
        has_timestamp = header.record_count or header.max_timestamp != _NO_TIMESTAMP
        return _empty(header._replace(max_timestamp=_NO_TIMESTAMP)) if has_timestamp else None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Return whether a batch must be kept for its header's information on its producer."""
        last = self._last_records.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _empty(header: BatchHeader) -> bytes:
    """Return the batch without its records and without their horizon."""
    return _finished(
        header._replace(
            magic=MAGIC,
            attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_MASK),
            base_timestamp=_NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )


def _rebuilt(header: BatchHeader, data: bytes, kept: list[RecordSpan]) -> bytes:
    """Return the batch with the ``kept`` records. ``data`` is its records' payload."""
    records = b"".join([data[span.start : span.end] for span in kept])
    header = header._replace(max_timestamp=_max_timestamp(header, data, kept), record_count=len(kept))
    return _finished(header, compress(header.compression, records))


def _with_horizon(header: BatchHeader, data: bytes, kept: list[RecordSpan], horizon_ms: int) -> bytes | None:
    """Do ``_rebuilt`` with a horizon; None if the horizon, or its distance to a record, does not fit 64 bits."""
    records = _moved(header, data, kept, horizon_ms) if horizon_ms <= _MAX_INT64 else None
    if records is None:
        return None
    header = header._replace(
        attributes=header.attributes | DELETE_HORIZON_MASK,
        base_timestamp=horizon_ms,
        max_timestamp=_max_timestamp(header, data, kept),
        record_count=len(kept),
    )
    return _finished(header, compress(header.compression, records))


def _max_timestamp(header: BatchHeader, data: bytes, kept: list[RecordSpan]) -> int:
    if header.timestamp_type == LOG_APPEND_TIME:
        return header.max_timestamp
    return header.base_timestamp + max(read_varint(data, span.timestamp_at, 64)[0] for span in kept)


def _moved(header: BatchHeader, data: bytes, kept: list[RecordSpan], base_timestamp: int) -> bytes | None:
    """Return the records with timestamps relative to ``base_timestamp``; None if one is too far from it."""
    out = bytearray()
    for span in kept:
        timestamp_delta, rest = read_varint(data, span.timestamp_at, 64)
        timestamp = header.base_timestamp + timestamp_delta
        if header.timestamp_type == LOG_APPEND_TIME:
            timestamp = header.max_timestamp
        if timestamp - base_timestamp < _MIN_INT64:
            return None
        body = bytearray(data[span.timestamp_at - 1 : span.timestamp_at])
        write_varint(body, timestamp - base_timestamp)
        body += data[rest : span.end]
        write_varint(out, len(body))
        out += body
    return bytes(out)


def _finished(header: BatchHeader, records: bytes) -> bytes:
    """Return ``header`` and ``records`` as a batch, with its length and CRC."""
    return sealed(HEADER.pack(*header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records))), records)
