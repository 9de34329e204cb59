"""Requests of every served version become the one canonical message."""

import datetime as dt
import importlib
import random
import uuid
from typing import Any

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i64

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder
from odradek.protocol.client_codecs import request_header
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.messages import messages
from tests.cases import case, each_case
from tests.kio_schemas import load
from tests.protocol.kio_messages import encoded, every_served_api, served_versions
from tests.protocol.random_messages import random_message
from tests.raw_client import encode_request


def encode(message: Any) -> bytes:
    # No tags in the header of a flexible request; a header v1 ends where the body begins.
    return (b"\x00" if type(message).__flexible__ else b"") + encoded(message)


@every_served_api
def test_every_served_version_decodes_to_the_canonical_class(api_key):
    for version in served_versions(api_key, "request"):
        rng = random.Random(f"{api_key}-{version}")
        entity = load(api_key, version, "request")
        with case(f"v{version}"):
            for _ in range(10):
                request = request_decoder(api_key, version)(encode(random_message(entity, rng)), 0)
                assert type(request) is messages(api_key).request
                assert_canonical(api_key, request)


def assert_canonical(api_key: ApiKey, message: Any) -> None:
    """Every struct is a canonical class and every array a tuple: nothing in a request can be changed."""
    classes = set(messages(api_key).classes["request"].values())
    for value in message:
        if isinstance(value, tuple) and type(value) is not tuple:
            assert type(value) in classes
            assert_canonical(api_key, value)
        elif type(value) is tuple and api_key != ApiKey.PRODUCE:
            for item in value:
                if isinstance(item, tuple):
                    assert type(item) in classes
                    assert_canonical(api_key, item)
        else:
            assert value is None or isinstance(value, str | bytes | int | float | uuid.UUID | tuple)


def test_a_request_cannot_be_changed():
    request = _request(ApiKey.HEARTBEAT, 4, group_id="g", generation_id=1, member_id="m", group_instance_id=None)
    with pytest.raises(AttributeError):
        request.group_id = "another"


@each_case("api_key", SERVED)
def test_a_request_cut_short_is_malformed_wherever_it_is_cut(api_key):
    for version in served_versions(api_key, "request"):
        rng = random.Random(f"cut-{api_key}-{version}")
        whole = encode(random_message(load(api_key, version, "request"), rng))
        with case(f"v{version}"):
            for end in range(len(whole)):
                with pytest.raises(MalformedMessage):
                    request_decoder(api_key, version)(whole[:end], 0)


def _request(api_key: ApiKey, version: int, **fields: Any) -> Any:
    return request_decoder(api_key, version)(encode(load(api_key, version, "request")(**fields)), 0)


def test_a_request_outlives_the_buffer_that_it_was_read_from():
    entity = load(ApiKey.JOIN_GROUP, 9, "request")
    body = bytearray(encode(random_message(entity, random.Random("buffer"))))
    expected = request_decoder(ApiKey.JOIN_GROUP, 9)(bytes(body), 0).protocols[0].metadata

    request = request_decoder(ApiKey.JOIN_GROUP, 9)(memoryview(body), 0)
    body[:] = bytes(len(body))

    assert request.protocols[0].metadata == expected


def test_no_topics_means_all_of_them_only_in_metadata_version_0():
    assert _request(ApiKey.METADATA, 0, topics=()).topics is None
    assert _request(ApiKey.METADATA, 1, topics=()).topics == ()


def test_auto_creation_is_allowed_where_a_version_cannot_say():
    assert _request(ApiKey.METADATA, 1, topics=None).allow_auto_topic_creation is True


def test_one_coordinator_key_becomes_a_list_of_one():
    assert _request(ApiKey.FIND_COORDINATOR, 2, key="g", key_type=1).coordinator_keys == ("g",)


def test_a_fetch_of_one_groups_offsets_becomes_a_list_of_one():
    from kio.schema.offset_fetch.v7.request import OffsetFetchRequestTopic as Topic

    topic = Topic(name="t", partition_indexes=(1, 2))
    request = _request(ApiKey.OFFSET_FETCH, 7, group_id="g", topics=(topic,), require_stable=True)
    (group,) = request.groups
    assert (group.group_id, group.topics[0].name, group.topics[0].partition_indexes) == ("g", "t", (1, 2))
    assert group.topics[0].topic_id is None
    assert _request(ApiKey.OFFSET_FETCH, 7, group_id="g", topics=None, require_stable=True).groups[0].topics is None


