"""AddPartitionsToTxn over a raw socket: all partitions are added or none, in the words of every version."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.broker.api.transaction_requests import add, described, init, listed


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added_in_every_version(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    assert add(client, name, producer, topic[0], version, (0, 1)) == [ErrorCode.NONE, ErrorCode.NONE]
    state = described(client, name)
    assert (state.transaction_state, state.topics[0].topic, list(state.topics[0].partitions)) == ("Ongoing", topic[0], [0, 1])


@pytest.mark.parametrize("version", range(6))
def test_where_a_partition_does_not_exist_none_is_added(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    codes = add(client, name, producer, topic[0], version, (0, 9))
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [each.transaction_state for each in listed(client, transactional_id_pattern=name).transaction_states] == ["Empty"]


@pytest.mark.parametrize("version", [0, 3])
def test_a_client_adds_no_internal_topic(client, new_id, version):
    name = new_id()
    producer = init(client, name)
    assert add(client, name, producer, "__consumer_offsets", version, (0,)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("version", [4, 5])
def test_verification_adds_nothing(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    assert add(client, name, producer, topic[0], version, (0, 1), verify_only=True) == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_ABORTABLE,
    ]
    assert list(described(client, name).topics[0].partitions) == [0]


async def test_each_transaction_of_a_broker_has_its_own_answer(node):
    await node.create("t", 2)
    producer = await node.producer("tx")
    transactions = [
        AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[AddPartitionsToTxnTopic(name="t", partitions=partitions)],
        )
        for name, partitions in (("nobody", (0,)), ("tx", (1, 0)), ("tx", (1, 2)))
    ]
    response = await node.ask(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(transactions=transactions), 5)
    assert [
        (each.transactional_id, [(p.partition_index, p.partition_error_code) for p in each.topic_results[0].results_by_partition])
        for each in response.results_by_transaction
    ] == [
        ("nobody", [(0, ErrorCode.INVALID_PRODUCER_ID_MAPPING)]),
        ("tx", [(1, ErrorCode.NONE), (0, ErrorCode.NONE)]),
        ("tx", [(1, ErrorCode.OPERATION_NOT_ATTEMPTED), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


async def test_no_transaction_is_asked_for_and_none_answered(node):
    response = await node.ask(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest(), 5)
    assert list(response.results_by_transaction) == []
