"""ListTransactions, versions 0 to 2: the transactional ids that this broker coordinates (KIP-664).

Filtered by state and producer id; since version 1 by running time (KIP-994), since 2 by a pattern (KIP-1152).
COORDINATOR_LOAD_IN_PROGRESS while some transactional ids may still be unknown. Unknown states are reported separately; the known
ones are still used as filters.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.api.pattern_matching import compiled, matching
from odradek.broker.large import answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, keep_visible
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import TransactionListServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext, Session
    from odradek.timing.reply import Reply

has_unbounded_response = True


def handle(
    services: "TransactionListServices", context: "RequestContext", request: ListTransactionsRequest
) -> "Answer[ListTransactionsResponse]":
    """Ask every shard, in slices."""
    return answer_in_slices(services, context, _list(services, context.session, request))


def _list(
    services: "TransactionListServices", client: "Session", request: ListTransactionsRequest
) -> "Generator[Reply[Any] | None, Any, ListTransactionsResponse]":
    from odradek.coordinator.transaction.states import STATE_NAMES  # 8.6 ms
    from odradek.coordinator.transaction.transaction_shard import TransactionFilter  # 15 ms

    by_name = {name: state for state, name in STATE_NAMES.items()}
    states = {by_name[name] for name in request.state_filters if name in by_name}
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in by_name]
    if unknown and not states:
        return ListTransactionsResponse(unknown_state_filters=unknown)
    asked = TransactionFilter(states, frozenset(request.producer_id_filters), request.duration_filter)
    runtime = services.transactions.runtime
    found: list[TransactionState] = []
    try:
        pattern = None
        if request.transactional_id_pattern:
            pattern = yield compiled(request.transactional_id_pattern, services.pattern_matches, client)
            if isinstance(pattern, KafkaError):
                raise pattern
        for partition in runtime.partitions():
            try:
                found += yield from runtime.read(partition, lambda shard, offset: shard.list_transactions(asked, offset))
            except KafkaError as error:
                # Transactional ids of another coordinator are listed there.
                if error.code != ErrorCode.NOT_COORDINATOR:
                    raise
            yield None
        if pattern is not None:
            matched = yield matching(pattern, found, _name, services.pattern_matches, services.clock, client)
            if isinstance(matched, KafkaError):
                raise matched
            found = matched
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(transaction_states=found, unknown_state_filters=unknown)


def _name(state: TransactionState) -> str:
    return state.transactional_id


def rule(guarded: "GuardedRequest") -> object:
    """List only transactions that the client may DESCRIBE."""

    def may_see(state: TransactionState) -> bool:
        return guarded.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, state.transactional_id)

    return keep_visible(guarded, guarded.handle(), "transaction_states", may_see)
