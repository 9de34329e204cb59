"""Produce 3-13: appends and acknowledges one batch per partition.

acks is 0, 1 or -1. With acks=0 there is no response; after an error the connection is closed, or the client would not notice.
With one replica the high watermark covers a batch as soon as it is appended, unless ``flush.messages`` wants it on disk first.
Then the response waits in the Produce purgatory for at most ``timeout``, with acks=1 too. The log checks idempotent batches. From
version 8 on errors name the records that caused them (KIP-467). From version 13 on topics are named by id (KIP-516).

Before a transactional batch begins a transaction in its partition, the transaction coordinator is asked (KIP-890). From version
12 on this also adds the partition to the transaction. A transactional batch without a transactional id is refused
(INVALID_TXN_STATE).

A batch whose records take long to check is opened beside the event loop (``large_produce``), and appended after that. The
connection's next requests begin after the append.

Left out: message formats before v2 (INVALID_RECORD).
"""

from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from odradek.broker.api.large_produce import LargeProduce, LateBatch, LateBatches
from odradek.broker.replica.delayed_produce import DelayedProduce
from odradek.broker.replica.partition import ALL_IN_SYNC
from odradek.broker.security.acl.rules import GuardedRequest, then, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext, Signal
from odradek.common.logging import log
from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode, InvalidRecords, KafkaError
from odradek.protocol.message_types.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.protocol.produce_request import Buffer, ProduceRequest
from odradek.protocol.produce_response import NO_LEADER
from odradek.protocol.record_batch import COMPRESSION_MASK, HEADER_SIZE
from odradek.protocol.texts import uuid_text
from odradek.storage.log.inspection import LongInspection

if TYPE_CHECKING:
    from odradek.broker.api.services import ProduceServices
    from odradek.broker.coordination.transaction_checks import TransactionChecks
    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions

# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
_ATTRIBUTES_LOW_BYTE: Final = 22
_TRANSACTIONAL: Final = 0x10
_ZSTD: Final = 4
_FIRST_WITH_ZSTD: Final = 7
# The client id of Kafka's own tools. Only they may write to internal topics, as in Kafka.
_ADMIN_CLIENT_ID: Final = "__admin_client"
# The most topics and partitions of a request that is handled in one turn of the loop.
_AT_ONCE: Final = 64
# A placeholder for a batch that is being inspected.
_LATER: Final = PartitionProduceResponse()

Outcome: TypeAlias = "ProduceResponse | Signal"
# A partition whose response waits: its topic's results, its place in them, the partition, and the batch's last offset.
_Waiting: TypeAlias = "tuple[list[PartitionProduceResponse], int, Partition, int]"


def handle(services: "ProduceServices", context: RequestContext, request: ProduceRequest) -> "Outcome | Reply[Outcome]":
    """Append each partition's batch. Each partition has its own error."""
    topics = request.topics
    if (len(topics) != 1 or len(topics[0][1]) > _AT_ONCE) and _is_large(request):
        return _handle_large(services, context, request)
    if request.transactional_id is not None:
        return _handle_transactional(services, context, request, False)
    return _append(services, context, request, None, False)


def _is_large(request: ProduceRequest) -> bool:
    return len(request.topics) + sum([len(batches) for _, batches in request.topics]) > _AT_ONCE


def _handle_large(services: "ProduceServices", context: RequestContext, request: ProduceRequest) -> "Reply[Outcome]":
    return LargeProduce(services, request, lambda piece: handle(services, context, piece)).start()


def _append(
    services: "ProduceServices",
    context: RequestContext,
    request: ProduceRequest,
    checks: "TransactionChecks | None",
    is_inspected: bool,
) -> "Outcome | Reply[Outcome]":
    acks = request.acks
    known = services.partitions
    now_ms = services.clock.now_ms()
    topics: list[TopicProduceResponse] = []
    waiting: list[_Waiting] = []
    late: list[LateBatch] | None = None
    is_any_refused = False
    # The partition's place in the request.
    number = 0
    for topic, batches in request.topics:
        partitions = known.named(topic)
        partition: Partition | None = None
        results: list[PartitionProduceResponse] = []
        for index, records in batches:
            try:
                partition = partitions.get(index) or _unknown(topic, index, known)
                if checks is None:
                    batch = _checked(context, partition, acks, records)
                    info = partition.append(batch, now_ms, False, None, True) if is_inspected else partition.append(batch, now_ms)
                else:
                    verification = checks.verification_of(number)
                    # The coordinator's error comes before an error of the batch.
                    is_verified = checks.allows(verification, partition)
                    batch = _checked(context, partition, acks, records)
                    header = None if verification is None else verification.header
                    info = partition.append(batch, now_ms, is_verified, header, is_inspected)
                if partition.high_watermark <= info.last_offset and not partition.is_acknowledged(info.last_offset, acks):
                    waiting.append((results, len(results), partition, info.last_offset))
                answer = (index, 0, info.first_offset, info.log_append_time_ms, info.log_start_offset, (), None, NO_LEADER)
                results.append(_new(PartitionProduceResponse, answer))
            except KafkaError as error:
                is_any_refused = True
                _log_refusal(services, context, topic, index, error)
                results.append(_refused(index, error))
            except LongInspection as inspection:
                late = late or []
                late.append(LateBatch(results, topic, index, inspection))
                results.append(_LATER)
            number += 1
        topics.append(_of_topic(topic, None if partition is None else partition.topic_id, results))
    if late is not None:
        return _append_late(services, context, request, topics, waiting, late, is_any_refused)
    if acks == 0:
        return CLOSE_CONNECTION if is_any_refused else NO_RESPONSE
    response = _new(ProduceResponse, (topics, 0, ()))
    return _wait(services, request, response, waiting) if waiting else response


