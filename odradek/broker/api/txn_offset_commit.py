"""TxnOffsetCommit, versions 0 to 5: commits offsets that take effect when their transaction is committed.

Since version 2 with leader epochs (KIP-320). Since version 3 with the group's member and generation, which fence a consumer whose
partitions have moved (KIP-447). The group's partition must be in the transaction (KIP-890): up to version 4 AddOffsetsToTxn has
added it, from 5 on this request does. The decisions are made in ``coordinator.group.offset_commit``.

A client gets errors that its version knows: TRANSACTION_ABORTABLE since 4, INVALID_TXN_STATE before;
COORDINATOR_NOT_AVAILABLE for CONCURRENT_TRANSACTIONS before 5, and for COORDINATOR_LOAD_IN_PROGRESS before 2.

Deliberate gap: none.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.coordinator.group.offset_commit import commit_offsets_in_transaction
from odradek.coordinator.runtime.states import operation_error
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from odradek.broker.api.services import TransactionOffsetServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.topic import Topic

_Topic: Final = TxnOffsetCommitResponseTopic
_Partition: Final = TxnOffsetCommitResponsePartition

# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_NONE: Final = ErrorCode.NONE
_FIRST_WITH_LOADING: Final = 2
_FIRST_WITH_ABORTABLE: Final = 4
_FIRST_ADDING_VERSION: Final = 5


def handle(
    services: "TransactionOffsetServices", context: "RequestContext", request: TxnOffsetCommitRequest
) -> "TxnOffsetCommitResponse | Reply[TxnOffsetCommitResponse]":
    """Commit the offsets of partitions that exist. Returns a Reply unless none of them exists."""
    version = context.version
    if not request.group_id:
        return _answer(request.topics, ErrorCode.INVALID_GROUP_ID)
    request, unknown = _set_aside_unknown(services, request)
    if not request.topics:
        return _answer(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    reply: Reply[TxnOffsetCommitResponse] = Reply()
    respond = partial(_respond, reply, request, unknown, version)
    runtime = services.groups.runtime
    try:
        partition = runtime.partition_for(request.group_id)
        # A broker that does not coordinate the group must not add it to the transaction.
        runtime.read(partition, lambda _shard, _offset: None)
    except KafkaError as error:
        respond(error)
        return reply
    verdict = services.transactions.verify(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        CONSUMER_OFFSETS_TOPIC,
        partition,
        adds=version >= _FIRST_ADDING_VERSION,
    )
    if isinstance(verdict, Reply):
        verdict.when_done(partial(_commit, services, request, respond))
    else:
        _commit(services, request, respond, verdict)
    return reply


def _commit(
    services: "TransactionOffsetServices",
    request: TxnOffsetCommitRequest,
    respond: "Callable[[TxnOffsetCommitResponse | KafkaError | None], None]",
    verdict: ErrorCode,
) -> None:
    """Commit, if the transaction coordinator allows it."""
    if verdict != _NONE:
        # Clients expect errors of the group coordinator, so errors of the transaction coordinator are translated.
        respond(operation_error(KafkaError(verdict)))
        return
    topic_id = partial(_topic_id, services)
    services.groups.runtime.write(
        request.group_id, lambda shard: commit_offsets_in_transaction(shard.offsets, request, topic_id)
    ).when_done(respond)


def _topic_id(services: "TransactionOffsetServices", name: str) -> "UUID | None":
    topic = services.controller.image.topics.get(name)
    return None if topic is None else topic.topic_id


def _respond(
    reply: Reply[TxnOffsetCommitResponse],
    request: TxnOffsetCommitRequest,
    unknown: list[TxnOffsetCommitRequestTopic],
    version: int,
    outcome: TxnOffsetCommitResponse | KafkaError | None,
) -> None:
    if outcome is None:
        outcome = _answer(request.topics, ErrorCode.NONE)
    elif isinstance(outcome, KafkaError):
        outcome = _answer(request.topics, _code_for(outcome.code, version))
    if unknown:
        refused = _answer(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).topics
        outcome = outcome._replace(topics=[*outcome.topics, *refused])
    reply.complete(outcome)


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error code that a client of ``version`` knows."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < _FIRST_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    is_new = version >= (_FIRST_ADDING_VERSION if code == ErrorCode.CONCURRENT_TRANSACTIONS else _FIRST_WITH_LOADING)
    if code in {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS} and not is_new:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _set_aside_unknown(
    services: "TransactionOffsetServices", request: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitRequest, list[TxnOffsetCommitRequestTopic]]:
    """Split the request into the part that exists, and the rest, as topics of the same kind."""
    known_topics = services.controller.image.topics
    if _all_exist(known_topics, request.topics):
        return request, []
    unknown = []
    known = []
    for topic in request.topics:
        found = known_topics.get(topic.name)
        exists = [found is not None and each.partition_index in found.partitions for each in topic.partitions]
        if all(exists) and exists:
            known.append(topic)
            continue
        pairs = list(zip(topic.partitions, exists, strict=True))
        unknown.append(topic._replace(partitions=[each for each, there in pairs if not there]))
        if any(exists):
            known.append(topic._replace(partitions=[each for each, there in pairs if there]))
    return request._replace(topics=known), unknown


def _all_exist(known_topics: "Mapping[str, Topic]", topics: "Sequence[TxnOffsetCommitRequestTopic]") -> bool:
    for topic in topics:
        found = known_topics.get(topic.name)
        if not topic.partitions or found is None:
            return False
        for each in topic.partitions:
            if each.partition_index not in found.partitions:
                return False
    return True


def _answer(topics: "Sequence[TxnOffsetCommitRequestTopic]", error_code: ErrorCode) -> TxnOffsetCommitResponse:
    """Return the same error code for all partitions; NONE if nothing has failed."""
    return TxnOffsetCommitResponse(
        topics=[
            _new(_Topic, (topic.name, [_new(_Partition, (each.partition_index, error_code)) for each in topic.partitions]))
            for topic in topics
        ]
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id, and READ on the group and on each topic."""
    if not guarded.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, guarded.request.transactional_id):
        return guarded.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: topic.name)
