"""AddPartitionsToTxn, versions 0 to 5: partitions that a producer is about to write to, before it does.

Versions 0 to 3 are clients', of one transaction; from 4 on brokers ask for many at once, and may ask only whether partitions are
in (KIP-890). Since version 2 a fenced producer is told PRODUCER_FENCED (KIP-588), which was INVALID_PRODUCER_EPOCH before. Where
a partition does not exist none is added.

Deliberate gap: no authorisation.
"""

from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M: Final = messages(ApiKey.ADD_PARTITIONS_TO_TXN)

_FIRST_WITH_FENCED: Final = 2
_FIRST_OF_BROKERS: Final = 4
_CLIENT_VERSION: Final = 0
_BROKER_VERSION: Final = 2


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:
    """Ask each transaction's coordinator; a Reply, unless there is none."""
    version = context.version
    transactions = request.transactions
    results: list[Any] = [None] * len(transactions)
    reply: Reply[Any] = Reply()
    left = len(transactions)

    def answered(place: int, topics: list[Any]) -> None:
        nonlocal left
        results[place] = topics
        left -= 1
        if not left:
            reply.complete(_response(transactions, results))

    for place, transaction in enumerate(transactions):
        _decide(broker, version, transaction, lambda topics, place=place: answered(place, topics))
    return reply if transactions else M.AddPartitionsToTxnResponse()


def _response(transactions: Any, results: list[Any]) -> Any:
    return M.AddPartitionsToTxnResponse(
        results_by_transaction=[
            M.AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
            for transaction, topics in zip(transactions, results, strict=True)
        ]
    )


def _decide(broker: "Broker", version: int, transaction: Any, answered: Any) -> None:
    """Call ``answered`` with the results of ``transaction``, topic by topic."""
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    unknown = {partition for partition in partitions if broker.partitions.get(*partition) is None}
    if unknown:
        answered(
            _results(
                transaction,
                lambda partition: (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
                ),
            )
        )
        return
    asked = frozenset(partitions)
    producer = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        verdicts = broker.transactions.verify_partitions(*producer, asked)
        answered(_results(transaction, lambda partition: _told(verdicts[partition], version)))
        return
    client_version = _BROKER_VERSION if version >= _FIRST_OF_BROKERS else _CLIENT_VERSION
    broker.transactions.add_partitions(*producer, asked, client_version).when_done(
        lambda code: answered(_results(transaction, lambda _: _told(code, version)))
    )


def _told(code: ErrorCode, version: int) -> ErrorCode:
    """What a client of ``version`` is told."""
    if code == ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def _results(transaction: Any, code_of: Any) -> list[Any]:
    return [
        M.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                M.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code_of((topic.name, index)))
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]
