"""Spark's streams over the broker's end, graceful or by kill -9, and its return on the same port."""

import pytest

from tests.broker_process import BrokerProcess
from tests.spark.kafka import values
from tests.spark.spark_client import offsets, read

ENDS = {"stop": BrokerProcess.stop, "kill -9": BrokerProcess.kill9}


@pytest.fixture
def broker(broker_process):
    """One of the test's own: it is the one that ends. ``kafka`` and ``client`` follow it."""
    return broker_process()


@pytest.fixture(params=ENDS)
def restart(request, broker):
    """Ends the broker in one of the two ways, and starts it on the same port and data."""

    def end_and_start() -> None:
        ENDS[request.param](broker)
        broker.start()

    return end_and_start


def wait_for_the_first_batch(query):
    while not any(batch.numInputRows for batch in query.recentProgress):
        assert not query.awaitTermination(0.05), query.exception()


def finish(query, trigger):
    if "availableNow" not in trigger:
        query.processAllAvailable()
        query.stop()
    assert query.awaitTermination(60)


@pytest.mark.parametrize(
    "trigger", [{"availableNow": True}, {"processingTime": "0 seconds"}], ids=["availableNow", "processingTime"]
)
def test_streams_resumed_after_a_restart_have_every_record_exactly_once(restart, kafka, client, table, tmp_path, topic, trigger):
    """A stream from topic to topic, and one from there to a table; both stop before each restart and resume after it."""
    copy = topic + "copy"
    for name in (topic, copy):
        kafka.create_topic(name, partitions=2)
    for round_ in range(3):
        kafka.send(topic, [*values(20, start=20 * round_), *values(20, start=20 * round_, partition=1)])
        rows = client.stream(subscribe=topic).select("value", "partition")
        finish(client.copy(rows, tmp_path / "copied", copy, **trigger), trigger)
        finish(table.fill(client.stream(subscribe=copy), **trigger), trigger)
        restart()
    assert table.records() == [*values(60), *values(60, partition=1)]


def test_a_stream_that_runs_over_a_restart_has_every_record_exactly_once(restart, kafka, client, table, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(200))
    query = table.fill(client.stream(subscribe=topic, maxOffsetsPerTrigger=20))
    wait_for_the_first_batch(query)
    restart()
    kafka.send(topic, values(50, start=200))
    query.processAllAvailable()
    query.stop()
    assert table.records() == values(250)
    assert offsets(table.records()) == list(range(250))


def test_a_sink_that_writes_over_a_restart_loses_nothing(restart, kafka, client, tmp_path, topic):
    """The sink promises each record at least once: a batch that failed is written again."""
    kafka.create_topic(topic)
    kafka.create_topic(topic + "copy")
    kafka.send(topic, values(200))
    rows = client.stream(subscribe=topic, maxOffsetsPerTrigger=20).select("value")
    query = client.copy(rows, tmp_path, topic + "copy")
    wait_for_the_first_batch(query)
    restart()
    query.processAllAvailable()
    query.stop()
    copied = [record.value for record in kafka.records(topic + "copy")]
    assert list(dict.fromkeys(copied)) == [record.value for record in values(200)]


def test_a_batch_after_a_restart_is_the_batch_before_it(restart, kafka, client, topic):
    client.write(client.to_send(*values(100)).coalesce(1), topic=topic)
    before = read(client.batch(subscribe=topic))
    restart()
    assert read(client.batch(subscribe=topic)) == before == values(100)


def test_a_sink_goes_on_writing_after_a_restart(restart, kafka, client, topic):
    """The producer that wrote before is still there, with its id, its epoch and its sequence numbers."""
    client.write(client.to_send(*values(50)).coalesce(1), topic=topic)
    restart()
    client.write(client.to_send(*values(50, start=50)).coalesce(1), topic=topic)
    assert kafka.records(topic) == values(100)
