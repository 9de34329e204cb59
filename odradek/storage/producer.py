"""What a partition keeps of one producer id."""

from typing import Final

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
    """One producer id's state in one partition. ``batches`` are those of its epoch, oldest first.

    ``transaction_start`` is the first offset of its open transaction, -1 without one; ``coordinator_epoch`` is that of its last
    marker, -1 before one.
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
    """The coordinator is being asked whether a producer's transaction has this partition.

    ``lowest_sequence`` is the lowest sequence number refused meanwhile: higher ones have to wait for it.
    """

    __slots__ = ("asked_ms", "epoch", "lowest_sequence", "starts_at_0")

    def __init__(self, epoch: int, sequence: int, starts_at_0: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.starts_at_0 = starts_at_0
        self.asked_ms = now_ms
