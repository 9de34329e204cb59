"""ListTransactions over a raw socket: the filters of every version."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest
from tests.broker.api.transaction_requests import add, init, listed


@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_by_state_and_producer(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    answer = client.call(
        ApiKey.LIST_TRANSACTIONS, version, state_filters=("Ongoing", "Nonsense"), producer_id_filters=(producer[0],)
    )
    assert [(each.transactional_id, each.transaction_state) for each in answer.transaction_states] == [(name, "Ongoing")]
    assert list(answer.unknown_state_filters) == ["Nonsense"]


def test_only_unknown_states_are_no_transactions(client, new_id):
    init(client, new_id())
    answer = client.call(ApiKey.LIST_TRANSACTIONS, 2, state_filters=("Nonsense",), producer_id_filters=())
    assert (list(answer.transaction_states), list(answer.unknown_state_filters)) == ([], ["Nonsense"])


def test_transactions_are_listed_by_a_pattern_of_the_whole_name(client, new_id):
    names = [new_id() for _ in range(2)]
    for name in names:
        init(client, name)
    answer = listed(client, transactional_id_pattern=f"{names[0][:-1]}{names[0][-1]}")
    assert [each.transactional_id for each in answer.transaction_states] == [names[0]]
    assert listed(client, transactional_id_pattern="(").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert listed(client, transactional_id_pattern="(?=a)").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_young_transactions_are_not_among_the_long_ones(client, new_id, topic):
    name = new_id()
    add(client, name, init(client, name), topic[0])
    answer = listed(client, duration_filter=60_000, transactional_id_pattern=name)
    assert list(answer.transaction_states) == []


async def test_transactions_are_not_listed_while_some_are_loading(node):
    await node.producer("a")
    await node.restart()
    loading = await node.ask(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    assert (loading.error_code, list(loading.transaction_states)) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
    await node.broker.settle()
    loaded = await node.ask(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    assert [each.transactional_id for each in loaded.transaction_states] == ["a"]


async def test_transactions_of_shards_that_are_elsewhere_are_not_listed(node):
    for name in "abcdef":
        await node.producer(name)
    runtime = node.core.transactions.runtime
    gone = runtime.partition_for("a")
    runtime.unload(gone)
    answer = await node.ask(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
    here = {name for name in "abcdef" if runtime.partition_for(name) != gone}
    assert (answer.error_code, {each.transactional_id for each in answer.transaction_states}) == (ErrorCode.NONE, here)
    assert here


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b"])
def test_a_pattern_that_takes_others_exponential_time_is_answered(client, new_id, pattern):
    name = f"{'a' * 60}{new_id()}"
    init(client, name)
    assert list(listed(client, transactional_id_pattern=pattern).transaction_states) == []
    answer = listed(client, transactional_id_pattern=f"({pattern})|{name}")
    assert [each.transactional_id for each in answer.transaction_states] == [name]


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a++", "a{1001}", "a" * 1025, r"\pL{1000}"])
def test_what_is_no_pattern_of_re2_is_refused(client, pattern):
    assert listed(client, transactional_id_pattern=pattern).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
