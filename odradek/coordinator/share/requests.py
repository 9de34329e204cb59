"""The operations on one share partition, as values: from a handler or the persister to the shard, here or on another broker.

``decide`` is the operation for the runtime. Its outcome is a KafkaError, or the value named below:

    InitializeState   None
    ReadState         PartitionState
    WriteState        None
    DeleteState       None
    ReadStateSummary  StateSummary
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled tuple's field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from odradek.coordinator.share.state import SharePartitionKey, StateBatch  # noqa: TC001  the types of compiled tuples' fields

if TYPE_CHECKING:
    from odradek.coordinator.runtime.result import CoordinatorResult
    from odradek.coordinator.share.share_shard import ShareShard
    from odradek.coordinator.share.state import PartitionState, StateSummary
    from odradek.protocol.errors import KafkaError


class InitializeState(NamedTuple):
    """Begin a new state. ``start_offset`` -1 leaves the choice to the leader of the partition."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int

    def decide(self, shard: ShareShard) -> CoordinatorResult[KafkaError | None]:
        """Decide on ``shard``."""
        return shard.initialize(*self)


class ReadState(NamedTuple):
    """Read the state, as the leader of ``leader_epoch``."""

    key: SharePartitionKey
    leader_epoch: int

    def decide(self, shard: ShareShard) -> CoordinatorResult[PartitionState | KafkaError]:
        """Decide on ``shard``."""
        return shard.read(*self)


class WriteState(NamedTuple):
    """Change the state."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]

    def decide(self, shard: ShareShard) -> CoordinatorResult[KafkaError | None]:
        """Decide on ``shard``."""
        return shard.write(*self)


class DeleteState(NamedTuple):
    """Delete the state."""

    key: SharePartitionKey

    def decide(self, shard: ShareShard) -> CoordinatorResult[KafkaError | None]:
        """Decide on ``shard``."""
        return shard.delete(self.key)


class ReadStateSummary(NamedTuple):
    """Read the state without its batches. The leader epoch is not compared."""

    key: SharePartitionKey
    leader_epoch: int

    def decide(self, shard: ShareShard) -> CoordinatorResult[StateSummary | KafkaError]:
        """Decide on ``shard``."""
        return shard.read_summary(self.key)


ShareStateRequest: TypeAlias = InitializeState | ReadState | WriteState | DeleteState | ReadStateSummary
