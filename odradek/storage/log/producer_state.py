"""The producers of a partition (KIP-98): the last five batches of each, and the open transactions.

An unknown producer id may begin with any sequence number, as its records may have been deleted. Within an epoch, sequence numbers
are consecutive; after 2^31-1 comes 0. A new epoch begins with 0, even if a marker has begun it. A batch that equals one of the
last five is a duplicate, and is answered with the original's offsets.

A transaction begins with a producer's first transactional batch, and ends with a marker of its coordinator. The first batch is
appended only after the coordinator has confirmed the partition (KIP-890). Until it answers, there is a ``Verification``. An
appended batch removes it, and so does the marker of the verified transaction: a confirmation from before that marker must not
begin a transaction after it.

A power loss may remove a marker, and leave the transaction open. It cannot continue. A coordinator gives a producer a later epoch
only when all markers of the earlier one are written. And from transaction version 2 on, each transaction has its own epoch, and
its marker the next one (KIP-890). So a batch of a later epoch, or a commit of a later transaction, may find a transaction that is
``left_open``. It is aborted before them (``CoordinatorAppends``): whether the lost marker was a commit is unknown, and aborted
records must never be read. Kafka makes its records part of the later transaction.

A marker counts for appends at once. For readers of committed records it counts only when it is replicated, as it may be lost with
its leader, and the next leader may have another one.

Its snapshots, and its restoration from the log, are in ``producer_restore``. Like Kafka's, a
snapshot does not tell which markers are replicated.
"""

from collections import deque
from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import TRANSACTIONAL_MASK, BatchHeader
from odradek.storage.log.transaction_index import AbortedTransaction

NO_SEQUENCE: Final = -1


class AppendedBatch:
    """One of a producer's last batches. ``timestamp`` is its max timestamp, ms."""

    __slots__ = ("first_offset", "first_sequence", "last_offset", "last_sequence", "timestamp")

    def __init__(self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp: int) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = last_sequence
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.timestamp = timestamp


class Producer:
    """One producer id's state in one partition. ``batches`` has the last batches of its epoch, oldest first.

    ``transaction_start`` is the first offset of its open transaction, -1 without one. ``coordinator_epoch`` is its last marker's,
    -1 before the first.
    """

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_sequence", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_sequence = NO_SEQUENCE
        self.last_timestamp = -1
        self.transaction_start = -1
        self.batches: list[AppendedBatch] = []

    def begin_epoch(self, epoch: int) -> None:
        """Begin another epoch, whose first sequence number is 0."""
        self.epoch = epoch
        self.last_sequence = NO_SEQUENCE
        self.batches = []


