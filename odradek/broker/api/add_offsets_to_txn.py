"""AddOffsetsToTxn, versions 0 to 4: adds the partition that holds a group's offsets to a transaction.

Since version 2 a fenced producer gets PRODUCER_FENCED (KIP-588), before that INVALID_PRODUCER_EPOCH.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import TransactionOffsetServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext


_FIRST_WITH_FENCED: Final = 2
_CLIENT_VERSION: Final = 0


def handle(
    services: "TransactionOffsetServices", context: "RequestContext", request: AddOffsetsToTxnRequest
) -> "AddOffsetsToTxnResponse | Reply[AddOffsetsToTxnResponse]":
    """Add the partition that coordinates the group to the transaction."""
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        partition = services.groups.runtime.partition_for(request.group_id)
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=error.code)
    reply: Reply[AddOffsetsToTxnResponse] = Reply()

    def respond(code: ErrorCode) -> None:
        is_fenced = code == ErrorCode.PRODUCER_FENCED and context.version < _FIRST_WITH_FENCED
        reply.complete(AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else code))

    services.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        frozenset({(CONSUMER_OFFSETS_TOPIC, partition)}),
        _CLIENT_VERSION,
    ).when_done(respond)
    return reply


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id and READ on the group."""
    if not guarded.access.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, guarded.request.transactional_id):
        return guarded.refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not guarded.access.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return guarded.handle()
