"""InitProducerId, versions 0 to 6: a producer id for an idempotent producer, or for a transactional id (KIP-98).

Without a transactional id every request gets a new id, at epoch 0, whatever id it names (with KIP-360 the client starts over with
it). Ids come from blocks that are written to the metadata log before their first use, so no id is given twice. The rest of a
block is lost when the broker stops.

With a transactional id, the coordinator fences its previous producer (``coordinator.transaction.operations``). Since
version 3 a producer may name itself. Since version 4 a fenced producer gets PRODUCER_FENCED (KIP-588), before that
INVALID_PRODUCER_EPOCH.

Since version 6 a producer may let an outside manager alone decide when its transactions end (KIP-939, ``enable2Pc``). They have
no timeout then; the coordinator's log has the longest possible one. TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless
``transaction.two.phase.commit.enable`` is set.

Deliberate gap: taking over an open transaction (``keepPreparedTxn``) is UNSUPPORTED_VERSION, as in Kafka 4.4, whose
coordinator cannot do it either.
"""

from typing import TYPE_CHECKING, Final

from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import ProducerIdServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext


_FIRST_WITH_FENCED: Final = 4


def handle(
    services: "ProducerIdServices", context: "RequestContext", request: InitProducerIdRequest
) -> "InitProducerIdResponse | Reply[InitProducerIdResponse]":
    """Return a producer id, or an error."""
    error = _error(services, request)
    if error != ErrorCode.NONE:
        return _refusal(error)
    if request.transactional_id is not None:
        return _initialize(services, context.version, request.transactional_id, request)
    try:
        producer_id = services.controller.next_producer_id()
    except KafkaError as failure:
        return _refusal(failure.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _error(services: "ProducerIdServices", request: InitProducerIdRequest) -> ErrorCode:
    # The id and the epoch must be given together, or not at all.
    if (request.producer_id == -1) != (request.producer_epoch == -1) or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if request.enable2_pc and not services.config["transaction.two.phase.commit.enable"]:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return ErrorCode.UNSUPPORTED_VERSION
    if not (request.enable2_pc or 0 < request.transaction_timeout_ms <= services.config["transaction.max.timeout.ms"]):
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def _initialize(
    services: "ProducerIdServices", version: int, transactional_id: str, request: InitProducerIdRequest
) -> Reply[InitProducerIdResponse]:
    from odradek.coordinator.transaction.transactions import NO_TIMEOUT_MS, ProducerIdentity  # 8.5 ms

    timeout_ms = NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms
    expected = ProducerIdentity(request.producer_id, request.producer_epoch)

    def finish(outcome: ProducerIdentity | KafkaError) -> InitProducerIdResponse:
        if isinstance(outcome, ProducerIdentity):
            return InitProducerIdResponse(producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch)
        is_fenced = outcome.code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED
        return _refusal(ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else outcome.code)

    return services.transactions.write(
        transactional_id, lambda shard: shard.init_producer_id(transactional_id, timeout_ms, expected)
    ).then(finish)


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id, and TWO_PHASE_COMMIT if it is requested.

    Without a transactional id, require IDEMPOTENT_WRITE on the cluster, or WRITE on any topic.
    """
    access, request = guarded.access, guarded.request
    transactional_id = request.transactional_id
    if transactional_id is None:
        if access.allows_cluster(AclOperation.IDEMPOTENT_WRITE, tells=False) or access.allows_any(
            AclOperation.WRITE, AclResourceType.TOPIC
        ):
            return guarded.handle()
        return guarded.refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    may_write = access.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id)
    if may_write and (
        not request.enable2_pc or access.allows(AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID, transactional_id)
    ):
        return guarded.handle()
    return guarded.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
