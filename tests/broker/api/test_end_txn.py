"""EndTxn over a raw socket: how a transaction ends, in the words of every version."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.broker.api.transaction_requests import add, commit_offset, committed, described, end, init
from tests.raw_client import RawClient, fetch_fields, produce_fields


@pytest.mark.parametrize("version", range(5))
def test_a_transaction_is_ended_in_every_version(client, new_id, topic, version):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    assert end(client, name, producer, version) == ErrorCode.NONE
    assert described(client, name).transaction_state == "CompleteCommit"
    assert end(client, name, producer, version, committed=False) == ErrorCode.INVALID_TXN_STATE


def test_since_version_5_the_next_transaction_has_an_epoch_of_its_own(client, new_id, topic):
    name = new_id()
    producer = init(client, name)
    add(client, name, producer, topic[0])
    answer = end(client, name, producer, 5, committed=False)
    assert (answer.producer_id, answer.producer_epoch) == (producer[0], 1)


def test_who_looks_after_the_commit_was_answered_sees_all_of_it(broker, client, new_id, topic, new_name):
    name, group = new_id(), new_name()
    producer = init(client, name)
    batch = {"producer_id": producer[0], "transactional": True}
    with RawClient(broker.host, broker.port) as reader:
        for number in range(50):
            records = build_batch([Record(value=b"v")], producer_epoch=producer[1], base_sequence=0, **batch)
            fields = produce_fields(topic[0], records) | {"transactional_id": name}
            produced = client.call(ApiKey.PRODUCE, 12, **fields).responses[0].partition_responses[0]
            assert produced.error_code == ErrorCode.NONE
            assert commit_offset(client, name, producer, group, topic[0], version=5) == ErrorCode.NONE
            answer = end(client, name, producer, version=5)
            producer = (answer.producer_id, answer.producer_epoch)
            fetched = reader.call(ApiKey.FETCH, 12, **fetch_fields(topic[0], 2 * number, isolation_level=1))
            assert fetched.responses[0].partitions[0].last_stable_offset == 2 * number + 2
            assert committed(reader, group, topic[0], require_stable=True) == 5
