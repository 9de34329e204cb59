"""What the broker does with bytes that no well-behaved client would send, over a real socket beside a connection that goes on."""

import json
import re
import socket
import struct
import sys
import time
from pathlib import Path

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import HEADER_SIZE
from odradek.protocol.records import Record, build_batch, read_records
from tests.raw_client import RawClient, encode_request, fetch_fields, produce_fields

NONE, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_REQUIRED_ACKS, UNSUPPORTED_VERSION = 0, 2, 10, 21, 35
INVALID_TOPIC_EXCEPTION = 17
UNKNOWN_TOPIC_OR_PARTITION, INVALID_TIMESTAMP, INVALID_REQUEST, INVALID_RECORD, UNKNOWN_TOPIC_ID = 3, 32, 42, 87, 100
LOG_TIMEOUT_S = 10.0


@pytest.fixture
def other(broker):
    """A well-behaved client's connection."""
    with RawClient(broker.host, broker.port) as connection:
        assert is_served(connection)
        yield connection


def is_served(client):
    return client.call(ApiKey.API_VERSIONS, 4, client_software_name="raw", client_software_version="1").error_code == NONE


@pytest.fixture
def topic(new_name, client):
    name = new_name()
    create_topic(client, name)
    return name


def create_topic(client, name, partitions=1, **configs):
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()],
    }
    (created,) = client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000).topics
    assert created.error_code == NONE
    return created.topic_id


@pytest.fixture
def logged_of(broker):
    """What has been logged of an address since the test began: earlier tests' clients may have had the same port."""
    begin = len(broker.stderr)
    return lambda address: [json.loads(line) for line in broker.stderr[begin:].splitlines() if address in line]


def wait_for_log_line(logged_of, address):
    """The one line of ``address``; that there is no second one, its connection being closed, is seen at once."""
    deadline = time.monotonic() + LOG_TIMEOUT_S
    while not (lines := logged_of(address)):
        assert time.monotonic() < deadline, f"nothing logged of {address}"
    (line,) = lines
    return line


METADATA = encode_request(ApiKey.METADATA, 12, topics=())
BAD_FRAMES = {
    "negative length": (b"\xff\xff\xff\xff", "a frame has -1 bytes"),
    "shorter than a header": (struct.pack(">i", 4) + b"\x00\x12\x00\x00", "a frame has 4 bytes"),
    "over socket.request.max.bytes": (struct.pack(">i", 200_000_000), "a frame has 200000000 bytes"),
    "an HTTP request": (b"GET / HTTP/1.1\r\n\r\n", "a frame has 1195725856 bytes"),
    "client id past the end": (struct.pack(">ihhih", 10, 3, 12, 1, 500), "the client id has 500 bytes"),
    "client id that is not text": (struct.pack(">ihhih", 12, 3, 12, 1, 2) + b"\xff\xfe", "the client id is not UTF-8"),
    "body cut short": (struct.pack(">i", len(METADATA) - 6) + METADATA[4:-2], "METADATA v12"),
    "an array of two billion": (
        struct.pack(">ihhihi", 14, ApiKey.METADATA, 1, 1, -1, 2**31 - 1),
        "METADATA v1",
    ),
    "unknown API key": (struct.pack(">ihhih", 10, 999, 0, 1, -1), "API key 999 is unknown"),
    "negative API key": (struct.pack(">ihhih", 10, -1, 0, 1, -1), "API key -1 is unknown"),
    "API that brokers do not serve": (struct.pack(">ihhih", 10, 4, 0, 1, -1), "API key 4 is unknown"),
    "version too new": (struct.pack(">ihhih", 10, ApiKey.METADATA, 99, 1, -1), "METADATA version 99"),
    "version no longer served": (struct.pack(">ihhih", 10, ApiKey.FETCH, 0, 1, -1), "FETCH version 0"),
    "negative version": (struct.pack(">ihhih", 10, ApiKey.METADATA, -1, 1, -1), "METADATA version -1"),
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_a_request_that_is_none_closes_its_connection_with_one_log_line_and_no_other(logged_of, client, other, kind):
    frame, cause = BAD_FRAMES[kind]
    assert is_served(client)
    client.socket.sendall(frame)
    assert client.is_closed_by_peer()
    line = wait_for_log_line(logged_of, client.address)
    assert line["peer"] == client.address
    assert cause in line["cause"]
    assert line["level"] == "warning"
    assert is_served(other)


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_what_came_before_a_malformed_request_is_answered(client, kind):
    frame, _ = BAD_FRAMES[kind]
    client._correlation_id = 1
    client.socket.sendall(encode_request(ApiKey.API_VERSIONS, 0, 1) + frame)
    assert client.receive(ApiKey.API_VERSIONS, 0).error_code == NONE
    assert client.is_closed_by_peer()


def test_what_waits_before_a_malformed_request_is_answered(client, other, topic):
    client._correlation_id = 1
    client.socket.sendall(encode_request(ApiKey.FETCH, 12, 1, **fetch_fields(topic, 0, max_wait_ms=30_000)) + b"\xff\xff\xff\xff")
    other.produce(topic, b"x")
    assert values_of(client.receive(ApiKey.FETCH, 12)) == [b"x"]
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("version", [6, 99, 32767, -1])
def test_an_unsupported_api_versions_is_answered_in_version_0_with_its_own_versions(client, version):
    # A header of version 2, and two compact strings in whatever comes after version 5.
    request = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 1, -1) + b"\x00\x04raw\x021\x00"
    client.socket.sendall(struct.pack(">i", len(request)) + request)
    client._correlation_id = 1
    response = client.receive(ApiKey.API_VERSIONS, 0)
    assert response.error_code == UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(ApiKey.API_VERSIONS, 0, 5)]
    assert is_served(client)


