"""What clients send: kio reads every canonical request as it was meant, in every version, or the encoder says that it cannot."""

import random
from uuid import UUID

import pytest
from kio.serial import entity_reader

from odradek.protocol.api_keys import NEWEST_VERSION, OLDEST_VERSION, ApiKey
from odradek.protocol.client_codecs import request_encoder
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.frames import read_request_header, skip_tagged_fields
from odradek.protocol.messages import messages
from odradek.protocol.produce_request import ProduceRequest
from tests.cases import case, each_case
from tests.kio_schemas import load, plain, versions
from tests.protocol.kio_messages import canonical, every_api, known_versions
from tests.protocol.random_messages import random_message

REWRITTEN = {
    ApiKey.PRODUCE: 13,
    ApiKey.METADATA: 0,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
}


def read_by_kio(api_key, version, frame, correlation_id=7, client_id="me"):
    """Kio's request in a whole frame, once length and header are what they should be."""
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    *header, position = read_request_header(frame[4:])
    assert header == [api_key, version, correlation_id, client_id]
    entity = load(api_key, version, "request")
    if entity.__flexible__:
        position = skip_tagged_fields(frame[4:], position)
    request, size = entity_reader(entity)(frame[4:], position)
    assert 4 + position + size == len(frame)
    return request


def encoded(api_key, version, request):
    return b"".join(request_encoder(api_key, version)(7, "me", request))


def sent(api_key, version, request):
    return read_by_kio(api_key, version, encoded(api_key, version, request))


@every_api
def test_kio_reads_what_is_sent(api_key):
    classes = messages(api_key).classes["request"]
    for version in known_versions(api_key, "request", above=REWRITTEN.get(api_key, -1)):
        entity = load(api_key, version, "request")
        rng = random.Random(f"{api_key}-{version}")
        with case(f"v{version}"):
            for _ in range(10):
                request = canonical(random_message(entity, rng), classes)
                assert canonical(sent(api_key, version, request), classes) == request


def test_the_oldest_versions_are_kios():
    for key in ApiKey:
        known = versions(key)
        assert (min(known), max(known)) == (OLDEST_VERSION.get(key, 0), NEWEST_VERSION[key])


def test_no_client_id_is_null():
    frame = b"".join(request_encoder(ApiKey.HEARTBEAT, 3)(7, None, messages(ApiKey.HEARTBEAT).HeartbeatRequest()))
    read_by_kio(ApiKey.HEARTBEAT, 3, frame, client_id=None)


def test_records_are_passed_on_without_a_copy():
    records = memoryview(bytes(100))
    chunks = request_encoder(ApiKey.PRODUCE, 9)(7, "me", ProduceRequest(None, -1, 100, [("t", [(0, records)])]))
    assert any(chunk is records for chunk in chunks)


@each_case("version", range(3, 13))
def test_kio_reads_a_produce_to_topics_by_name(version):
    request = ProduceRequest("id", -1, 100, [("t", [(0, b"a"), (2, None)]), ("u", [])])
    read = sent(ApiKey.PRODUCE, version, request)
    assert (read.transactional_id, read.acks, plain(read.timeout)) == ("id", -1, 100)
    assert [
        (topic.name, [(data.index, data.records) for data in topic.partition_data]) for topic in read.topic_data
    ] == request.topics
    refused(ApiKey.PRODUCE, version, ProduceRequest(None, -1, 100, [(bytes(15) + b"9", [])]))


def test_kio_reads_a_produce_to_topics_by_id():
    read = sent(ApiKey.PRODUCE, 13, ProduceRequest(None, 1, 100, [(bytes(15) + b"\x09", [(4, b"a")])]))
    assert [(topic.topic_id, topic.partition_data[0].records) for topic in read.topic_data] == [(UUID(int=9), b"a")]
    refused(ApiKey.PRODUCE, 13, ProduceRequest(None, -1, 100, [("t", [])]))


# The older shapes.


@each_case("version", range(4))
def test_one_coordinator_is_looked_for(version):
    request = messages(ApiKey.FIND_COORDINATOR).FindCoordinatorRequest
    assert sent(ApiKey.FIND_COORDINATOR, version, request(coordinator_keys=["g"])).key == "g"
    refused(ApiKey.FIND_COORDINATOR, version, request(coordinator_keys=["g", "h"]))


@each_case("version", range(1, 8))
def test_one_group_is_asked_for_its_offsets(version):
    classes = messages(ApiKey.OFFSET_FETCH).classes["request"]
    topic = classes["OffsetFetchRequestTopics"](name="t", partition_indexes=[0, 2])
    group = classes["OffsetFetchRequestGroup"](group_id="g", topics=[topic])
    request = sent(ApiKey.OFFSET_FETCH, version, classes["OffsetFetchRequest"](groups=[group]))
    assert request.group_id == "g"
    assert [(topic.name, topic.partition_indexes) for topic in request.topics] == [("t", (0, 2))]
    refused(ApiKey.OFFSET_FETCH, version, classes["OffsetFetchRequest"](groups=[group, group]))


