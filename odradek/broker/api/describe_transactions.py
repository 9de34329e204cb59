"""DescribeTransactions, version 0: the state of transactional ids (KIP-664).

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.large import FEW, Pieces, Repeated, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import TransactionListServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("transactional_ids",), ("transaction_states",), FEW, Repeated.ALIKE)
has_unbounded_response = True


def handle(
    services: "TransactionListServices", context: "RequestContext", request: DescribeTransactionsRequest
) -> "Answer[DescribeTransactionsResponse]":
    """Ask each transactional id's shard, in slices."""
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "TransactionListServices", request: DescribeTransactionsRequest
) -> "Generator[Reply[Any] | None, Any, DescribeTransactionsResponse]":
    states = yield from each_once(request.transactional_ids, lambda transactional_id: _describe(services, transactional_id))
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(
    services: "TransactionListServices", transactional_id: str
) -> "Generator[Reply[Any] | None, Any, TransactionState]":
    yield from ()
    if not transactional_id:
        return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    try:
        return services.transactions.runtime.read(
            transactional_id, lambda shard, offset: shard.describe_transaction(transactional_id, offset)
        )
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each transactional id. Topics that the client may not DESCRIBE are left out."""

    def seen(response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        states = response.transaction_states
        topics = [topic.topic for state in states for topic in state.topics]
        names = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, topics)
        return response._replace(
            transaction_states=[
                state._replace(topics=[topic for topic in state.topics if topic.topic in names]) for state in states
            ]
        )

    return authorize_each(
        guarded,
        AclOperation.DESCRIBE,
        AclResourceType.TRANSACTIONAL_ID,
        field="transactional_ids",
        answered="transaction_states",
        convert=seen,
    )
