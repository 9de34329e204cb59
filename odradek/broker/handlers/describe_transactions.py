"""DescribeTransactions, version 0: the state of transactional ids (KIP-664).

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.handlers.in_slices import answer_in_slices, each_once
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.in_slices import Answer
    from odradek.broker.handlers.services import TransactionListServices
    from odradek.timing.reply import Reply


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