def test_all_topics_of_a_group_are_asked_for_since_version_2():
    classes = messages(ApiKey.OFFSET_FETCH).classes["request"]
    group = classes["OffsetFetchRequestGroup"](group_id="g", topics=None)
    request = classes["OffsetFetchRequest"](groups=[group])
    refused(ApiKey.OFFSET_FETCH, 1, request)
    assert sent(ApiKey.OFFSET_FETCH, 2, request).topics is None


@each_case("version", range(1, 6))
def test_topics_are_deleted_by_name(version):
    api = messages(ApiKey.DELETE_TOPICS)
    request = api.DeleteTopicsRequest(topics=[api.DeleteTopicState(name="a"), api.DeleteTopicState(name="b")], timeout_ms=9)
    assert sent(ApiKey.DELETE_TOPICS, version, request).topic_names == ("a", "b")
    refused(ApiKey.DELETE_TOPICS, version, api.DeleteTopicsRequest(topics=[api.DeleteTopicState(name=None)]))


@pytest.mark.parametrize("version", range(3))
def test_one_member_leaves(version):
    api = messages(ApiKey.LEAVE_GROUP)
    member = api.MemberIdentity(member_id="m")
    assert sent(ApiKey.LEAVE_GROUP, version, api.LeaveGroupRequest(group_id="g", members=[member])).member_id == "m"
    refused(ApiKey.LEAVE_GROUP, version, api.LeaveGroupRequest(group_id="g", members=[member, member]))


@each_case("version", range(4))
def test_partitions_are_added_to_one_transaction(version):
    classes = messages(ApiKey.ADD_PARTITIONS_TO_TXN).classes["request"]
    topic = classes["AddPartitionsToTxnTopic"](name="t", partitions=[1])
    fields = {"transactional_id": "id", "producer_id": 5, "producer_epoch": 6, "topics": [topic]}
    transaction, verified = (
        classes["AddPartitionsToTxnTransaction"](**fields, verify_only=verify_only) for verify_only in (False, True)
    )
    request = sent(ApiKey.ADD_PARTITIONS_TO_TXN, version, classes["AddPartitionsToTxnRequest"](transactions=[transaction]))
    assert (request.v3_and_below_transactional_id, request.v3_and_below_producer_id) == ("id", 5)
    assert (request.v3_and_below_producer_epoch, request.v3_and_below_topics[0].partitions) == (6, (1,))
    refused(ApiKey.ADD_PARTITIONS_TO_TXN, version, classes["AddPartitionsToTxnRequest"](transactions=[verified]))
    refused(ApiKey.ADD_PARTITIONS_TO_TXN, version, classes["AddPartitionsToTxnRequest"](transactions=[transaction] * 2))


def test_all_topics_are_an_empty_list_in_the_first_metadata():
    api = messages(ApiKey.METADATA)
    assert sent(ApiKey.METADATA, 0, api.MetadataRequest(topics=None)).topics == ()
    assert sent(ApiKey.METADATA, 0, api.MetadataRequest(topics=[api.MetadataRequestTopic(name="t")])).topics[0].name == "t"
    refused(ApiKey.METADATA, 0, api.MetadataRequest(topics=[]))


def test_the_first_update_of_features_downgrades_or_does_not():
    api = messages(ApiKey.UPDATE_FEATURES)

    def request(upgrade_type, **fields):
        update = api.FeatureUpdateKey(feature="f", max_version_level=1, upgrade_type=upgrade_type)
        return api.UpdateFeaturesRequest(feature_updates=[update], **fields)

    assert [sent(ApiKey.UPDATE_FEATURES, 0, request(kind)).feature_updates[0].allow_downgrade for kind in (1, 2)] == [False, True]
    refused(ApiKey.UPDATE_FEATURES, 0, request(3))
    refused(ApiKey.UPDATE_FEATURES, 0, request(1, validate_only=True))


def test_the_first_list_of_config_resources_is_of_client_metrics():
    request = messages(ApiKey.LIST_CONFIG_RESOURCES).ListConfigResourcesRequest
    sent(ApiKey.LIST_CONFIG_RESOURCES, 0, request(resource_types=[16]))
    refused(ApiKey.LIST_CONFIG_RESOURCES, 0, request(resource_types=[2]))


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(KafkaError) as refusal:
        encoded(ApiKey.HEARTBEAT, 3, messages(ApiKey.HEARTBEAT).HeartbeatRequest(generation_id=2**31))
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


def refused(api_key, version, request):
    with pytest.raises(KafkaError) as refusal:
        encoded(api_key, version, request)
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION
