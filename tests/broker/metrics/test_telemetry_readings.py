"""What clients have pushed, on the metrics page."""

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.metrics.exposition import render
from odradek.broker.metrics.table import read_all
from tests.broker.api.bed import make_broker
from tests.broker.telemetry.bed import INTERVAL_MS, Client, subscribed_broker

DELTA, CUMULATIVE = 1, 2


def metric(data, name):
    if not data.resource_metrics:
        data.resource_metrics.add().scope_metrics.add()
    return data.resource_metrics[0].scope_metrics[0].metrics.add(name=name)


def counted(value, name="org.apache.kafka.producer.record.send.total", temporality=DELTA, **attributes):
    data = MetricsData()
    counter = metric(data, name).sum
    counter.aggregation_temporality, counter.is_monotonic = temporality, True
    point = counter.data_points.add(as_double=value)
    for key, text in attributes.items():
        point.attributes.add(key=key.replace("_", ".")).value.string_value = text
    return data.SerializeToString()


def measured(value, name="m", **attributes):
    data = MetricsData()
    point = metric(data, name).gauge.data_points.add(as_double=value)
    for key, text in attributes.items():
        point.attributes.add(key=key).value.string_value = text
    return data.SerializeToString()


def spread(counts, bounds=(1.0, 5.0), name="h"):
    data = MetricsData()
    histogram = metric(data, name).histogram
    histogram.aggregation_temporality = DELTA
    histogram.data_points.add(count=sum(counts), sum=9.0, bucket_counts=counts, explicit_bounds=bounds)
    return data.SerializeToString()


def scrape(broker):
    """(name, labels without the client's, value) of what clients have measured, and the client ids that are named."""
    text = render(read_all(broker), "")[0].decode()
    families = text_string_to_metric_families(text)
    return [
        sample for family in families for sample in family.samples if sample.name.startswith(("org_apache_kafka_", "client_"))
    ]


def values(broker):
    return {
        (sample.name, *(value for label, value in sorted(sample.labels.items()) if not label.startswith("client_"))): sample.value
        for sample in scrape(broker)
    }


def push(broker, client, *pushes):
    """One after the other, each in its interval."""
    for data in pushes:
        assert not client.push(data)
        broker.clock.advance(INTERVAL_MS)


def connected(broker, number=7, client_id="app"):
    client = Client(broker, number, client_id, port=number)
    client.get()
    return client


@pytest.fixture
def broker():
    return subscribed_broker()


def test_a_client_is_told_by_its_instance_and_its_id(broker):
    client = connected(broker)
    push(broker, client, measured(1.5))
    [sample] = scrape(broker)
    assert sample.labels == {"client_instance_id": "AAAAAAAAAAAAAAAAAAAABw", "client_id": "app"}
    assert (sample.name, sample.value) == ("client_m", 1.5)


def test_what_clients_have_counted_since_their_last_push_is_summed_up(broker):
    push(broker, connected(broker), counted(3), counted(4))
    assert values(broker) == {("org_apache_kafka_producer_record_send_total",): 7}


def test_what_they_have_counted_since_they_began_stands_for_itself(broker):
    push(broker, connected(broker), counted(3, temporality=CUMULATIVE), counted(4, temporality=CUMULATIVE))
    assert values(broker) == {("org_apache_kafka_producer_record_send_total",): 4}


def test_a_gauge_is_its_last_value_by_its_attributes(broker):
    push(
        broker,
        connected(broker),
        measured(1, topic="a"),
        measured(2, topic="b"),
        measured(3, topic="a", other="x"),
        measured(4, topic="a"),
    )
    assert values(broker) == {("client_m", "", "a"): 4, ("client_m", "", "b"): 2, ("client_m", "x", "a"): 3}


def test_a_histogram_is_summed_up_bucket_by_bucket(broker):
    push(broker, connected(broker), spread([1, 2, 3]), spread([1, 0, 1]))
    assert values(broker) == {
        ("client_h_bucket", "1.0"): 2,
        ("client_h_bucket", "5.0"): 4,
        ("client_h_bucket", "+Inf"): 8,
        ("client_h_count",): 8,
        ("client_h_sum",): 18,
    }


def test_several_clients_share_a_metric(broker):
    for number, client_id in ((7, "a"), (8, "b")):
        push(broker, connected(broker, number, client_id), measured(number))
    assert {(sample.labels["client_id"], sample.value) for sample in scrape(broker)} == {("a", 7), ("b", 8)}


def test_a_client_that_is_gone_is_not_told_any_more(broker):
    client = connected(broker)
    push(broker, client, measured(1))
    broker.telemetry.lost(client.session)
    assert scrape(broker) == []


def test_no_client_can_stand_in_the_place_of_the_brokers_metrics(broker):
    push(broker, connected(broker), measured(1, name="odradek.broker.info", le="1", client_id="forged", **{"9 a": "x"}))
    [sample] = scrape(broker)
    assert (sample.name, sample.labels["client_id"]) == ("client_odradek_broker_info", "app")
    assert {"attribute_le", "attribute_client_id", "attribute_9_a"} < sample.labels.keys()


def test_a_name_that_stands_for_another_kind_already_is_left_out(broker):
    push(broker, connected(broker), spread([1, 0, 0]), measured(5, name="h.count"), measured(5, name="h", of="another"))
    assert values(broker).keys() & {("client_h",), ("client_h", "another")} == set()
    assert values(broker)["client_h_count",] == 1


def test_labels_and_their_values_have_limits(broker):
    push(broker, connected(broker), measured(1, **{f"label{number}": "x" * 1000 for number in range(40)}))
    [sample] = scrape(broker)
    assert len(sample.labels) == 2 + 16
    assert max(map(len, sample.labels.values())) == 256


def test_series_have_a_limit_and_what_is_left_out_is_counted(broker, monkeypatch):
    monkeypatch.setattr("odradek.broker.telemetry.received._MOST_SERIES", 2)
    push(broker, connected(broker), *(measured(number, name=f"m{number}") for number in range(4)), measured(9, name="m0"))
    assert values(broker) == {("client_m0",): 9, ("client_m1",): 1}
    assert counts(broker)["odradek_client_metrics_left_out"] == 2


def counts(broker):
    return {
        metric.name: samples[0][1]
        for metric, samples in read_all(broker)
        if metric.name.startswith(("kafka_server_client_metrics_", "odradek_client_metrics_"))
    }


def test_the_brokers_part_is_counted(broker):
    client = connected(broker)
    client.get()
    client.push(measured(1))
    client.push(measured(1))
    broker.clock.advance(INTERVAL_MS)
    client.push(measured(1), subscription_id=0)
    broker.clock.advance(INTERVAL_MS)
    client.push(b"\xff")
    assert counts(broker) == {
        "kafka_server_client_metrics_instance_count": 1,
        "kafka_server_client_metrics_unknown_subscription_request_count": 1,
        "kafka_server_client_metrics_throttle_count": 2,
        "kafka_server_client_metrics_plugin_export_count": 1,
        "kafka_server_client_metrics_plugin_error_count": 1,
        "odradek_client_metrics_left_out": 0,
    }


def test_before_a_client_asks_all_is_zero():
    assert set(counts(make_broker()).values()) == {0}
