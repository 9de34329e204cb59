"""The requests of the group coordinator to the share coordinator, and what the groups note of their outcome.

Each function is work for ``timing.slices``: it yields the Replies that it waits for. The share coordinator of a partition may be
on another broker, so a group's shard decides before and after, never meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from odradek.common.logging import log
from odradek.coordinator.group.share import offsets
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from uuid import UUID

    from odradek.broker.coordination.group_coordinator import GroupCoordinator
    from odradek.broker.share.share_persister import SharePersister
    from odradek.coordinator.group.consumer.member import Partitions
    from odradek.coordinator.group.share.offsets import OffsetDeletion
    from odradek.coordinator.group.share.state_partitions import SharePartitionStates
    from odradek.coordinator.share.state import StateSummary
    from odradek.protocol.message_types.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
    from odradek.timing.reply import Reply

# The errors of partitions, by topic id and index.
Errors: TypeAlias = "dict[tuple[UUID, int], KafkaError]"


class PartitionEnds(Protocol):
    """The ends of partitions on other brokers."""

    def latest(self, topic: str, partition: int) -> Reply[int | KafkaError]:
        """Return the offset of the next committed record."""


def initialize(states: SharePersister, group_id: str, asked: SharePartitionStates) -> Generator[Reply[Any], Any, Errors]:
    """Have the states initialized. Return the partitions that failed."""
    replies = {
        (topic_id, index): states.initialize(SharePartitionKey(group_id, topic_id, index), asked.state_epoch, offset)
        for topic_id, own in asked.start_offsets.items()
        for index, offset in own.items()
    }
    return (yield from _errors(replies))


def delete(states: SharePersister, group_id: str, partitions: Partitions) -> Generator[Reply[Any], Any, Errors]:
    """Have the states deleted. Return the partitions that failed."""
    replies = {
        (topic_id, index): states.delete(SharePartitionKey(group_id, topic_id, index))
        for topic_id, indexes in partitions.items()
        for index in sorted(indexes)
    }
    return (yield from _errors(replies))


def _errors(replies: Mapping[tuple[UUID, int], Reply[KafkaError | None]]) -> Generator[Reply[Any], Any, Errors]:
    failed = {}
    for partition, reply in replies.items():
        outcome = yield reply
        if isinstance(outcome, KafkaError):
            failed[partition] = outcome
    return failed


def initialize_for_members(
    groups: GroupCoordinator, states: SharePersister, group_id: str, asked: SharePartitionStates
) -> Generator[Reply[Any], Any, None]:
    """Have the states initialized that a heartbeat asked for, and note the outcome in the group.

    If any fails, none counts as initialized, as in Kafka, and a later heartbeat asks again.
    """
    failed = yield from initialize(states, group_id, asked)
    partitions = asked.partitions()
    if failed:
        (topic_id, index), error = next(iter(failed.items()))
        log.warn(
            "cannot initialize share partitions",
            group=group_id,
            failed=len(failed),
            topic_id=topic_id,
            partition=index,
            error=error.code.name,
            reason=error.reason,
        )
        note = offsets.note_failed
    else:
        note = offsets.note_initialized
    outcome = yield groups.runtime.write(group_id, lambda shard: note(shard.share, group_id, partitions))
    if isinstance(outcome, KafkaError):
        # The initialization counts as lost after group.share.initialize.retry.interval.ms.
        log.warn("cannot note initialized share partitions", group=group_id, error=outcome.code.name, reason=outcome.reason)


def delete_states(states: SharePersister, group_id: str, partitions: Partitions) -> Generator[Reply[Any], Any, KafkaError | None]:
    """Delete the states of a group that is about to be deleted. Return an error, if any."""
    failed = yield from delete(states, group_id, partitions)
    return next(iter(failed.values()), None)


def delete_offsets(
    groups: GroupCoordinator, states: SharePersister, request: DeleteShareGroupOffsetsRequest
) -> Generator[Reply[Any], Any, tuple[OffsetDeletion, Mapping[UUID, KafkaError]] | KafkaError]:
    """Delete the states of topics. Return the decision, and the topics that failed; or the error of the whole request."""
    group_id = request.group_id
    begun: OffsetDeletion | KafkaError = yield groups.runtime.write(group_id, lambda shard: offsets.delete(shard.share, request))
    if isinstance(begun, KafkaError):
        return begun
    failed = {topic_id: error for (topic_id, _), error in (yield from delete(states, group_id, begun.partitions)).items()}
    deleted = begun.partitions.keys() - failed.keys()
    if deleted:
        noted = yield groups.runtime.write(group_id, lambda shard: offsets.note_deleted(shard.share, group_id, deleted))
        if isinstance(noted, KafkaError):
            return noted
    return begun, failed


Summary: TypeAlias = "tuple[StateSummary | KafkaError, int | KafkaError | None]"


def summaries(
    states: SharePersister,
    group_id: str,
    partitions: Mapping[UUID, Sequence[int]],
    end_offset_of: Callable[[UUID, int], Reply[int | KafkaError]],
) -> Generator[Reply[Any], Any, dict[tuple[UUID, int], Summary]]:
    """Read the states, and the end of each partition whose start offset and count are known.

    All states are asked for before the first is awaited, and so are all ends.
    """
    replies = {
        (topic_id, index): states.read_summary(SharePartitionKey(group_id, topic_id, index), -1)
        for topic_id, indexes in partitions.items()
        for index in indexes
    }
    found = {}
    for partition, reply in replies.items():
        found[partition] = yield reply
    ends = {partition: end_offset_of(*partition) for partition, state in found.items() if has_lag(state)}
    read: dict[tuple[UUID, int], Summary] = {}
    for partition, state in found.items():
        read[partition] = (state, (yield ends[partition]) if partition in ends else None)
    return read


def has_lag(state: StateSummary | KafkaError) -> bool:
    """Return whether a lag can be computed from a state: its start offset and its count are known."""
    return not isinstance(state, KafkaError) and state.start_offset >= 0 and state.delivery_complete_count >= 0
