"""The start offsets of a share group, and the end of its share partitions' state: what the group coordinator decides.

The share coordinator has the offsets. So most requests take two operations here, and between them the caller asks the share
coordinator:

    AlterShareGroupOffsets     alter: partitions become initializing        note_initialized
    DeleteShareGroupOffsets    delete: topics become deleting               note_deleted
    DeleteGroups               begin_deletion: all topics become deleting   the group's tombstones
    a heartbeat                (``heartbeat``)                              note_initialized or note_failed

Source: ``GroupMetadataManager`` and ``GroupCoordinatorShard`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  the type of a compiled tuple's field
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinator.group.consumer.member import Partitions  # noqa: TC001  the type of a compiled tuple's field
from odradek.coordinator.group.sessions import NOTHING_DECIDED
from odradek.coordinator.group.share.state_partitions import (
    NamedPartitions,
    SharePartitionStates,
    with_initialized,
    with_initializing,
    without_initializing,
)
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from odradek.protocol.message_types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from odradek.coordinator.group.consumer.topics import SubscribedTopic
    from odradek.coordinator.group.share.group import ShareGroup
    from odradek.coordinator.group.share.groups import ShareGroups

_UNKNOWN_TOPIC_MESSAGE = "This server does not host this topic-partition."


class Alteration(NamedTuple):
    """The topics of the response, with the partitions refused here, and the states to initialize."""

    topics: Sequence[AlterShareGroupOffsetsResponseTopic]
    states: SharePartitionStates


class OffsetDeletion(NamedTuple):
    """The topics refused here, and the partitions whose state is to be deleted."""

    refused: Sequence[DeleteShareGroupOffsetsResponseTopic]
    partitions: Partitions


# ---------------------------------------------------------------------------------------------------------- initialization


def note_initialized(groups: ShareGroups, group_id: str, partitions: Partitions) -> CoordinatorResult[None]:
    """Note that the share coordinator has the state of these partitions."""
    group = groups.find(group_id)
    if group is None or not partitions:
        return NOTHING_DECIDED
    return CoordinatorResult([groups.states_record(group, with_initialized(group.states, partitions, groups.topics))], None)


def note_failed(groups: ShareGroups, group_id: str, partitions: Partitions) -> CoordinatorResult[None]:
    """Note that these partitions could not be initialized."""
    group = groups.find(group_id)
    if group is None or not partitions or not group.states.initializing:
        return NOTHING_DECIDED
    return CoordinatorResult([groups.states_record(group, without_initializing(group.states, partitions))], None)


def initialized_partitions(groups: ShareGroups, group_id: str) -> Partitions:
    """Return the initialized partitions of a group; none if there is no such group."""
    group = groups.find(group_id)
    return {} if group is None else group.states.assignable()


# ------------------------------------------------------------------------------------------------- AlterShareGroupOffsets


def alter(groups: ShareGroups, request: AlterShareGroupOffsetsRequest) -> CoordinatorResult[Alteration]:
    """Decide on new start offsets. Creates a missing group. KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = groups.find_or_new(request.group_id)
    _ensure_empty(group)
    offsets: dict[UUID, dict[int, int]] = {}
    asked: dict[UUID, NamedPartitions] = {}
    responses = []
    for topic_name, partitions in _by_name(request).items():
        known = groups.topics.find(topic_name)
        responses.append(_answer(topic_name, partitions, known))
        if known is not None:
            indexes = range(known.partition_count)
            own = {each.partition_index: each.start_offset for each in partitions if each.partition_index in indexes}
            if own:
                offsets[known.topic_id] = own
            asked[known.topic_id] = NamedPartitions(topic_name, frozenset(own))
    records = [] if not asked else [groups.states_record(group, with_initializing(group.states, asked))]
    return CoordinatorResult(records, Alteration(responses, SharePartitionStates(group.epoch.get(), offsets)))


def _by_name(request: AlterShareGroupOffsetsRequest) -> dict[str, list[AlterShareGroupOffsetsRequestPartition]]:
    """Join the entries of a topic that is named twice."""
    topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for topic in request.topics:
        topics.setdefault(topic.topic_name, []).extend(topic.partitions)
    return topics


