"""The persister: reads and writes the state of a share partition at its share coordinator (``coordination.share_persister``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.share.state import PartitionState, SharePartitionKey, StateBatch
    from odradek.protocol.errors import KafkaError
    from odradek.timing.reply import Reply


class SharePersister(Protocol):
    """The share coordinator of any share partition, here or on another broker. Kafka's name is Persister."""

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Reply[PartitionState | KafkaError]:
        """Read the state, as the leader of the partition in ``leader_epoch``."""

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Reply[KafkaError | None]:
        """Write changed batches, and the start offset."""
