"""The persistent state of a share partition, as values: between its leader, the persister and the share coordinator.

A share partition is one topic partition as one share group reads it. Below its start offset every record has been delivered.
``StateBatch`` tells the state of the records at and above it. Records in no batch are available, and were never delivered.

Source: KIP-932, ``server.share.persister`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled tuple's field
from typing import Final, NamedTuple
from uuid import UUID  # noqa: TC003  the type of a compiled tuple's field

from odradek.protocol.coordinator_records.share_states import StateBatch
from odradek.protocol.texts import uuid_text

__all__ = ["PartitionState", "SharePartitionKey", "StateBatch", "StateSummary"]

# A start offset that has not been chosen yet: the leader of the partition chooses it by ``share.auto.offset.reset``.
UNINITIALIZED_START_OFFSET: Final = -1
# A count that is not known: no record has been read, or the writer was a Kafka before 4.2.
UNINITIALIZED_DELIVERY_COMPLETE_COUNT: Final = -1
# ACKNOWLEDGED and ARCHIVED.
_COMPLETE: Final = (2, 4)


class SharePartitionKey(NamedTuple):
    """The group and the topic partition."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The text whose hash finds the share coordinator; also the key of a FindCoordinator request."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


class PartitionState(NamedTuple):
    """The stored state. ``delivery_complete_count`` counts the ACKNOWLEDGED and ARCHIVED records in ``batches``.

    ReadShareGroupState does not carry the count, so it is counted anew, here as in Kafka.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]

    @classmethod
    def counted(cls, state_epoch: int, leader_epoch: int, start_offset: int, batches: Sequence[StateBatch]) -> PartitionState:
        """Return the state with its count."""
        count = sum(batch.last_offset - batch.first_offset + 1 for batch in batches if batch.delivery_state in _COMPLETE)
        return cls(state_epoch, leader_epoch, start_offset, count, batches)


class StateSummary(NamedTuple):
    """The stored state without its batches. Without a stored state, the epochs are 0 and the others -1."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
