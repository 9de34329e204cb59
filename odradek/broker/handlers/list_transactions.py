"""ListTransactions, versions 0 to 2: the transactional ids that are coordinated here (KIP-664).

Filtered by state and producer id; since version 1 by how long they run (KIP-994), since 2 by a pattern (KIP-1152).
COORDINATOR_LOAD_IN_PROGRESS while any of them may still be unknown. States that are none are told apart, and what is asked for
besides them is answered.

Deliberate gap: no authorisation.
"""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import TransactionServices


def handle(
    services: "TransactionServices", _context: "RequestContext", request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Ask every shard."""
    from odradek.coordinator.transaction.describe import TransactionFilter, compile_pattern
    from odradek.coordinator.transaction.states import STATE_NAMES

    by_name = {name: state for state, name in STATE_NAMES.items()}
    states = {by_name[name] for name in request.state_filters if name in by_name}
    unknown = [name for name in request.state_filters if name not in by_name]
    if unknown and not states:
        return ListTransactionsResponse(unknown_state_filters=unknown)
    try:
        pattern = compile_pattern(request.transactional_id_pattern)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    asked = TransactionFilter(states, frozenset(request.producer_id_filters), request.duration_filter, pattern)
    runtime = services.transactions.runtime
    found: list[TransactionState] = []
    for partition in runtime.partitions():
        try:
            found += runtime.read(partition, lambda shard, offset: shard.list_transactions(asked, offset))
        except KafkaError as error:
            # What is not here is listed where it is.
            if error.code != ErrorCode.NOT_COORDINATOR:
                return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(transaction_states=found, unknown_state_filters=unknown)
