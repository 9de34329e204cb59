"""Rules for producers and transactions."""

from typing import Any, Final

from odradek.broker.authorization.asked import Asked, only, then, with_refused
from odradek.broker.authorization.refusals import refused
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import add_partitions_to_txn as additions
from odradek.protocol.message_types import describe_transactions as descriptions
from odradek.protocol.message_types import list_transactions as listings

_ID: Final = AclResourceType.TRANSACTIONAL_ID
_TOPIC: Final = AclResourceType.TOPIC
_REFUSED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_FIRST_OF_BROKERS: Final = 4


def init_producer_id(asked: Asked) -> Any:
    """WRITE on the transactional id, and TWO_PHASE_COMMIT where it is asked for.

    Without an id, IDEMPOTENT_WRITE on the cluster, or WRITE on any topic.
    """
    access, request = asked.access, asked.request
    transactional_id = request.transactional_id
    if transactional_id is None:
        if access.allows_cluster(AclOperation.IDEMPOTENT_WRITE, tells=False) or access.allows_any(AclOperation.WRITE, _TOPIC):
            return asked.handle()
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    may_write = access.allows(AclOperation.WRITE, _ID, transactional_id)
    if may_write and (not request.enable2_pc or access.allows(AclOperation.TWO_PHASE_COMMIT, _ID, transactional_id)):
        return asked.handle()
    return refused(asked, _REFUSED)


def end_txn(asked: Asked) -> Any:
    """WRITE on the transactional id."""
    if asked.access.allows(AclOperation.WRITE, _ID, asked.request.transactional_id):
        return asked.handle()
    return refused(asked, _REFUSED)


def add_offsets_to_txn(asked: Asked) -> Any:
    """WRITE on the transactional id, READ on the group."""
    if not asked.access.allows(AclOperation.WRITE, _ID, asked.request.transactional_id):
        return refused(asked, _REFUSED)
    if not asked.access.allows(AclOperation.READ, AclResourceType.GROUP, asked.request.group_id):
        return refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return asked.handle()


def add_partitions_to_txn(asked: Asked) -> Any:
    """Of a client: WRITE on the transactional id and on each topic, else none is added. Of a broker CLUSTER_ACTION."""
    if asked.context.version >= _FIRST_OF_BROKERS:
        if asked.access.allows_cluster(AclOperation.CLUSTER_ACTION):
            return asked.handle()
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    permitted, told = [], []
    for transaction in asked.request.transactions:
        refusal = _refusal(asked, transaction)
        if refusal is None:
            permitted.append(transaction)
        else:
            told.append(refusal)
    if told and not permitted:
        return additions.AddPartitionsToTxnResponse(results_by_transaction=told)
    return with_refused(
        asked.handle(asked.request._replace(transactions=permitted) if told else None), "results_by_transaction", told
    )


def _refusal(asked: Asked, transaction: additions.AddPartitionsToTxnTransaction) -> additions.AddPartitionsToTxnResult | None:
    """The answer for a transaction to which this client may not add what it wants to."""
    if not asked.access.allows(AclOperation.WRITE, _ID, transaction.transactional_id):
        return _result(transaction, dict.fromkeys((topic.name for topic in transaction.topics), _REFUSED))
    # The handler refuses internal topics.
    names = [topic.name for topic in transaction.topics if topic.name not in INTERNAL_TOPICS]
    allowed = asked.access.allowed(AclOperation.WRITE, _TOPIC, names)
    if len(allowed) == len(set(names)):
        return None
    return _result(
        transaction,
        {topic.name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for topic in transaction.topics if topic.name not in allowed},
        asked,
    )


def _result(
    transaction: additions.AddPartitionsToTxnTransaction, codes: dict[str, ErrorCode], asked: Asked | None = None
) -> additions.AddPartitionsToTxnResult:
    """The code of each topic's partitions; of the others, whether they are there to be added."""

    def code_of(topic: str, index: int) -> ErrorCode:
        if topic in codes or asked is None:
            return codes[topic]
        known = asked.services.controller.image.topics.get(topic)
        if known is None or index not in known.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return additions.AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            additions.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    additions.AddPartitionsToTxnPartitionResult(index, code_of(topic.name, index)) for index in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )


def describe_transactions(asked: Asked) -> Any:
    """DESCRIBE on each transactional id; topics that the client may not DESCRIBE are left out."""
    permitted, others = asked.split(AclOperation.DESCRIBE, _ID, asked.request.transactional_ids, str)
    told = [descriptions.TransactionState(transactional_id=each, error_code=_REFUSED) for each in others]
    if told and not permitted:
        return descriptions.DescribeTransactionsResponse(transaction_states=told)

    def seen(response: descriptions.DescribeTransactionsResponse) -> descriptions.DescribeTransactionsResponse:
        states = response.transaction_states
        names = asked.access.allowed(AclOperation.DESCRIBE, _TOPIC, [topic.topic for state in states for topic in state.topics])
        return response._replace(
            transaction_states=[
                state._replace(topics=[topic for topic in state.topics if topic.topic in names]) for state in states
            ]
        )

    answer = then(asked.handle(asked.request._replace(transactional_ids=permitted)), seen)
    return with_refused(answer, "transaction_states", told)


def list_transactions(asked: Asked) -> Any:
    """Those that the client may DESCRIBE."""

    def may_see(state: listings.TransactionState) -> bool:
        return asked.access.allows(AclOperation.DESCRIBE, _ID, state.transactional_id)

    return only(asked, asked.handle(), "transaction_states", may_see)
