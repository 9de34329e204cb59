"""EndTxn, versions 0 to 5: commits or aborts a transaction. Answered when the decision is written, not when it is carried out.

Since version 2 a fenced producer gets PRODUCER_FENCED (KIP-588), before that INVALID_PRODUCER_EPOCH. Since version 5 the producer
gets a new epoch for the next transaction (KIP-890).

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.transaction.transactions import ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.end_txn import (
    EndTxnRequest,
    EndTxnResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TransactionServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

_new_tuple: Final = tuple.__new__


_FIRST_WITH_FENCED: Final = 2
_FIRST_WITH_EPOCH: Final = 5
_CLIENT_VERSION: Final = 0
_EPOCH_BUMPING_VERSION: Final = 2


def handle(
    services: "TransactionServices", context: "RequestContext", request: EndTxnRequest
) -> "EndTxnResponse | Reply[EndTxnResponse]":
    """Pass the request to its transactional id's shard."""
    version = context.version
    transactional_id = request.transactional_id
    if not transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    producer = _new_tuple(ProducerIdentity, (request.producer_id, request.producer_epoch))
    client_version = _EPOCH_BUMPING_VERSION if version >= _FIRST_WITH_EPOCH else _CLIENT_VERSION

    def finish(outcome: ProducerIdentity | KafkaError) -> EndTxnResponse:
        if isinstance(outcome, ProducerIdentity):
            return _new_tuple(EndTxnResponse, (0, ErrorCode.NONE, outcome.producer_id, outcome.producer_epoch))
        is_fenced = outcome.code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED
        return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else outcome.code)

    # It does not wait for a change that is under way: a repetition that came so late could end the next transaction.
    return services.transactions.runtime.write(
        transactional_id,
        lambda shard: shard.end_txn(transactional_id, producer, commit=request.committed, client_version=client_version),
    ).then(finish)


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id."""
    if guarded.access.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, guarded.request.transactional_id):
        return guarded.handle()
    return guarded.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