@pytest.mark.parametrize("name", ["", "-", "has space", "ends-", "ü"])
def test_a_client_software_name_that_is_none_is_refused(client, name):
    response = client.call(ApiKey.API_VERSIONS, 3, client_software_name=name, client_software_version="1")
    assert response.error_code == INVALID_REQUEST


def test_api_versions_lists_what_is_served(client):
    listed = client.call(ApiKey.API_VERSIONS, 4, client_software_name="raw", client_software_version="1").api_keys
    assert {key.api_key: (key.min_version, key.max_version) for key in listed} == {
        key: (served.advertised_min, served.max_version)
        for key, served in SERVED.items()
        # Nobody subscribes to clients' metrics here.
        if key not in {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    }


def test_a_client_id_may_be_null_or_empty_or_not_ascii(client):
    for client_id in (None, "", "ünï"):
        client.socket.sendall(encode_request(ApiKey.METADATA, 1, 7, client_id, topics=[]))
        client._correlation_id = 7
        assert client.receive(ApiKey.METADATA, 1).topics == ()


def test_a_frame_may_come_byte_by_byte(client):
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in encode_request(ApiKey.METADATA, 1, 9, topics=[]):
        client.socket.sendall(bytes((byte,)))
    client._correlation_id = 9
    assert client.receive(ApiKey.METADATA, 1).topics == ()


def test_a_topic_that_is_asked_for_twice_is_told_once(client, topic):
    asked = [{"name": topic}, {"name": "unknown"}, {"name": topic}, {"name": "unknown"}]

    topics = client.call(ApiKey.METADATA, 4, topics=asked, allow_auto_topic_creation=False).topics

    assert [each.name for each in topics] == [topic, "unknown"]


@pytest.mark.parametrize("sent", [0, 3, 4, 20])
def test_a_connection_that_ends_within_a_frame_is_nobodys_trouble(broker, logged_of, other, sent):
    with RawClient(broker.host, broker.port) as client:
        client.socket.sendall(METADATA[:sent])
        address = client.address
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed_by_peer()
    assert is_served(other)
    assert logged_of(address) == []


def test_a_reset_connection_is_nobodys_trouble(broker, logged_of, other, topic):
    with RawClient(broker.host, broker.port) as client:
        client.send(ApiKey.FETCH, 12, **fetch_fields(topic, 0, max_wait_ms=30_000))
        address = client.address
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # The abandoned fetch waits on; the record completes it.
    assert other.produce(topic, b"x").error_code == NONE
    assert logged_of(address) == []


def test_pipelined_requests_are_answered_in_order_though_one_of_them_waits(client, other, topic):
    waiting = fetch_fields(topic, 0, max_wait_ms=30_000)
    requests = [
        (ApiKey.API_VERSIONS, 0, {}),
        (ApiKey.FETCH, 12, waiting),
        (ApiKey.METADATA, 1, {"topics": [{"name": topic}]}),
        (ApiKey.PRODUCE, 9, produce_fields(topic, build_batch([Record(value=b"mine")]))),
        (ApiKey.FETCH, 12, fetch_fields(topic, 0)),
    ]
    client.socket.sendall(
        b"".join(encode_request(key, version, number, **fields) for number, (key, version, fields) in enumerate(requests))
    )
    client._correlation_id = 0
    client.receive(ApiKey.API_VERSIONS, 0)
    other.produce(topic, b"theirs")
    answers = []
    for number, (key, version, _) in enumerate(requests[1:], 1):
        client._correlation_id = number
        answers.append(client.receive(key, version))
    assert values_of(answers[0]) == [b"theirs"]
    assert values_of(answers[3]) == [b"theirs", b"mine"]


def values_of(fetched, partition=0):
    data = fetched.responses[0].partitions[partition]
    assert data.error_code == NONE
    return list(values_in(data.records or b""))


def values_in(records):
    position = 0
    while position < len(records):
        yield from (record.value for record in read_records(records, position))
        position += 12 + int.from_bytes(records[position + 8 : position + 12], "big")


def test_unanswered_produces_do_not_disturb_the_order(client, topic):
    batch = build_batch([Record(value=b"x")])
    client.socket.sendall(
        encode_request(ApiKey.PRODUCE, 9, 1, **produce_fields(topic, batch, acks=0))
        + encode_request(ApiKey.PRODUCE, 9, 2, **produce_fields(topic, batch, acks=1))
        + encode_request(ApiKey.PRODUCE, 9, 3, **produce_fields(topic, batch, acks=0))
        + encode_request(ApiKey.METADATA, 1, 4, topics=[])
    )
    client._correlation_id = 2
    assert client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].base_offset == 1
    client._correlation_id = 4
    client.receive(ApiKey.METADATA, 1)
    assert values_of(client.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0))) == [b"x"] * 3