def _answer(
    topic_name: str, partitions: Iterable[AlterShareGroupOffsetsRequestPartition], known: SubscribedTopic | None
) -> AlterShareGroupOffsetsResponseTopic:
    indexes = range(0 if known is None else known.partition_count)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic_name,
        topic_id=None if known is None else known.topic_id,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index)
            if each.partition_index in indexes
            else AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=_UNKNOWN_TOPIC_MESSAGE,
            )
            for each in partitions
        ],
    )


def _ensure_empty(group: ShareGroup) -> None:
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


# ------------------------------------------------------------------------------------------------ DeleteShareGroupOffsets


def delete(groups: ShareGroups, request: DeleteShareGroupOffsetsRequest) -> CoordinatorResult[OffsetDeletion]:
    """Decide on topics whose state is deleted. KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = groups.require(request.group_id)
    _ensure_empty(group)
    sets = group.state_partitions.get()
    if sets is None:
        # As in Kafka, the answer names no topic then.
        return CoordinatorResult((), OffsetDeletion((), {}))
    initialized = dict(sets.initialized)
    deleting = set(sets.deleting)
    refused = []
    partitions: dict[UUID, frozenset[int]] = {}
    for topic_name in (topic.topic_name for topic in request.topics):
        known = groups.topics.find(topic_name)
        if known is None:
            refused.append(_refused(topic_name, _UNKNOWN_TOPIC_MESSAGE))
        elif known.topic_id in initialized:
            partitions[known.topic_id] = initialized.pop(known.topic_id).partitions
            deleting.add(known.topic_id)
        elif known.topic_id in deleting:
            # An earlier deletion did not finish.
            partitions[known.topic_id] = frozenset(range(known.partition_count))
        else:
            refused.append(_refused(topic_name, "There is no offset information to delete."))
    after = sets._replace(initialized=initialized, deleting=frozenset(deleting))
    return CoordinatorResult([groups.states_record(group, after)], OffsetDeletion(refused, partitions))


def _refused(topic_name: str, message: str) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic_name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message
    )


def note_deleted(groups: ShareGroups, group_id: str, topic_ids: AbstractSet[UUID]) -> CoordinatorResult[None]:
    """Note that the state of these topics is deleted."""
    group = groups.find(group_id)
    sets = None if group is None else group.state_partitions.get()
    if group is None or sets is None:
        return NOTHING_DECIDED
    return CoordinatorResult([groups.states_record(group, sets._replace(deleting=sets.deleting - topic_ids))], None)


# ----------------------------------------------------------------------------------------------------------- DeleteGroups


def begin_deletion(groups: ShareGroups, group_id: str) -> CoordinatorResult[Partitions]:
    """Return the partitions whose state must be deleted before the group is; none for a group of another kind.

    KafkaError: NON_EMPTY_GROUP.
    """
    group = groups.find(group_id)
    sets = None if group is None else group.state_partitions.get()
    if group is None:
        return CoordinatorResult((), {})
    _ensure_empty(group)
    if sets is None:
        return CoordinatorResult((), {})
    partitions: dict[UUID, frozenset[int]] = {}
    for named in (sets.initialized, sets.initializing):
        for topic_id, (_, indexes) in named.items():
            partitions[topic_id] = partitions.get(topic_id, frozenset()) | indexes
    for topic_id, count in _still_deleting(groups, sets.deleting):
        partitions[topic_id] = partitions.get(topic_id, frozenset()) | frozenset(range(count))
    after = sets._replace(initializing={}, initialized={}, deleting=frozenset(partitions))
    return CoordinatorResult([groups.states_record(group, after)], partitions)


def _still_deleting(groups: ShareGroups, topic_ids: Iterable[UUID]) -> Iterable[tuple[UUID, int]]:
    """Return the existing topics of an earlier deletion that did not finish, with their numbers of partitions."""
    for topic_id in topic_ids:
        name = groups.topics.name_of(topic_id)
        topic = None if name is None else groups.topics.find(name)
        if topic is not None:
            yield topic_id, topic.partition_count
