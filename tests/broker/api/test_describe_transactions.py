"""DescribeTransactions over a raw socket: each transactional id as it is."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from tests.broker.api.transaction_requests import add, described, init


def test_a_transaction_is_described_as_it_is(client, new_id, topic):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    state = described(client, name)
    assert (state.producer_id, state.producer_epoch, state.transaction_state) == (*producer, "Ongoing")
    assert state.transaction_timeout.total_seconds() == 60


async def test_each_id_is_described_by_itself(node):
    await node.producer("known")
    request = DescribeTransactionsRequest(transactional_ids=["unknown", "known", ""])
    answer = await node.ask(ApiKey.DESCRIBE_TRANSACTIONS, request)
    assert [(each.transactional_id, each.error_code, each.transaction_state) for each in answer.transaction_states] == [
        ("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ""),
        ("known", ErrorCode.NONE, "Empty"),
        ("", ErrorCode.INVALID_REQUEST, ""),
    ]
