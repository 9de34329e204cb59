"""TxnOffsetCommit, versions 0 to 6: commits offsets that take effect when their transaction is committed.

Since version 2 with leader epochs (KIP-320). Since version 3 with the group's member and generation, which fence a consumer whose
partitions have moved (KIP-447). Since version 6 by topic id (KIP-1319). The group's partition must be in the transaction
(KIP-890): up to version 4 AddOffsetsToTxn has added it, from 5 on this request does. The transaction coordinator is not asked if
the producer's transaction is already open in that partition. The decisions are made in ``coordinator.group.offset_commit``.

A client gets errors that its version knows: TRANSACTION_ABORTABLE since 4, INVALID_TXN_STATE before;
COORDINATOR_NOT_AVAILABLE for CONCURRENT_TRANSACTIONS before 5, and for COORDINATOR_LOAD_IN_PROGRESS before 2; GROUP_ID_NOT_FOUND
and STALE_MEMBER_EPOCH since 6, ILLEGAL_GENERATION before.

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
from odradek.protocol.record_batch import NO_SEQUENCE
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.api.services import TransactionOffsetServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.image import MetadataImage
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.group.offset_commit import TxnCommitTopic
    from odradek.coordinator.runtime.result import CoordinatorResult
    from odradek.storage.log.producer_state import ProducerStates, Verification

_Topic: Final = TxnOffsetCommitResponseTopic
_Partition: Final = TxnOffsetCommitResponsePartition

# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_NONE: Final = ErrorCode.NONE
_FIRST_WITH_LOADING: Final = 2
_FIRST_WITH_ABORTABLE: Final = 4
_FIRST_ADDING_VERSION: Final = 5
_FIRST_VERSION_BY_ID: Final = 6


def handle(
    services: "TransactionOffsetServices", context: "RequestContext", request: TxnOffsetCommitRequest
) -> "TxnOffsetCommitResponse | Reply[TxnOffsetCommitResponse]":
    """Commit the offsets of partitions that exist. Returns a Reply unless none of them exists."""
    version = context.version
    if not request.group_id:
        return _answer(request.topics, ErrorCode.INVALID_GROUP_ID)
    topics, refused = _set_aside_unknown(services.controller.image, request, by_id=version >= _FIRST_VERSION_BY_ID)
    if not topics:
        return TxnOffsetCommitResponse(topics=refused)
    reply: Reply[TxnOffsetCommitResponse] = Reply()
    respond = partial(_respond, reply, topics, refused, version)
    runtime = services.groups.runtime
    try:
        partition = runtime.partition_for(request.group_id)
        # A broker that does not coordinate the group must not add it to the transaction.
        runtime.read(partition, lambda _shard, _offset: None)
        producers = services.partitions.require(CONSUMER_OFFSETS_TOPIC, partition).require_log().producers
        verification = _begin_verification(services, request, version, producers)
    except KafkaError as error:
        respond(error)
        return reply

    decide = partial(_decide, request, topics, version, verification, producers)

    def commit(verdict: ErrorCode) -> None:
        """Commit, if the transaction coordinator allows it."""
        if verdict != _NONE:
            # Clients expect errors of the group coordinator, so errors of the transaction coordinator are translated.
            respond(operation_error(KafkaError(verdict)))
            return
        runtime.write(request.group_id, decide).when_done(respond)

    if verification is None:
        commit(_NONE)
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
        verdict.when_done(commit)
    else:
        commit(verdict)
    return reply


def _begin_verification(
    services: "TransactionOffsetServices", request: TxnOffsetCommitRequest, version: int, producers: "ProducerStates"
) -> "Verification | None":
    """Return the verification that the transaction needs, or None. KafkaError: INVALID_PRODUCER_EPOCH."""
    adds = version >= _FIRST_ADDING_VERSION
    if not producers.needs_verification(request.producer_id, request.producer_epoch):
        return None
    # If the request adds the partition, the coordinator must be asked.
    if not adds and not services.config["transaction.partition.verification.enable"]:
        return None
    now_ms = services.clock.now_ms()
    return producers.begin_verification(request.producer_id, request.producer_epoch, NO_SEQUENCE, adds, now_ms)


def _decide(
    request: TxnOffsetCommitRequest,
    topics: "list[TxnCommitTopic]",
    version: int,
    verification: "Verification | None",
    producers: "ProducerStates",
    shard: "GroupShard",
) -> "CoordinatorResult[TxnOffsetCommitResponse | None]":
    if verification is not None:
        _ensure_valid(verification, request, producers)
    return commit_offsets_in_transaction(shard.offsets, request, topics, version)


def _ensure_valid(verification: "Verification", request: TxnOffsetCommitRequest, producers: "ProducerStates") -> None:
    """Raise INVALID_TXN_STATE if the transaction's marker has arrived before the coordinator's answer.

    INVALID_PRODUCER_EPOCH if a later epoch's request has.
    """
    is_open = not producers.needs_verification(request.producer_id, request.producer_epoch)
    if not is_open and not producers.is_verifying(request.producer_id, request.producer_epoch, verification):
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction ended before its partition was verified")


def _respond(
    reply: Reply[TxnOffsetCommitResponse],
    topics: "list[TxnCommitTopic]",
    refused: list[TxnOffsetCommitResponseTopic],
    version: int,
    outcome: TxnOffsetCommitResponse | KafkaError | None,
) -> None:
    if outcome is None:
        outcome = _answer(topics, ErrorCode.NONE)
    elif isinstance(outcome, KafkaError):
        outcome = _answer(topics, _code_for(outcome.code, version))
    if refused:
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
    image: "MetadataImage", request: TxnOffsetCommitRequest, *, by_id: bool
) -> "tuple[list[TxnCommitTopic], list[TxnOffsetCommitResponseTopic]]":
    """Split the request into existing topics, each with name and id, and the answers for the rest."""
    topics: list[TxnCommitTopic] = []
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic_id, asked, name in request.topics:
        found = (None if topic_id is None else image.topics_by_id.get(topic_id)) if by_id else image.topics.get(name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused += _answer([(topic_id, asked, name)], code).topics
            continue
        known = [each for each in asked if each.partition_index in found.partitions]
        if known:
            topics.append((found.topic_id, known, found.name))
        if not known or len(known) < len(asked):
            unknown = [each for each in asked if each.partition_index not in found.partitions]
            refused += _answer([(found.topic_id, unknown, found.name)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).topics
    return topics, refused


def _answer(topics: "Iterable[TxnCommitTopic | TxnOffsetCommitRequestTopic]", error_code: ErrorCode) -> TxnOffsetCommitResponse:
    """Return the same error code for all partitions; NONE if nothing has failed."""
    return TxnOffsetCommitResponse(
        topics=[
            _new(_Topic, (topic_id, [_new(_Partition, (each.partition_index, error_code)) for each in partitions], name))
            for topic_id, partitions, name in topics
        ]
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id, and READ on the group and on each topic."""
    if not guarded.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, guarded.request.transactional_id):
        return guarded.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    by_id = guarded.context.version >= _FIRST_VERSION_BY_ID
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: guarded.topic_name(topic, by_id=by_id))