def test_a_failed_produce_without_acknowledgement_closes_the_connection(client, other):
    client.produce("never-created", b"x", acks=0)
    assert client.is_closed_by_peer()
    assert is_served(other)


def test_acks_that_there_are_not_are_refused(client, topic):
    assert client.produce(topic, b"x", acks=2).error_code == INVALID_REQUIRED_ACKS


def test_a_batch_with_a_wrong_checksum_is_refused_and_not_written(client, topic):
    batch = bytearray(build_batch([Record(value=b"x")]))
    batch[-1] ^= 1
    assert client.produce_records(topic, bytes(batch)).error_code == CORRUPT_MESSAGE
    assert client.produce(topic, b"good").base_offset == 0


@pytest.mark.parametrize("records", [None, b"", b"x" * 10], ids=["null", "empty", "short"])
def test_a_partition_without_a_batch_is_refused(client, topic, records):
    assert client.produce_records(topic, records).error_code == INVALID_RECORD


def test_two_batches_for_a_partition_are_refused(client, topic):
    batch = build_batch([Record(value=b"x")])
    assert client.produce_records(topic, batch + batch).error_code == INVALID_RECORD


def test_each_partition_of_a_produce_has_its_own_result(client, new_name):
    name = new_name()
    create_topic(client, name, 2)
    batch = build_batch([Record(value=b"x")])
    corrupt = batch[:-1] + b"?"
    partitions = [{"index": 0, "records": batch}, {"index": 1, "records": corrupt}, {"index": 2, "records": batch}]
    topics = [
        {"name": name, "partition_data": partitions},
        {"name": "never-created", "partition_data": [{"index": 0, "records": batch}]},
    ]
    response = client.call(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=1000, topic_data=topics)
    assert {(topic.name, each.index): each.error_code for topic in response.responses for each in topic.partition_responses} == {
        (name, 0): NONE,
        (name, 1): CORRUPT_MESSAGE,
        (name, 2): UNKNOWN_TOPIC_OR_PARTITION,
        ("never-created", 0): UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_records_that_are_refused_are_named_by_their_place_in_the_batch(client, new_name):
    name = new_name()
    create_topic(client, name, cleanup_policy="compact")
    batch = build_batch([Record(key=b"k", value=b"x"), Record(value=b"no key"), Record(key=b"k"), Record(value=b"no key")])
    answer = client.produce_records(name, batch)
    assert answer.error_code == INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert all(error.batch_index_error_message for error in answer.record_errors)
    assert answer.error_message
    assert client.produce_records(name, batch, version=7).error_code == INVALID_RECORD


def test_a_timestamp_too_far_in_the_future_is_refused(client, topic):
    future_ms = time.time_ns() // 1_000_000 + 2 * 60 * 60 * 1000
    answer = client.produce_records(topic, build_batch([Record(value=b"x", timestamp=future_ms)]))
    assert answer.error_code == INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0]


