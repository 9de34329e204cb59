"""Canonical responses, encoded for every served version, read back by kio."""

import random
from typing import Any

import pytest
from kio.serial import entity_reader

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import load, messages
from odradek.protocol.readers import compile_reader
from tests import kio_schemas
from tests.cases import case, each_case
from tests.protocol.kio_messages import assert_written, encoded, every_served_api, served_versions
from tests.protocol.random_messages import random_message

# Their older versions are written from the canonical response in another shape.
_OTHER_SHAPES = {ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH, ApiKey.ADD_PARTITIONS_TO_TXN}


def _sent(api_key: ApiKey, version: int, response: Any) -> bytes:
    return b"".join(
        chunk if isinstance(chunk, bytes) else chunk.read() for chunk in response_encoder(api_key, version)(77, response)
    )


def _read_back(api_key: ApiKey, version: int, frame: bytes) -> Any:
    entity = kio_schemas.load(api_key, version, "response")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 77
    start = 9 if entity.__flexible__ and api_key != ApiKey.API_VERSIONS else 8
    message, size = entity_reader(entity)(frame, start)
    assert start + size == len(frame)
    return message


@each_case("api_key", SERVED)
def test_a_response_of_defaults_can_be_read_in_every_version(api_key):
    m = messages(api_key)
    fields = {}
    if api_key == ApiKey.FIND_COORDINATOR:
        fields["coordinators"] = [m.Coordinator(key="g")]
    if api_key == ApiKey.OFFSET_FETCH:
        fields["groups"] = [m.OffsetFetchResponseGroup(group_id="g")]
    if api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
        fields["results_by_transaction"] = [m.AddPartitionsToTxnResult()]
    for version in served_versions(api_key, "response"):
        with case(f"v{version}"):
            _read_back(api_key, version, _sent(api_key, version, m.response(**fields)))


@every_served_api
def test_a_response_is_written_as_the_writer_of_its_fields_alone_writes_it(api_key):
    """What an encoder knows of a frequent response changes none of its bytes."""
    m = messages(api_key)
    for version in served_versions(api_key, "response"):
        entity = kio_schemas.load(api_key, version, "response")
        rng = random.Random(f"{api_key}-{version}")
        read = compile_reader(load(api_key, version, "response"), m.classes["response"])
        with case(f"v{version}"):
            for _ in range(5):
                expected = encoded(random_message(entity, rng))
                response, _ = read(expected, 0)
                if type(response) is not m.response or api_key in _OTHER_SHAPES:
                    continue
                assert_written(entity, _sent(api_key, version, response)[-len(expected) or 8 :], expected)


def test_a_response_cannot_be_changed():
    response = messages(ApiKey.HEARTBEAT).HeartbeatResponse()
    with pytest.raises(AttributeError):
        response.error_code = 1


@each_case("version", range(7))
def test_a_coordinator_is_told_in_the_shape_of_each_version(version):
    m = messages(ApiKey.FIND_COORDINATOR)
    coordinator = m.Coordinator(key="g", node_id=3, host="h", port=9, error_code=ErrorCode.NONE)
    frame = _sent(ApiKey.FIND_COORDINATOR, version, m.FindCoordinatorResponse(coordinators=[coordinator]))
    message = _read_back(ApiKey.FIND_COORDINATOR, version, frame)
    told = message if version < 4 else message.coordinators[0]
    assert (told.node_id, told.host, told.port) == (3, "h", 9)


class _Slice:
    """As the log's: it has a length and is read late."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def read(self) -> bytes:
        return self._data


@each_case("version", range(4, 19))
def test_records_that_nobody_has_read_are_passed_on_as_they_are(version):
    m = messages(ApiKey.FETCH)
    records = _Slice(b"r" * 300)
    partition = m.PartitionData(partition_index=2, high_watermark=9, records=records)
    topic = m.FetchableTopicResponse(topic="t", partitions=[partition])
    chunks = response_encoder(ApiKey.FETCH, version)(77, m.FetchResponse(responses=[topic]))
    assert any(chunk is records for chunk in chunks)
    message = _read_back(ApiKey.FETCH, version, _sent(ApiKey.FETCH, version, m.FetchResponse(responses=[topic])))
    (read_back,) = message.responses[0].partitions
    assert read_back.records == b"r" * 300
    assert read_back.high_watermark == 9