def _append_late(
    services: "ProduceServices",
    context: RequestContext,
    request: ProduceRequest,
    topics: list[TopicProduceResponse],
    waiting: "list[_Waiting]",
    late: list[LateBatch],
    is_any_refused: bool,
) -> "Reply[Outcome]":
    """Return a Reply of the response with ``topics``, whose ``late`` batches are inspected beside the loop first."""
    reply: Reply[Outcome] = Reply()

    def append(batches: LateBatches) -> None:
        for batch, error in batches.refused:
            _log_refusal(services, context, batch.topic, batch.index, error)
            batch.put(_refused(batch.index, error))
        rest = ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, batches.topics())
        try:
            if rest.transactional_id is None:
                outcome = _append(services, context, rest, None, True)
            else:
                # The coordinator's answer from before the inspection may be out of date.
                outcome = _handle_transactional(services, context, rest, True)
        except Exception as error:  # noqa: BLE001  answered as an error, and logged in full
            log.error("cannot append batches after their check", error)
            outcome = _all_failed(services, context, rest)
        is_refused = is_any_refused or bool(batches.refused)
        if isinstance(outcome, Reply):
            outcome.when_done(lambda outcome: finish(batches, outcome, is_refused))
        else:
            finish(batches, outcome, is_refused)

    def finish(batches: LateBatches, outcome: Outcome, is_refused: bool) -> None:
        if not isinstance(outcome, ProduceResponse):
            reply.complete(CLOSE_CONNECTION if is_refused else outcome)
            return
        for (batch, _), topic in zip(batches.opened, outcome.responses, strict=True):
            batch.put(topic.partition_responses[0])
        response = _new(ProduceResponse, (topics, 0, ()))
        if waiting:
            _wait(services, request, response, waiting).when_done(reply.complete)
        else:
            reply.complete(response)

    LateBatches(late).open(services.inspections, context.session, append)
    return reply


def _of_topic(topic: str | bytes, topic_id: UUID | None, results: list[PartitionProduceResponse]) -> TopicProduceResponse:
    """Return a topic's part of the response. ``topic`` is the name or id in the request, ``topic_id`` the id if known."""
    if isinstance(topic, bytes):
        return _new(TopicProduceResponse, (topic_id or UUID(bytes=topic), results, ""))
    return _new(TopicProduceResponse, (None, results, topic))


def _handle_transactional(
    services: "ProduceServices", context: RequestContext, request: ProduceRequest, is_inspected: bool
) -> "Outcome | Reply[Outcome]":
    """Ask the coordinator about the transaction where needed, then append."""
    from odradek.broker.coordination.transaction_checks import FIRST_ADDING_VERSION, TransactionChecks, UncheckedTransactions

    if context.version < FIRST_ADDING_VERSION and not services.config["transaction.partition.verification.enable"]:
        return _append(services, context, request, UncheckedTransactions(context.version), is_inspected)

    checks = TransactionChecks(context.version)
    checks.ask(services.transactions, request, services.partitions, services.clock.now_ms())
    if checks.is_done:
        return _append(services, context, request, checks, is_inspected)
    kept = _outliving_its_frame(request)
    reply: Reply[Outcome] = Reply()

    def append() -> None:
        try:
            response = _append(services, context, kept, checks, is_inspected)
        except Exception as error:  # noqa: BLE001  answered as an error, and logged in full
            log.error("cannot answer a produce after the check of its transaction", error)
            response = _all_failed(services, context, kept)
        if isinstance(response, Reply):
            response.when_done(reply.complete)
        else:
            reply.complete(response)

    checks.when_done(append)
    return reply


def _outliving_its_frame(request: ProduceRequest) -> ProduceRequest:
    """Return the request with its records copied out of the frame, which is freed when dispatch returns."""
    topics = [
        (topic, [(index, None if records is None else bytes(records)) for index, records in batches])
        for topic, batches in request.topics
    ]
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics)


def _unknown(topic: str | bytes, index: int, known: "Partitions") -> "Partition":
    raise known.missing(topic, index)