@pytest.mark.parametrize("version", [1, 2, 5])
def test_null_is_not_a_list_of_partitions_to_fetch_offsets_of(version):
    with pytest.raises(MalformedMessage):
        request_decoder(ApiKey.OFFSET_FETCH, version)(b"\x00\x01g\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff", 0)


def test_all_topics_cannot_be_asked_for_before_version_2():
    with pytest.raises(MalformedMessage):
        request_decoder(ApiKey.OFFSET_FETCH, 1)(b"\x00\x01g\xff\xff\xff\xff", 0)
    assert request_decoder(ApiKey.OFFSET_FETCH, 2)(b"\x00\x01g\xff\xff\xff\xff", 0).groups[0].topics is None


def test_topic_names_to_delete_become_topics():
    (topic,) = _request(ApiKey.DELETE_TOPICS, 3, topic_names=("t",), timeout=_seconds(1)).topics
    assert (topic.name, topic.topic_id) == ("t", None)


def test_durations_are_milliseconds():
    assert _request(ApiKey.DELETE_TOPICS, 3, topic_names=(), timeout=_seconds(1.5)).timeout_ms == 1500


def test_a_fetch_by_name_and_by_id_differ_in_that_alone():
    from kio.schema.fetch.v12.request import FetchTopic as ByName
    from kio.schema.fetch.v13.request import FetchTopic as ById

    common = {"max_wait": _seconds(0.5), "min_bytes": 1, "isolation_level": 0, "replica_id": -1, "forgotten_topics_data": ()}
    by_name = _request(ApiKey.FETCH, 12, topics=(ByName(topic="t", partitions=()),), **common)
    topic_id = uuid.uuid4()
    by_id = _request(ApiKey.FETCH, 13, topics=(ById(topic_id=topic_id, partitions=()),), **common)
    assert (by_name.topics[0].topic, by_name.topics[0].topic_id) == ("t", None)
    assert (by_id.topics[0].topic, by_id.topics[0].topic_id) == ("", topic_id)
    assert by_name.max_wait_ms == by_id.max_wait_ms == 500


@each_case(
    ("api_key", "version", "fields"),
    [
        (ApiKey.HEARTBEAT, 4, lambda text: {"group_id": text}),
        (ApiKey.FIND_COORDINATOR, 4, lambda text: {"coordinator_keys": [text]}),
        (ApiKey.PRODUCE, 9, lambda text: {"transactional_id": text}),
        (ApiKey.OFFSET_COMMIT, 8, lambda text: {"group_id": text}),
        (ApiKey.TXN_OFFSET_COMMIT, 3, lambda text: {"member_id": text}),
    ],
)
def test_a_compact_string_is_no_longer_than_any_other(api_key, version, fields):
    decode = request_decoder(api_key, version)
    start = len(request_header(api_key, version, 1, "raw", flexible=False))

    decode(encode_request(api_key, version, **fields("a" * 32_767))[4:], start)
    with pytest.raises(MalformedMessage, match="32768"):
        decode(encode_request(api_key, version, **fields("a" * 32_768))[4:], start)


def _seconds(seconds: float) -> Any:
    return dt.timedelta(seconds=seconds)


def test_in_sync_replicas_were_ids_before_version_3():
    module = load(ApiKey.ALTER_PARTITION, 2, "request").__module__
    entities = importlib.import_module(module)
    partition = entities.PartitionData(
        partition_index=i32(1),
        leader_epoch=i32(2),
        new_isr=(BrokerId(4), BrokerId(5)),
        leader_recovery_state=i8(1),
        partition_epoch=i32(3),
    )
    topic = entities.TopicData(topic_id=uuid.UUID(int=9), partitions=(partition,))
    request = _request(ApiKey.ALTER_PARTITION, 2, broker_id=BrokerId(4), broker_epoch=i64(8), topics=(topic,))
    assert request == AlterPartitionRequest(
        4,
        8,
        (RequestTopicData(uuid.UUID(int=9), (RequestPartitionData(1, 2, (BrokerState(4, -1), BrokerState(5, -1)), 1, 3),)),),
    )