def test_a_producer_that_sends_its_batch_again_gets_the_first_answer(client, topic):
    producer_id = client.call(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1000).producer_id
    batch = build_batch([Record(value=b"x")], producer_id=producer_id, producer_epoch=0, base_sequence=0)
    first, again = client.produce_records(topic, batch), client.produce_records(topic, batch)
    assert (first.base_offset, again.base_offset, again.error_code) == (0, 0, NONE)
    assert len(values_of(client.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0)))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_client_that_does_not_read_costs_no_more_memory_than_one_answer(broker, other, topic):
    for _ in range(8):
        assert other.produce(topic, b"x" * 1_000_000).error_code == NONE
    other.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0))
    before_kib = resident_kib(broker)
    with RawClient(broker.host, broker.port, receive_buffer_bytes=4096) as slow:
        asked = 12
        for number in range(asked):
            slow.socket.sendall(encode_request(ApiKey.FETCH, 12, number, **fetch_fields(topic, 0, partition_max_bytes=8 << 20)))
        # Answers to the other connection show that the broker has seen the requests and goes on.
        for _ in range(20):
            assert is_served(other)
        grown_kib = resident_kib(broker) - before_kib
        answers = 0
        for number in range(asked):
            slow._correlation_id = number
            answers += len(values_of(slow.receive(ApiKey.FETCH, 12)))
    assert grown_kib < 32 * 1024
    assert answers == asked * 8


def resident_kib(broker):
    (match,) = re.findall(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{broker.pid}/status").read_text(), re.MULTILINE)
    return int(match)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_frame_that_announces_much_costs_nothing_before_it_comes(broker, other):
    before_kib = resident_kib(broker)
    clients = [RawClient(broker.host, broker.port) for _ in range(5)]
    for client in clients:
        client.socket.sendall(struct.pack(">i", 90_000_000) + bytes(1000))
    # What others are answered after this, the broker answers with those bytes behind it.
    for _ in clients:
        assert is_served(other)
    grown_kib = resident_kib(broker) - before_kib
    for client in clients:
        client.socket.close()
    assert grown_kib < 10 * 1024


def test_a_batch_that_is_exactly_too_large_is_refused(client, new_name):
    name = new_name()
    batch = build_batch([Record(value=b"x" * 100)])
    create_topic(client, name, max_message_bytes=len(batch))
    assert client.produce_records(name, batch).error_code == NONE
    assert client.produce_records(name, build_batch([Record(value=b"x" * 101)])).error_code == MESSAGE_TOO_LARGE
    assert len(batch) > HEADER_SIZE


@pytest.mark.parametrize("version", [2, 7])
def test_an_error_message_fits_its_field_however_long_a_name_it_quotes(client, version):
    name = "b" * 32_767
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    (refused,) = client.call(ApiKey.CREATE_TOPICS, version, topics=[topic]).topics
    assert (refused.name, refused.error_code) == (name, INVALID_TOPIC_EXCEPTION)
    assert "bbb" in refused.error_message
    assert is_served(client)