def _checked(context: RequestContext, partition: "Partition", acks: int, records: Buffer | None) -> Buffer:
    """Return the batch, unless it is refused before the log sees it."""
    if acks not in (-1, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {acks}: it must be -1, 0 or 1")
    if partition.topic in INTERNAL_TOPICS and context.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients cannot write to the internal topic {partition.topic}")
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the request has a partition without a batch")
    if context.version < _FIRST_WITH_ZSTD and len(records) >= HEADER_SIZE and _compression(records) == _ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs produce version 7 or later")
    if acks == ALL_IN_SYNC:
        partition.require_enough_replicas()
    return records


def _compression(batch: Buffer) -> int:
    return batch[_ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK


def _log_refusal(services: "ProduceServices", context: RequestContext, topic: str | bytes, index: int, error: KafkaError) -> None:
    host, port = context.peer
    extra_fields = services.line_limit.admit((error.code, context.client_id, host))
    if extra_fields is None:
        return
    fields: dict[str, object] = {
        "topic": uuid_text(UUID(bytes=topic)) if isinstance(topic, bytes) else topic,
        "partition": index,
        "error": error.code.name,
        "reason": error.reason,
        "client_id": context.client_id,
        "peer": f"{host}:{port}",
    }
    # A full disk concerns the operator; a bad batch concerns its client.
    level = "error" if error.code == ErrorCode.KAFKA_STORAGE_ERROR else "info"
    log.tell(level, "a produce was refused", {**fields, **extra_fields})


def _refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    """Return a partition's error with the details for the client (KIP-467)."""
    record_errors: list[BatchIndexAndErrorMessage] = []
    if isinstance(error, InvalidRecords):
        record_errors = [
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in error.record_errors
        ]
    return PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, record_errors=record_errors, error_message=error.reason or None
    )


def _all_failed(services: "ProduceServices", context: RequestContext, request: ProduceRequest) -> "Outcome":
    """Return UNKNOWN_SERVER_ERROR for every partition, or no response with acks=0."""
    if request.acks == 0:
        return NO_RESPONSE
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    topics = []
    for topic, batches in request.topics:
        for index, _ in batches:
            _log_refusal(services, context, topic, index, error)
        topics.append(_of_topic(topic, None, [_refused(index, error) for index, _ in batches]))
    return ProduceResponse(responses=topics)


def _wait(
    services: "ProduceServices",
    request: ProduceRequest,
    response: ProduceResponse,
    waiting: "list[_Waiting]",
) -> "Reply[Outcome]":
    """Return a Reply of ``response``, completed when every batch is safe, or when the request times out."""
    reply: Reply[Outcome] = Reply()
    reply.is_decided = True

    def respond(errors: list[ErrorCode]) -> None:
        for (results, place, _, _), error in zip(waiting, errors, strict=True):
            if error:
                results[place] = results[place]._replace(error_code=error)
        reply.complete(response)

    written = [(partition, last_offset) for _, _, partition, last_offset in waiting]
    operation = DelayedProduce(services.clock.monotonic_ms() + request.timeout_ms, written, request.acks, respond)
    services.produce_purgatory.try_complete_else_watch(operation, [partition for partition, _ in written])
    return reply


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id if there are transactional batches, and on each topic."""
    request: ProduceRequest = guarded.request
    if _has_transactional(request):
        transactional_id = request.transactional_id
        if transactional_id is None or not guarded.access.allows(
            AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            return _refused_whole(request)
    by_id = guarded.services.controller.image.topics_by_id

    def name_of(topic: tuple[str | bytes, Any]) -> str | None:
        if isinstance(topic[0], str):
            return topic[0]
        found = by_id.get(UUID(bytes=bytes(topic[0])))
        return None if found is None else found.name

    permitted, refused = guarded.split(AclOperation.WRITE, AclResourceType.TOPIC, request.topics, name_of)
    if not refused:
        return guarded.handle()
    if request.acks == 0:
        # With acks=0 a closed connection is all that the client can notice.
        rest = request._replace(topics=permitted)
        return then(guarded.handle(rest), lambda _: CLOSE_CONNECTION, converts_signals=True) if permitted else CLOSE_CONNECTION
    told = [_refusal_of(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]
    if not permitted:
        return ProduceResponse(responses=told)
    return with_refused(guarded.handle(request._replace(topics=permitted)), "responses", told)


def _has_transactional(request: ProduceRequest) -> bool:
    return any(
        records is not None and len(records) > _ATTRIBUTES_LOW_BYTE and records[_ATTRIBUTES_LOW_BYTE] & _TRANSACTIONAL
        for _, batches in request.topics
        for _, records in batches
    )


def _refused_whole(request: ProduceRequest) -> object:
    if request.acks == 0:
        return CLOSE_CONNECTION
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ProduceResponse(responses=[_refusal_of(topic, code) for topic in request.topics])


def _refusal_of(topic: tuple[str | bytes, Any], code: ErrorCode) -> TopicProduceResponse:
    key, batches = topic
    partitions = [PartitionProduceResponse(index=index, error_code=code, base_offset=-1) for index, _ in batches]
    if isinstance(key, str):
        return TopicProduceResponse(name=key, partition_responses=partitions)
    return TopicProduceResponse(topic_id=UUID(bytes=bytes(key)), partition_responses=partitions)
