"""The parts that ShareFetch and ShareAcknowledge have in common: the first checks, and the acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from odradek.broker.share.acknowledgement import AcknowledgeType
from odradek.broker.share.share_sessions import TopicIdPartition
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from odradek.broker.api.services import ShareServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.broker.share.acknowledgement import AcknowledgementBatch
    from odradek.broker.share.share_partition_manager import Outcomes
    from odradek.protocol.message_types.share_acknowledge import ShareAcknowledgeRequest
    from odradek.protocol.message_types.share_fetch import ShareFetchRequest
    from odradek.timing.reply import Reply

    ShareRequest: TypeAlias = ShareFetchRequest | ShareAcknowledgeRequest

LONGEST_MEMBER_ID: Final = 36
_NO_TOPIC: Final = UUID(int=0)
# Locks can be renewed since version 2 (KIP-1222).
WITH_RENEWAL: Final = 2


def refusal(services: ShareServices, request: ShareRequest, guarded: GuardedRequest | None) -> ErrorCode | None:
    """Return the error that refuses a whole request, None if it may go on.

    UNSUPPORTED_VERSION if share groups are off, INVALID_REQUEST without a group or a member, GROUP_AUTHORIZATION_FAILED.
    """
    if not services.share_partitions.configs.is_on:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.group_id is None:
        return ErrorCode.INVALID_REQUEST
    if guarded is not None and not guarded.allows(AclOperation.READ, AclResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.member_id or len(request.member_id) > LONGEST_MEMBER_ID:
        return ErrorCode.INVALID_REQUEST
    return None


class NamedPartitions:
    """The partitions that a request names, as the metadata has them, and the rights of its client."""

    __slots__ = ("_image", "_readable")

    def __init__(self, services: ShareServices, guarded: GuardedRequest | None, names: Iterable[TopicIdPartition]) -> None:
        self._image = services.controller.image
        self._readable: Collection[str] | None = None
        if guarded is not None:
            topics = {self._image.topics_by_id[each.topic_id].name for each in names if each.topic_id in self._image.topics_by_id}
            self._readable = guarded.access.allowed(AclOperation.READ, AclResourceType.TOPIC, sorted(topics))

    def is_known(self, name: TopicIdPartition) -> bool:
        """Return whether there is a topic with this id."""
        return name.topic_id in self._image.topics_by_id

    def error_of(self, name: TopicIdPartition) -> ErrorCode | None:
        """Return UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED or UNKNOWN_TOPIC_OR_PARTITION; None for a partition to use."""
        topic = self._image.topics_by_id.get(name.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if self._readable is not None and topic.name not in self._readable:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return None if name.partition in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def named(topic_id: UUID | None, partition: int) -> TopicIdPartition:
    """Return a partition as a request names it. No topic has the null id."""
    return TopicIdPartition(topic_id or _NO_TOPIC, partition)


def batches_of(request: ShareRequest) -> dict[TopicIdPartition, Sequence[AcknowledgementBatch]]:
    """Return the acknowledgements in a request, of each partition that it names."""
    return {
        named(topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }


def acknowledge(
    services: ShareServices,
    request: ShareRequest,
    batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
    known: NamedPartitions,
    *,
    may_renew: bool,
) -> Reply[Outcomes]:
    """Acknowledge records. The reply has the error of each partition, or None.

    UNKNOWN_TOPIC_ID, INVALID_REQUEST for batches that make no sense, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION (also
    if the group fetches nothing from the partition here), INVALID_RECORD_STATE, and the errors of the share coordinator.
    """
    refused: Outcomes = {}
    empty: Outcomes = {}
    wanted: dict[TopicIdPartition, Sequence[AcknowledgementBatch]] = {}
    for name, of_partition in batches.items():
        code = known.error_of(name)
        if known.is_known(name) and not _make_sense(of_partition, may_renew, request.is_renew_ack):
            code = ErrorCode.INVALID_REQUEST
        if code is not None:
            refused[name] = KafkaError(code)
        elif of_partition:
            wanted[name] = of_partition
        else:
            empty[name] = None
    if not wanted:
        # As in Kafka, partitions without acknowledgements are then not named.
        empty = {}
    return services.share_partitions.acknowledge(request.group_id or "", request.member_id or "", wanted, refused | empty)


def _make_sense(batches: Sequence[AcknowledgementBatch], may_renew: bool, is_renewal: bool) -> bool:
    """Return whether batches are in order, each with one type or one an offset, and renew locks only if the request says so."""
    highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    previous_end = -1
    for batch in batches:
        first_offset, last_offset, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first_offset > last_offset or first_offset < previous_end:
            return False
        if not types or (len(types) > 1 and len(types) != last_offset - first_offset + 1):
            return False
        if min(types) < AcknowledgeType.GAP or max(types) > highest or (AcknowledgeType.RENEW in types and not is_renewal):
            return False
        previous_end = last_offset
    return True
