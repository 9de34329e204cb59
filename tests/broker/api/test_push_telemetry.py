"""PushTelemetry."""

from uuid import UUID

import pytest

from odradek.common.logging import lines_to
from odradek.protocol.compression import compress
from odradek.protocol.errors import ErrorCode
from tests.broker.telemetry.bed import INTERVAL_MS, METRICS, Client, subscribed_broker


@pytest.fixture
def broker():
    return subscribed_broker()


@pytest.fixture
def client(broker):
    client = Client(broker)
    client.get()
    return client


@pytest.fixture
def pushes(broker):
    """What those are told who want to know."""
    found = []
    broker.telemetry.on_push = found.append
    return found


def held(broker):
    if broker.telemetry.received is None:
        return {}
    return {series[0]: point.value for _, _, points in broker.telemetry.received.all() for series, point in points.items()}


@pytest.mark.parametrize("codec", range(5))
def test_what_is_pushed_is_held_however_it_is_compressed(broker, client, pushes, codec):
    assert client.push(compress(codec, METRICS), compression_type=codec) == ErrorCode.NONE
    assert held(broker) == {"m": 1.5}
    [push] = pushes
    assert (push.attributes["client_id"], [point.name for point in push.metrics.points]) == ("app", ["m"])


def test_the_first_push_may_come_at_any_time_and_the_next_after_the_interval(broker, client):
    assert client.push() == ErrorCode.NONE
    assert client.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(INTERVAL_MS - 1)
    assert client.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(1)
    assert client.push() == ErrorCode.NONE


def test_the_last_push_may_come_too_early_and_nothing_after_it(client, pushes):
    client.push()
    assert client.push(terminating=True) == ErrorCode.NONE
    assert [push.is_terminating for push in pushes] == [False, True]
    assert client.push() == ErrorCode.INVALID_REQUEST
    # As in Kafka: what is refused says whether the client is at its end.
    assert client.push(terminating=True) == ErrorCode.NONE


@pytest.mark.parametrize("instance_id", [None, UUID(int=1)])
def test_a_push_without_a_client_instance_is_none(client, instance_id):
    assert client.push(client_instance_id=instance_id) == ErrorCode.INVALID_REQUEST


def test_a_push_for_another_subscription_is_told_so(broker, client):
    assert client.push(subscription_id=client.subscription_id ^ 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert held(broker) == {}


@pytest.mark.parametrize("codec", [5, 127, -1])
def test_an_unknown_compression_is_told_so(client, codec):
    assert client.push(compression_type=codec) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_telemetry_max_bytes_are_the_most_as_they_come():
    broker = subscribed_broker(telemetry_max_bytes=str(len(METRICS)))
    client = Client(broker)
    assert client.get().telemetry_max_bytes == len(METRICS)
    assert client.push(METRICS + b"\0") == ErrorCode.TELEMETRY_TOO_LARGE
    broker.clock.advance(INTERVAL_MS)
    assert client.push() == ErrorCode.NONE


def test_sixteen_times_as_much_are_the_most_when_it_is_decompressed():
    broker = subscribed_broker(telemetry_max_bytes="1000")
    for repetitions, code in ((700, ErrorCode.NONE), (800, ErrorCode.TELEMETRY_TOO_LARGE)):
        client = Client(broker, repetitions)
        client.get()
        assert client.push(compress(4, METRICS * repetitions), compression_type=4) == code


def test_the_number_of_data_points_has_a_limit(broker, client, monkeypatch):
    monkeypatch.setattr("odradek.broker.telemetry.received.MOST_POINTS", 2)
    assert client.push(METRICS * 3) == ErrorCode.TELEMETRY_TOO_LARGE
    broker.clock.advance(INTERVAL_MS)
    assert client.push(METRICS * 2) == ErrorCode.NONE


@pytest.mark.parametrize("codec", range(5))
def test_what_is_no_metrics_is_refused_with_a_line_and_the_client_goes_on(broker, client, codec):
    lines = []
    with lines_to(lambda level, event, fields: lines.append((level, event, fields["error"], fields["client_id"]))):
        assert client.push(b"\xff\xff\xff", compression_type=codec) == ErrorCode.INVALID_RECORD
    assert lines == [("warning", "a client's metrics were refused", "INVALID_RECORD", "app")]
    broker.clock.advance(INTERVAL_MS)
    assert client.push() == ErrorCode.NONE
    assert held(broker) == {"m": 1.5}


def test_a_push_of_nothing_is_fine(client, pushes):
    assert client.push(b"") == ErrorCode.NONE
    assert pushes == []


def test_a_large_push_is_decoded_beside_the_loop_and_answered_then(broker, client):
    assert client.push(METRICS * 2_000) == ErrorCode.NONE
    assert held(broker) == {"m": 1.5}
