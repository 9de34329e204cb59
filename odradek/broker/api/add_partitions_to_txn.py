"""AddPartitionsToTxn, versions 0 to 5: a producer adds partitions to its transaction before it writes to them.

Clients use versions 0 to 3, for one transaction. From version 4 on, brokers ask for many transactions at once, and may only ask
whether partitions are in them (KIP-890). Since version 2 a fenced producer gets PRODUCER_FENCED (KIP-588), before that
INVALID_PRODUCER_EPOCH. If one partition does not exist, none is added.

Deliberate gap: none.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.large import FEW, Pieces
from odradek.broker.security.acl.rules import GuardedRequest, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import TransactionPartitionServices
    from odradek.common.context import RequestContext


_FIRST_WITH_FENCED: Final = 2
_FIRST_OF_BROKERS: Final = 4
_CLIENT_VERSION: Final = 0
_BROKER_VERSION: Final = 2

pieces = Pieces(("transactions",), ("results_by_transaction",), FEW)


def handle(
    services: "TransactionPartitionServices", context: "RequestContext", request: AddPartitionsToTxnRequest
) -> "AddPartitionsToTxnResponse | Reply[AddPartitionsToTxnResponse]":
    """Ask each transaction's coordinator. Returns a Reply unless the request has no transactions."""
    version = context.version
    transactions = request.transactions
    results: list[list[AddPartitionsToTxnTopicResult]] = [[] for _ in transactions]
    reply: Reply[AddPartitionsToTxnResponse] = Reply()
    left = len(transactions)

    def answered(place: int, topics: list[AddPartitionsToTxnTopicResult]) -> None:
        nonlocal left
        results[place] = topics
        left -= 1
        if not left:
            reply.complete(_response(transactions, results))

    for place, transaction in enumerate(transactions):
        _decide(services, version, transaction, partial(answered, place))
    return reply if transactions else AddPartitionsToTxnResponse()


def _response(
    transactions: Sequence[AddPartitionsToTxnTransaction], results: list[list[AddPartitionsToTxnTopicResult]]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
            for transaction, topics in zip(transactions, results, strict=True)
        ]
    )


def _decide(
    services: "TransactionPartitionServices",
    version: int,
    transaction: AddPartitionsToTxnTransaction,
    answered: Callable[[list[AddPartitionsToTxnTopicResult]], None],
) -> None:
    """Call ``answered`` with the results of ``transaction``, topic by topic."""
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    refusals = {partition: _refusal(services, version, *partition) for partition in partitions}
    if any(refusals.values()):
        answered(_results(transaction, lambda partition: refusals[partition] or ErrorCode.OPERATION_NOT_ATTEMPTED))
        return
    asked = frozenset(partitions)
    producer = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        verdicts = services.transactions.verify_partitions(*producer, asked)
        answered(_results(transaction, lambda partition: _code_for(verdicts[partition], version)))
        return
    client_version = _BROKER_VERSION if version >= _FIRST_OF_BROKERS else _CLIENT_VERSION
    services.transactions.add_partitions(*producer, asked, client_version).when_done(
        lambda code: answered(_results(transaction, lambda _: _code_for(code, version)))
    )


def _refusal(services: "TransactionPartitionServices", version: int, topic: str, index: int) -> ErrorCode:
    """Return the error of a partition that cannot be added. Clients may not write internal topics, existing or not."""
    if version < _FIRST_OF_BROKERS and topic in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = services.controller.image.topics.get(topic)
    return ErrorCode.NONE if known is not None and index in known.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error code that a client of ``version`` knows."""
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def _results(
    transaction: AddPartitionsToTxnTransaction, code_of: Callable[[tuple[str, int]], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code_of((topic.name, index)))
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


def rule(guarded: "GuardedRequest") -> object:
    """Require WRITE on the transactional id and each topic, or nothing is added. Brokers need CLUSTER_ACTION."""
    if guarded.context.version >= _FIRST_OF_BROKERS:
        if guarded.access.allows_cluster(AclOperation.CLUSTER_ACTION):
            return guarded.handle()
        return guarded.refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results_by_transaction=())
    permitted, told = [], []
    for transaction in guarded.request.transactions:
        refused = _refused(guarded, transaction)
        if refused is None:
            permitted.append(transaction)
        else:
            told.append(AddPartitionsToTxnResult(transaction.transactional_id, refused))
    if told and not permitted:
        return AddPartitionsToTxnResponse(results_by_transaction=told)
    return with_refused(
        guarded.handle(guarded.request._replace(transactions=permitted) if told else None), "results_by_transaction", told
    )


def _refused(guarded: "GuardedRequest", transaction: AddPartitionsToTxnTransaction) -> list[AddPartitionsToTxnTopicResult] | None:
    """Return the results of a transaction that this client may not change like this; None if it may."""
    if not guarded.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transaction.transactional_id):
        return _results(transaction, lambda _: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    # The handler refuses internal topics.
    names = [topic.name for topic in transaction.topics if topic.name not in INTERNAL_TOPICS]
    allowed = guarded.access.allowed(AclOperation.WRITE, AclResourceType.TOPIC, names)
    if len(allowed) == len(set(names)):
        return None

    def code_of(partition: tuple[str, int]) -> ErrorCode:
        """Return the error of one partition. A partition of an allowed topic gets an error, too, as nothing is added."""
        topic, index = partition
        if topic not in allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known = guarded.services.controller.image.topics.get(topic)
        if known is None or index not in known.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return _results(transaction, code_of)