class Verification:
    """A pending request to the coordinator, which must confirm the partition for a producer's transaction.

    ``lowest_sequence`` is the lowest sequence number refused meanwhile: higher ones must wait for it.
    """

    __slots__ = ("asked_ms", "epoch", "lowest_sequence", "starts_at_0")

    def __init__(self, epoch: int, sequence: int, starts_at_0: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.starts_at_0 = starts_at_0
        self.asked_ms = now_ms


BATCHES_KEPT: Final = 5
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_MAX_EPOCH: Final = 0x7FFF
# From this transaction version on, every transaction has its own epoch (KIP-890).
_EPOCH_PER_TRANSACTION: Final = 2


class ProducerStates:
    """The producers of one partition, by id. ``open_transactions`` maps first offsets to producer ids, ascending."""

    __slots__ = ("_ended", "_verifications", "by_id", "open_transactions")

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}
        self.open_transactions: dict[int, int] = {}
        self._verifications: dict[int, Verification] = {}
        # Transactions whose markers may not be replicated yet: (the marker's offset, the transaction's first offset).
        self._ended: deque[tuple[int, int]] = deque()

    @property
    def first_open_offset(self) -> int | None:
        """Return the first offset of the oldest open transaction."""
        return next(iter(self.open_transactions)) if self.open_transactions else None

    def settle(self, high_watermark: int) -> None:
        """End the transactions with markers below ``high_watermark`` for good, as these markers are replicated."""
        ended = self._ended
        while ended and ended[0][0] < high_watermark:
            ended.popleft()

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of the oldest transaction that is open or has no marker below ``high_watermark``.

        A marker that is not replicated may be lost with its leader and replaced by another one.
        """
        if not self._ended:
            return self.first_open_offset
        self.settle(high_watermark)
        offsets = [first_offset for _, first_offset in self._ended]
        if self.open_transactions:
            offsets.append(next(iter(self.open_transactions)))
        return min(offsets) if offsets else None

    def check(self, header: BatchHeader) -> AppendedBatch | None:
        """Check a produced batch. Return None if it may be appended, or the batch that it repeats.

        KafkaError: INVALID_PRODUCER_EPOCH for a superseded epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap,
        INVALID_TXN_STATE for a batch outside of the producer's open transaction.
        """
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            asked = self._verifications.get(header.producer_id)
            if asked is not None and header.base_sequence > asked.lowest_sequence:
                raise _ahead(header, asked.lowest_sequence)
            return None
        sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if sequence == (producer.last_sequence + 1) & _SEQUENCE_MASK:
                if producer.transaction_start >= 0:
                    _ensure_transactional(header)
                return None
            duplicate = _duplicate(producer, header)
            if duplicate is not None:
                return duplicate
        elif header.producer_epoch < producer.epoch:
            raise _superseded(header.producer_id, header.producer_epoch, producer)
        elif sequence == 0:
            if producer.transaction_start >= 0:
                _ensure_transactional(header)
            return None
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {sequence} does not follow"
            f" {producer.last_sequence} of epoch {producer.epoch}",
        )

    def check_transactional(self, header: BatchHeader, is_verified: bool) -> AppendedBatch | None:
        """Check a transactional batch. ``is_verified``: the coordinator has confirmed the partition.

        KafkaError: as for ``check``, and INVALID_TXN_STATE if the batch would begin an unverified transaction.
        """
        producer = self.by_id.get(header.producer_id)
        if producer is not None:
            duplicate = _duplicate(producer, header)
            if duplicate is not None:
                return duplicate
        if not is_verified and self.needs_verification(header.producer_id, header.producer_epoch):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the record batch is not part of an ongoing transaction")
        asked = self._verifications.get(header.producer_id)
        if asked is not None and (
            header.base_sequence > asked.lowest_sequence
            or (asked.starts_at_0 and header.base_sequence and (producer is None or not producer.batches))
        ):
            raise _ahead(header, 0 if asked.starts_at_0 else asked.lowest_sequence)
        return self.check(header)

    def needs_verification(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a transactional batch would begin a transaction here. KafkaError: INVALID_PRODUCER_EPOCH."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            return True
        if producer_epoch < producer.epoch:
            raise _superseded(producer_id, producer_epoch, producer)
        return producer.transaction_start < 0 or producer.epoch != producer_epoch

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, starts_at_0: bool, now_ms: int
    ) -> Verification:
        """Note that the coordinator is asked. ``starts_at_0``: the client begins each transaction with a new epoch.

        ``sequence`` is the batch's first sequence number, or NO_SEQUENCE for a batch that the broker writes. A batch that is
        resent after later ones is also verified, but holds up no other batch.
        """
        producer = self.by_id.get(producer_id)
        if producer is not None and producer.epoch == producer_epoch and _is_behind(sequence, producer):
            return Verification(producer_epoch, sequence, starts_at_0, now_ms)
        found = self._verifications.get(producer_id)
        if found is None:
            found = Verification(producer_epoch, sequence, starts_at_0, now_ms)
            self._verifications[producer_id] = found
        elif producer_epoch > found.epoch:
            found.epoch = producer_epoch
            found.lowest_sequence = sequence
        elif producer_epoch == found.epoch:
            found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def is_verifying(self, producer_id: int, producer_epoch: int, verification: Verification) -> bool:
        """Return whether ``verification`` is still under way: no marker and no batch has ended it.

        KafkaError: INVALID_PRODUCER_EPOCH if it has become that of a later epoch, which this batch must not end.
        """
        if self._verifications.get(producer_id) is not verification:
            return False
        if producer_epoch < verification.epoch:
            reason = f"producer {producer_id}: epoch {producer_epoch} is older than {verification.epoch}, which is being verified"
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        return True

    def check_internal(self, producer_id: int, producer_epoch: int) -> None:
        """Check a batch that the broker writes for a producer: it has an epoch and no sequence number.

        KafkaError: INVALID_PRODUCER_EPOCH.
        """
        producer = self.by_id.get(producer_id)
        if producer is not None and producer_epoch < producer.epoch:
            raise _superseded(producer_id, producer_epoch, producer)

    def record(self, header: BatchHeader, first_offset: int, timestamp: int) -> None:
        """Note a batch that was appended at ``first_offset``; ``timestamp`` is its max timestamp there, ms."""
        last_offset = first_offset + header.last_offset_delta
        is_transactional = header.attributes & TRANSACTIONAL_MASK != 0
        self._record(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            first_offset,
            last_offset,
            timestamp,
            is_transactional,
        )

    def record_internal(self, producer_id: int, producer_epoch: int, first_offset: int, last_offset: int, timestamp: int) -> None:
        """Note a batch that the broker has written for a producer's transaction."""
        self._record(producer_id, producer_epoch, NO_SEQUENCE, first_offset, last_offset, timestamp, True)

    def _record(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        is_transactional: bool,
    ) -> None:
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(producer_epoch)
        elif producer.epoch != producer_epoch:
            producer.begin_epoch(producer_epoch)
        batches = producer.batches
        last_sequence = (sequence + last_offset - first_offset) & _SEQUENCE_MASK if sequence >= 0 else NO_SEQUENCE
        producer.last_sequence = last_sequence
        batches.append(AppendedBatch(sequence, last_sequence, first_offset, last_offset, timestamp))
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        producer.last_timestamp = timestamp
        if is_transactional:
            self._verifications.pop(producer_id, None)
            if producer.transaction_start < 0:
                producer.transaction_start = first_offset
                self.open_transactions[first_offset] = producer_id

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Check the marker with which a coordinator ends a producer's transaction.

        KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED. From transaction version 2 on, a marker brings a new
        epoch. The current epoch is accepted only for a repeated marker, or if it is the last possible epoch.
        """
        producer = self.by_id.get(producer_id)
        if producer is None:
            return
        if producer_epoch < producer.epoch or (
            transaction_version >= _EPOCH_PER_TRANSACTION
            and producer_epoch == producer.epoch
            and producer.transaction_start >= 0
            and producer_epoch != _MAX_EPOCH
        ):
            raise _superseded(producer_id, producer_epoch, producer)
        if coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id}: coordinator epoch {coordinator_epoch} is older than {producer.coordinator_epoch}",
            )

    def left_open(self, producer_id: int, oldest_epoch: int) -> Producer | None:
        """Return the producer if the marker of its open transaction is lost, that is, if its epoch is below ``oldest_epoch``."""
        producer = self.by_id.get(producer_id)
        if producer is None or producer.transaction_start < 0 or producer.epoch >= oldest_epoch:
            return None
        return producer

    def record_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        offset: int,
        timestamp: int,
        transaction_version: int = 0,
    ) -> AbortedTransaction | None:
        """Note a marker appended at ``offset``. Return the aborted transaction if it has records, or None.

        The marker also ends a pending verification for its transaction. From transaction version 2 on, it has the epoch of the
        producer's next transaction, whose verification continues.
        """
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(producer_epoch)
        elif producer.epoch != producer_epoch:
            producer.begin_epoch(producer_epoch)
        first_offset = producer.transaction_start
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.transaction_start = -1
        asked = self._verifications.get(producer_id)
        if asked is not None and asked.epoch <= producer_epoch - (transaction_version >= _EPOCH_PER_TRANSACTION):
            del self._verifications[producer_id]
        if first_offset < 0:
            return None
        del self.open_transactions[first_offset]
        self._ended.append((offset, first_offset))
        if commit:
            return None
        oldest = self.first_open_offset
        return AbortedTransaction(producer_id, first_offset, offset, offset + 1 if oldest is None else oldest)

    def note_epoch(self, producer_id: int, producer_epoch: int, timestamp: int) -> None:
        """Note the epoch of an emptied control batch whose marker was cleaned away."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(producer_epoch)
        elif producer.epoch != producer_epoch:
            producer.begin_epoch(producer_epoch)
        producer.last_timestamp = timestamp

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Drop producers idle for ``expiration_ms`` (``producer.id.expiration.ms``). Return their number.

        Producers with an open transaction are kept.
        """
        expired = [
            key
            for key, producer in self.by_id.items()
            if now_ms - producer.last_timestamp >= expiration_ms and producer.transaction_start < 0
        ]
        for key in expired:
            del self.by_id[key]
        for key, asked in list(self._verifications.items()):
            if now_ms - asked.asked_ms >= expiration_ms:
                del self._verifications[key]
        return len(expired)


def _ahead(header: BatchHeader, lowest_sequence: int) -> KafkaError:
    """Return the error for a batch after an unconfirmed one, which its producer will send again."""
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id}: sequence {header.base_sequence} precedes {lowest_sequence}, which was refused",
    )


def _duplicate(producer: Producer, header: BatchHeader) -> AppendedBatch | None:
    """Return the batch with the same epoch and sequence numbers, if it is one of the last."""
    if header.producer_epoch == producer.epoch:
        for batch in producer.batches:
            if batch.first_sequence == header.base_sequence and batch.last_sequence == header.last_sequence:
                return batch
    return None


def _is_behind(sequence: int, producer: Producer) -> bool:
    """Return whether the producer has appended batches with that sequence number or later ones."""
    return producer.last_sequence >= 0 and (producer.last_sequence - sequence) & _SEQUENCE_MASK <= _SEQUENCE_MASK >> 1


def _ensure_transactional(header: BatchHeader) -> None:
    if not header.attributes & TRANSACTIONAL_MASK:
        reason = f"producer {header.producer_id} has an open transaction, but the record batch is not part of it"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, reason)


def _superseded(producer_id: int, producer_epoch: int, producer: Producer) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} has epoch {producer.epoch}, the request has {producer_epoch}"
    )
