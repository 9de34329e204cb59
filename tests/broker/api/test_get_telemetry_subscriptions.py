"""GetTelemetrySubscriptions."""

import pytest

from odradek.common.logging import lines_to
from odradek.protocol.errors import ErrorCode
from odradek.protocol.texts import uuid_text
from odradek.testing import SocketlessBroker
from tests.broker.api.bed import make_broker
from tests.broker.telemetry.bed import INTERVAL_MS, Client, subscribe, subscribed_broker


def test_a_client_that_nobody_asks_is_to_come_again_in_five_minutes():
    answer = Client(make_broker()).get()
    assert (answer.error_code, answer.requested_metrics, answer.push_interval_ms) == (ErrorCode.NONE, (), 300_000)
    assert answer.telemetry_max_bytes == 1_048_576
    assert answer.delta_temporality
    assert answer.accepted_compression_types == (4, 3, 1, 2)


def test_the_broker_has_no_part_of_telemetry_until_a_client_asks(core):
    assert core.telemetry_so_far is None
    Client(core).get()
    assert core.telemetry_so_far.instance_count == 1


def test_a_client_without_an_id_is_given_one_and_another_one_another(core):
    ids = {Client(core, None, port=port).get().client_instance_id for port in range(5)}
    assert len(ids) == 5
    assert None not in ids
    assert not any(uuid_text(each).startswith("-") for each in ids)


@pytest.fixture
def broker():
    return subscribed_broker()


def test_a_client_that_asks_too_early_is_throttled_and_told_nothing(broker):
    client = Client(broker)
    assert client.get().requested_metrics == ("*",)
    early = client.get()
    assert (early.error_code, early.client_instance_id, early.push_interval_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, None, 0)
    broker.clock.advance(INTERVAL_MS)
    assert client.get().error_code == ErrorCode.NONE


def test_a_client_may_ask_at_once_when_the_subscriptions_have_changed(broker):
    client = Client(broker)
    first = client.get()
    subscribe(broker, metrics="a,b")
    second = client.get()
    assert (second.error_code, set(second.requested_metrics)) == (ErrorCode.NONE, {"a", "b"})
    assert second.subscription_id != first.subscription_id


@pytest.mark.parametrize("pushed", [{"subscription_id": 1}, {"compression_type": 5}])
def test_a_client_whose_push_was_not_what_is_asked_may_ask_at_once(pushed):
    client = Client(subscribed_broker())
    client.get()
    assert client.push(**pushed) in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    assert client.get().error_code == ErrorCode.NONE


def test_a_subscription_is_gone_with_its_last_config(broker):
    subscribe(broker, metrics=None, interval_ms=None)
    assert Client(broker).get().push_interval_ms == 300_000


def test_patterns_see_who_the_client_is(core):
    client = Client(core, client_id="app", port=5)
    match = (
        f"client_instance_id={uuid_text(client.instance_id)},client_id=app,client_software_name=apache-kafka-java,"
        "client_software_version=4\\.3\\.1,client_source_address=127\\.0\\.0\\.1,client_source_port=5"
    )
    assert not subscribe(core, metrics="m", match=match)
    assert client.get().requested_metrics == ("m",)
    assert Client(core, 8, port=5).get().requested_metrics == ()


def test_a_pattern_of_java_that_re2_has_not_is_left_out_with_a_line(core):
    lines = []
    # As Kafka's controller may have written it.
    core.controller.alter_configs([(16, "theirs", "match", "client_id=(?!x).*"), (16, "theirs", "metrics", "m")])
    with lines_to(lambda _level, event, fields: lines.append((event, fields["name"]))):
        assert Client(core).get().requested_metrics == ()
    assert lines == [("ignoring an invalid subscription of client metrics", "theirs")]


def test_what_is_subscribed_is_there_after_a_restart(tmp_path):
    with SocketlessBroker(tmp_path) as kit:
        subscribe(kit.core, metrics="m")
        kit.kill()
        kit.start()
        assert Client(kit.core).get().requested_metrics == ("m",)


def test_an_instance_is_forgotten_when_it_is_silent_for_long(broker):
    client = Client(broker)
    client.get()
    client.push()
    telemetry = broker.telemetry
    broker.clock.advance(59_999)
    assert (telemetry.instance_count, len(list(telemetry.received.all()))) == (1, 1)
    broker.clock.advance(1)
    assert (telemetry.instance_count, len(list(telemetry.received.all()))) == (0, 0)


def test_all_ids_that_a_connection_has_shown_are_forgotten_when_it_closes(broker):
    first, second, other = Client(broker, instance_id=7), Client(broker, instance_id=8), Client(broker, instance_id=9, port=2)
    second.session = first.session
    for client in (first, second, other):
        client.get()
        assert client.push() == ErrorCode.NONE
    telemetry = broker.telemetry
    telemetry.lost(first.session)
    assert [instance_id for instance_id, _, _ in telemetry.received.all()] == [other.instance_id]
    assert telemetry.instance_count == 1


def test_an_id_that_another_connection_shows_after_a_change_goes_with_that_one(broker):
    before, after = Client(broker), Client(broker, port=2)
    before.get()
    assert not subscribe(broker, metrics="other.")
    after.get()
    broker.telemetry.lost(before.session)
    assert broker.telemetry.instance_count == 1
    broker.telemetry.lost(after.session)
    assert broker.telemetry.instance_count == 0


def test_a_connection_that_shows_ever_new_ids_leaves_nothing_of_those_that_are_forgotten(broker):
    session = Client(broker).session
    for number in range(3):
        client = Client(broker, instance_id=10 + number)
        client.session = session
        client.get()
        broker.clock.advance(60_001)
    telemetry = broker.telemetry
    assert (telemetry.instance_count, telemetry._by_session) == (0, {})


def test_an_instance_is_forgotten_when_its_connection_closes(broker):
    client, other = Client(broker), Client(broker, 8, port=2)
    client.get()
    other.get()
    broker.telemetry.lost(client.session)
    assert broker.telemetry.instance_count == 1
    broker.telemetry.lost(client.session)
    assert other.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert client.get().error_code == ErrorCode.NONE


def test_the_instance_unheard_for_longest_gives_way(broker, monkeypatch):
    monkeypatch.setattr("odradek.broker.telemetry.manager._MOST_INSTANCES", 2)
    first, second, third = (Client(broker, number, port=number) for number in (1 << 70, 2, 3))
    first.get()
    second.get()
    # It is heard again.
    first.push()
    third.get()
    assert broker.telemetry.instance_count == 2
    assert second.get().error_code == ErrorCode.NONE
    assert third.get().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
