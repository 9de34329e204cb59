"""DescribeTransactions, version 0: the state of transactional ids (KIP-664).

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import TransactionServices


def handle(
    services: "TransactionServices", _context: "RequestContext", request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Ask each transactional id's shard."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(services, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(services: "TransactionServices", transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    try:
        return services.transactions.runtime.read(
            transactional_id, lambda shard, offset: shard.describe_transaction(transactional_id, offset)
        )
    except KafkaError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
