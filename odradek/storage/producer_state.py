"""What a partition knows of its idempotent producers (KIP-98): the last five batches of each, so that no retry is appended twice.

A producer id that is not known may begin with any sequence number: its records may have been deleted. Within an epoch sequence
numbers follow on, after 2^31-1 with 0; a new epoch begins with 0. A batch that equals one of the last five is answered with the
offsets that it got then.

Nothing is kept on disk: the log itself tells it all, from its start.

Left out: snapshots (.snapshot files), transactions and their markers, the verification of transactional appends.
"""

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.record_batch import BatchHeader

_BATCHES_KEPT = 5
_NO_SEQUENCE = -1
_SEQUENCE_MASK = 0x7FFFFFFF


class AppendedBatch(NamedTuple):
    """One of a producer's last batches, as the log has it. ``timestamp`` is its max timestamp, ms."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer id's state in one partition. ``batches`` are those of its epoch, oldest first."""

    __slots__ = ("batches", "epoch", "last_sequence", "last_timestamp")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_sequence = _NO_SEQUENCE
        self.last_timestamp = -1
        self.batches: list[AppendedBatch] = []


class ProducerStates:
    """The producers of one partition by their ids."""

    __slots__ = ("by_id",)

    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}

    def check(self, header: BatchHeader) -> AppendedBatch | None:
        """Whether a produced batch may be appended: None if so, or the batch that it repeats.

        KafkaError: INVALID_PRODUCER_EPOCH for an epoch that has been superseded, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap.
        """
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return None
        sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if sequence == (producer.last_sequence + 1) & _SEQUENCE_MASK:
                return None
            for batch in producer.batches:
                if batch.first_sequence == sequence and batch.last_sequence == header.last_sequence:
                    return batch
        elif header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {producer.epoch}, the record batch {header.producer_epoch}",
            )
        elif sequence == 0:
            return None
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {sequence} after"
            f" {producer.last_sequence} of epoch {producer.epoch}",
        )

    def record(self, header: BatchHeader, first_offset: int, timestamp: int) -> None:
        """Take note of a batch that is in the log at ``first_offset``; ``timestamp`` is its max timestamp there, ms."""
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        batches = producer.batches
        sequence = header.base_sequence
        delta = header.last_offset_delta
        producer.last_sequence = last_sequence = (sequence + delta) & _SEQUENCE_MASK
        batches.append(AppendedBatch(sequence, last_sequence, first_offset, first_offset + delta, timestamp))
        if len(batches) > _BATCHES_KEPT:
            del batches[0]
        producer.last_timestamp = timestamp

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have appended nothing for ``expiration_ms`` (``producer.id.expiration.ms``); how many."""
        expired = [key for key, producer in self.by_id.items() if now_ms - producer.last_timestamp >= expiration_ms]
        for key in expired:
            del self.by_id[key]
        return len(expired)
