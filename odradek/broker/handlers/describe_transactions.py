"""DescribeTransactions, version 0: the state of transactional ids (KIP-664).

Deliberate gap: no authorisation.
"""

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.DESCRIBE_TRANSACTIONS)


def handle(broker: "Broker", _context: "RequestContext", request: Any) -> Any:
    """Ask each transactional id's shard."""
    return M.DescribeTransactionsResponse(
        transaction_states=[_describe(broker, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(broker: "Broker", transactional_id: str) -> Any:
    if not transactional_id:
        return M.TransactionState(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    try:
        return broker.transactions.runtime.read(
            transactional_id, lambda shard, offset: shard.describe_transaction(transactional_id, offset)
        )
    except KafkaError as error:
        return M.TransactionState(transactional_id=transactional_id, error_code=error.code)
