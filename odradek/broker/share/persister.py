"""The persister: reads and writes the state of a share partition at its share coordinator (``coordination.share_persister``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.share.state import PartitionState, SharePartitionKey, StateBatch


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


class NoSharePersister:
    """The persister of a broker without a share coordinator: share partitions cannot be loaded."""

    def read(self, *_: object) -> Reply[Any]:
        """Refuse: COORDINATOR_NOT_AVAILABLE."""
        reply: Reply[Any] = Reply()
        reply.complete(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker has no share coordinator"))
        return reply

    write = read
