"""Recording: when it is on, what it keeps, and that it costs nothing when it is off."""

import asyncio

import pytest

from odradek.client.api import Api, Disconnected
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from odradek.testing import Broker
from odradek.testing.timeline.messages import OmittedRecords

LIST_GROUPS = Api(ApiKey.LIST_GROUPS)
PRODUCE = Api(ApiKey.PRODUCE, 9, 12)
FETCH = Api(ApiKey.FETCH, 7, 12)
LARGE_BYTES = 300_000


@pytest.fixture
def broker():
    with Broker(topics={"t": 1}) as broker:
        yield broker


@pytest.fixture
def client(broker):
    host, port = broker.bootstrap_servers.split(":")
    client = BlockingClient(host, int(port), "asker", 10)
    yield client
    client.close()


def produce(client, value, acks=-1):
    batch = build_batch([Record(0, 0, None, value, ())])
    return client.call(PRODUCE, ProduceRequest(acks=acks, timeout_ms=1000, topics=[("t", [(0, batch)])]))


def fetch(client):
    partition = FetchPartition(partition=0, partition_max_bytes=2 * LARGE_BYTES)
    return client.call(FETCH, FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])]))


def keys(broker):
    return [each.api for each in broker.timeline.exchanges]


def test_nothing_is_recorded_and_no_gate_is_there_unless_it_is_asked_for(broker, client):
    client.call(LIST_GROUPS, ListGroupsRequest())
    assert not broker.timeline.is_recording
    with pytest.raises(RuntimeError, match="never started"):
        len(broker.timeline)
    assert broker._thread.broker.core.dispatcher._gate is None


def test_recording_begins_and_ends_when_it_is_told_to(broker, client):
    broker.timeline.start()
    client.call(LIST_GROUPS, ListGroupsRequest())
    broker.timeline.stop()
    produce(client, b"x")
    assert keys(broker) == [ApiKey.LIST_GROUPS]
    broker.timeline.clear()
    broker.timeline.start()
    produce(client, b"x")
    assert keys(broker) == [ApiKey.PRODUCE]


def test_the_last_events_are_kept_where_there_is_a_limit(broker, client):
    broker.timeline.start(limit=2)
    for _ in range(3):
        client.call(LIST_GROUPS, ListGroupsRequest())
    produce(client, b"x")
    assert keys(broker) == [ApiKey.LIST_GROUPS, ApiKey.PRODUCE]


def test_records_are_kept_as_they_were_however_large(broker, client):
    broker.timeline.start()
    value = bytes(range(250)) * (LARGE_BYTES // 250)
    produce(client, value)
    produce(client, b"over the first one's buffer" * 10_000)
    fetch(client)
    first, _, fetched = broker.timeline.exchanges
    assert value in first.request.topic_data[0].partition_data[0].records
    assert value in bytes(fetched.answer.responses[0].partitions[0].records)


def test_only_their_sizes_are_kept_without_records(broker, client):
    broker.timeline.start(records=False)
    produce(client, b"x" * 1000)
    fetch(client)
    produced, fetched = broker.timeline.exchanges
    omitted = produced.request.topic_data[0].partition_data[0].records
    assert isinstance(omitted, OmittedRecords)
    assert omitted.size_bytes > 1000
    assert fetched.answer.responses[0].partitions[0].records == omitted
    assert f"<{omitted.size_bytes} bytes>" in str(broker.timeline)


def test_a_request_that_is_due_no_answer_is_unanswered(broker, client):
    # It is not answered, and so whatever comes next is what answers.
    broker.timeline.start()
    host, port = broker.bootstrap_servers.split(":")
    other = BlockingClient(host, int(port), "other", 10)
    other._connection.send(
        PRODUCE, ProduceRequest(acks=0, timeout_ms=1000, topics=[("t", [(0, build_batch([Record(0, 0, None, b"x", ())]))])])
    )
    other._write()
    broker.wait_for(topic="t", records=1)
    other.close()
    [produced] = broker.timeline.where(api="Produce").exchanges
    assert (produced.outcome, produced.answer) == ("unanswered", None)


def test_a_request_under_way_is_waiting_and_answered_later(broker):
    broker.timeline.start()
    host, port = broker.bootstrap_servers.split(":")
    waiter, writer = (BlockingClient(host, int(port), name, 10) for name in ("waiter", "writer"))
    partition = FetchPartition(partition=0, partition_max_bytes=1000)
    waiter._connection.send(
        FETCH, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])])
    )
    waiter._write()
    while not (found := broker.timeline.where(api="Fetch").exchanges):
        pass
    assert [each.outcome for each in found] == ["waiting"]
    produce(writer, b"x")
    waiter._read()
    fetched, produced = broker.timeline.where(topic="t").exchanges
    assert (fetched.outcome, produced.outcome) == ("answered", "answered")
    assert fetched.begun < produced.begun < fetched.ended
    waiter.close()
    writer.close()


def test_the_timeline_outlives_the_broker_and_goes_on_in_its_next_life(broker, client):
    broker.timeline.start()
    client.call(LIST_GROUPS, ListGroupsRequest())
    broker.kill()
    assert keys(broker) == [ApiKey.LIST_GROUPS]
    broker.start()
    host, port = broker.bootstrap_servers.split(":")
    again = BlockingClient(host, int(port), "again", 10)
    again.call(LIST_GROUPS, ListGroupsRequest())
    again.close()
    assert keys(broker) == [ApiKey.LIST_GROUPS, ApiKey.API_VERSIONS, ApiKey.LIST_GROUPS]
    assert len({each.connection for each in broker.timeline.exchanges}) == 2


def test_a_view_with_a_namespace_has_what_came_since_it_was_made(broker, client):
    broker.timeline.start()
    client.call(LIST_GROUPS, ListGroupsRequest())
    view = broker.in_namespace("-1")
    produce(client, b"x")
    assert keys(view) == [ApiKey.PRODUCE]


def test_what_helpers_look_up_is_no_part_of_it(broker):
    broker.timeline.start()
    broker.produce("t", ["x"])
    broker.records("t")
    broker.wait_for(topic="t", records=1)
    assert broker.groups == {}
    assert keys(broker) == [ApiKey.PRODUCE]


def test_a_broker_on_the_loop_of_its_caller_has_one_too():
    async def main():
        async with Broker(timeline=True) as broker:
            await broker.create_topics({"t": 1})
            return broker.timeline

    [created] = asyncio.run(main()).exchanges
    assert created.request == CreateTopicsRequest(
        topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=-1),), timeout_ms=created.request.timeout_ms
    )


def test_another_timeline_is_started_and_stopped_by_itself(broker, client):
    last = broker.another_timeline()
    last.start(limit=1, records=False)
    for _ in range(2):
        client.call(LIST_GROUPS, ListGroupsRequest())
    assert not broker.timeline.is_recording
    assert [each.api for each in last.exchanges] == [ApiKey.LIST_GROUPS]
    last.stop()
    assert broker._thread.broker.core.dispatcher._gate is None


def test_a_fault_is_seen_as_the_client_sees_it(broker, client):
    broker.timeline.start()
    with broker.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=1):
        produce(client, b"x")
        produce(client, b"x")
    with broker.faults.add(api="Produce", close="after"), pytest.raises(Disconnected):
        produce(client, b"x")
    refused, taken, lost = broker.timeline.exchanges
    assert (refused.errors, taken.errors) == (["NOT_LEADER_OR_FOLLOWER"], [])
    assert (lost.outcome, lost.answer) == ("closed", None)
