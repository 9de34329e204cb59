"""What clients are answered: every response is read as kio reads it, and nothing is read of one that is broken."""

import random
from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.client_codecs import response_decoder
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import messages
from tests.cases import case, each_case
from tests.kio_schemas import load
from tests.protocol.kio_messages import encoded, every_api, fields_of, known_versions, same_value
from tests.protocol.random_messages import random_message

REWRITTEN = {ApiKey.FIND_COORDINATOR: 3, ApiKey.OFFSET_FETCH: 7, ApiKey.ADD_PARTITIONS_TO_TXN: 3}
CORRELATION_ID = b"\0\0\0\7"


def header(api_key, version):
    flexible = load(api_key, version, "response").__flexible__ and api_key != ApiKey.API_VERSIONS
    return CORRELATION_ID + b"\0" if flexible else CORRELATION_ID


def frame_of(api_key, version, message):
    return header(api_key, version) + encoded(message)


def plain_versions(api_key):
    return known_versions(api_key, "response", above=REWRITTEN.get(api_key, -1))


@every_api
def test_every_response_is_read_as_kio_wrote_it(api_key):
    for version in plain_versions(api_key):
        entity = load(api_key, version, "response")
        rng = random.Random(f"{api_key}-{version}")
        with case(f"v{version}"):
            for _ in range(10):
                message = random_message(entity, rng)
                expected = fields_of(message)
                ours = response_decoder(api_key, version)(frame_of(api_key, version, message))
                assert {name: same_value(getattr(ours, name), value) for name, value in expected.items()} == expected


@each_case(("api_key", "version"), [(api_key, version) for api_key in ApiKey for version in plain_versions(api_key)])
def test_a_response_that_ends_too_soon_is_malformed(api_key, version):
    entity = load(api_key, version, "response")
    frame = frame_of(api_key, version, random_message(entity, random.Random(version)))
    for size in {4, len(frame) // 2, len(frame) - 1} - {len(frame)}:
        with pytest.raises(MalformedMessage):
            response_decoder(api_key, version)(frame[:size])


@each_case("version", [4, 11, 12, 18])
def test_records_of_a_fetch_are_views_of_the_frame(version):
    api = messages(ApiKey.FETCH)
    partition = api.PartitionData(partition_index=3, records=b"what lies in the log")
    topic = api.FetchableTopicResponse(topic="t", topic_id=UUID(int=9), partitions=[partition])
    chunks = response_encoder(ApiKey.FETCH, version)(7, api.FetchResponse(responses=[topic]))
    memory = bytearray(b"".join(map(bytes, chunks))[4:])

    read = response_decoder(ApiKey.FETCH, version)(memoryview(memory).toreadonly())

    [read_topic] = read.responses
    assert (read_topic.topic, read_topic.topic_id) == (("t", None) if version < 13 else ("", UUID(int=9)))
    records = read_topic.partitions[0].records
    assert records == b"what lies in the log"
    memory[:] = bytes(len(memory))
    assert records == bytes(len(records))


def test_a_time_that_is_not_there_is_minus_one():
    api = messages(ApiKey.DESCRIBE_TRANSACTIONS)
    response = api.DescribeTransactionsResponse(
        transaction_states=[api.TransactionState(transactional_id="t", transaction_start_time_ms=-1)]
    )
    assert there_and_back(ApiKey.DESCRIBE_TRANSACTIONS, 0, response).transaction_states[0].transaction_start_time_ms == -1


@each_case("version", range(4))
def test_the_one_coordinator_found_is_a_list_of_one(version):
    api = messages(ApiKey.FIND_COORDINATOR)
    found = api.Coordinator(node_id=3, host="h", port=9092, error_code=15, error_message=None if version == 0 else "no")
    response = api.FindCoordinatorResponse(coordinators=(found,), throttle_time_ms=0 if version == 0 else 5)
    assert there_and_back(ApiKey.FIND_COORDINATOR, version, response) == response


@each_case("version", range(1, 8))
def test_the_offsets_of_one_group_are_a_list_of_one(version):
    api = messages(ApiKey.OFFSET_FETCH)
    partition = api.OffsetFetchResponsePartitions(
        partition_index=1, committed_offset=7, committed_leader_epoch=4 if version >= 5 else -1, metadata="m", error_code=2
    )
    topic = api.OffsetFetchResponseTopics(name="t", partitions=(partition,))
    group = api.OffsetFetchResponseGroup(topics=(topic,), error_code=16 if version >= 2 else 0)
    response = api.OffsetFetchResponse(groups=(group,), throttle_time_ms=5 if version >= 3 else 0)
    assert there_and_back(ApiKey.OFFSET_FETCH, version, response) == response


@each_case("version", range(4))
def test_what_was_added_to_one_transaction_is_a_list_of_one(version):
    api = messages(ApiKey.ADD_PARTITIONS_TO_TXN)
    partition = api.AddPartitionsToTxnPartitionResult(partition_index=1, partition_error_code=3)
    topics = [api.AddPartitionsToTxnTopicResult(name="t", results_by_partition=(partition,))]
    result = api.AddPartitionsToTxnResult(topic_results=topics)
    response = api.AddPartitionsToTxnResponse(results_by_transaction=[result], throttle_time_ms=8)
    back = there_and_back(ApiKey.ADD_PARTITIONS_TO_TXN, version, response)
    [topic] = back.results_by_transaction[0].topic_results
    [added] = topic.results_by_partition
    assert (back.throttle_time_ms, topic.name, added) == (8, "t", partition)


def there_and_back(api_key, version, response):
    frame = b"".join(response_encoder(api_key, version)(7, response))
    return response_decoder(api_key, version)(frame[4:])
