"""Fetch, Produce and their kin over a raw socket: every version, sessions, limits, waits."""

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch, read_records
from tests.raw_client import MAX_BYTES, RawClient, fetch_fields, produce_fields

NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION = 0, 1, 3
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
LONG_WAIT_MS = 30_000
VERSION = 12


def versions(api_key):
    return range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1)


@pytest.fixture
def other(broker):
    with RawClient(broker.host, broker.port) as connection:
        yield connection


@pytest.fixture
def new_topic(new_name, client):
    """Creates a topic; its name and id."""

    def create(partitions=1):
        topic = {"name": new_name(), "num_partitions": partitions, "replication_factor": 1}
        (created,) = client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000).topics
        assert created.error_code == NONE
        return created.name, created.topic_id

    return create


@pytest.fixture
def topic(new_topic):
    return new_topic()[0]


def fetch(client, topic, offset, **fields):
    """The data of partition 0."""
    return client.call(ApiKey.FETCH, VERSION, **fetch_fields(topic, offset, **fields)).responses[0].partitions[0]


def wait_until_fetching(client, other):
    """A fetch sent by ``client`` before is in the broker once a later request of ``other`` is answered."""
    other.call(ApiKey.API_VERSIONS, 0)


def partitions_in(response):
    return {
        (getattr(topic, "topic", None) or topic.topic_id, partition.partition_index): len(partition.records or b"")
        for topic in response.responses
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", versions(ApiKey.PRODUCE))
def test_produce_of_every_version_is_taken(client, new_topic, version):
    name, topic_id = new_topic()
    fields = produce_fields(name, build_batch([Record(value=b"x"), Record(value=b"y")]))
    if version >= 13:
        del fields["topic_data"][0]["name"]
        fields["topic_data"][0]["topic_id"] = topic_id
    for base_offset in (0, 2):
        (answered,) = client.call(ApiKey.PRODUCE, version, **fields).responses
        assert (answered.topic_id == topic_id) if version >= 13 else (answered.name == name)
        (partition,) = answered.partition_responses
        assert (partition.index, partition.error_code, partition.base_offset) == (0, NONE, base_offset)


@pytest.mark.parametrize("version", versions(ApiKey.FETCH))
def test_fetch_of_every_version_is_answered(client, new_topic, version):
    name, topic_id = new_topic()
    batch = build_batch([Record(value=b"x")])
    client.produce_records(name, batch)
    fields = fetch_fields(name, 0)
    if version < 7:
        del fields["session_id"], fields["session_epoch"]
    if version >= 13:
        del fields["topics"][0]["topic"]
        fields["topics"][0]["topic_id"] = topic_id
    (answered,) = client.call(ApiKey.FETCH, version, **fields).responses
    assert (answered.topic_id == topic_id) if version >= 13 else (answered.topic == name)
    (partition,) = answered.partitions
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (NONE, 1, 1)
    assert [record.value for record in read_records(partition.records)] == [b"x"]


@pytest.mark.parametrize("version", versions(ApiKey.LIST_OFFSETS))
def test_list_offsets_of_every_version_is_answered(client, topic, version):
    client.produce(topic, b"x", b"y")
    for timestamp, offset in ((-1, 2), (-2, 0), (1_700_000_000_000, 0), (1_700_000_000_001, -1)):
        asked = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        (answered,) = client.call(ApiKey.LIST_OFFSETS, version, replica_id=-1, topics=[asked]).topics
        assert (answered.partitions[0].error_code, answered.partitions[0].offset) == (NONE, offset)


@pytest.mark.parametrize(
    ("timestamps", "version", "errors"),
    [((-1, -1), 9, [INVALID_REQUEST]), ((-7,), 9, [UNSUPPORTED_VERSION]), ((-3,), 6, [UNSUPPORTED_VERSION])],
)
def test_offsets_that_cannot_be_listed_are_refused_before_the_partition_is_looked_for(
    client, new_name, timestamps, version, errors
):
    asked = {"name": new_name(), "partitions": [{"partition_index": 0, "timestamp": timestamp} for timestamp in timestamps]}
    (answered,) = client.call(ApiKey.LIST_OFFSETS, version, replica_id=-1, topics=[asked]).topics
    assert [partition.error_code for partition in answered.partitions] == errors


@pytest.mark.parametrize("version", versions(ApiKey.METADATA))
def test_metadata_of_every_version_is_answered(client, broker, topic, version):
    response = client.call(ApiKey.METADATA, version, topics=[{"name": topic}])
    assert [(node.host, node.port) for node in response.brokers] == [(broker.host, broker.port)]
    (described,) = response.topics
    assert (described.name, [partition.leader_id for partition in described.partitions]) == (topic, [1])


@pytest.mark.parametrize(
    ("offset", "fields", "error"),
    [
        (1, {}, NONE),
        (2, {}, OFFSET_OUT_OF_RANGE),
        (-1, {}, OFFSET_OUT_OF_RANGE),
        (0, {"partition": 1}, UNKNOWN_TOPIC_OR_PARTITION),
        (0, {"current_leader_epoch": 1}, UNKNOWN_LEADER_EPOCH),
        (0, {"current_leader_epoch": 0}, NONE),
        (0, {"current_leader_epoch": -5}, NONE),
    ],
)
def test_a_fetch_that_cannot_be_served_is_answered_at_once_with_the_reason(client, topic, offset, fields, error):
    client.produce(topic, b"x")
    wait_ms = LONG_WAIT_MS if error else 0
    answered = fetch(client, topic, offset, max_wait_ms=wait_ms, **fields)
    unknown = error == UNKNOWN_TOPIC_OR_PARTITION
    assert (answered.error_code, answered.aborted_transactions) == (error, () if unknown else None)


def test_a_fetch_does_not_wait_for_more_than_it_takes(client, topic):
    client.produce(topic, b"x" * 1000)
    assert fetch(client, topic, 0, max_wait_ms=LONG_WAIT_MS, min_bytes=MAX_BYTES, max_bytes=500).records


def test_a_fetch_does_not_wait_for_min_bytes_at_the_end_of_a_segment(client, new_name):
    topic = {"name": new_name(), "num_partitions": 1, "replication_factor": 1}
    topic["configs"] = [{"name": "segment.bytes", "value": "1048576"}]
    client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    for _ in range(2):
        client.produce(topic["name"], b"x" * 700_000)
    assert len(fetch(client, topic["name"], 0, max_wait_ms=LONG_WAIT_MS, min_bytes=MAX_BYTES).records) > 700_000


def test_a_fetch_that_has_something_but_not_enough_gets_it_in_the_end(client, topic):
    client.produce(topic, b"x")
    assert fetch(client, topic, 0, max_wait_ms=200, min_bytes=MAX_BYTES).records


def test_the_first_batch_is_given_whole_however_small_the_limits(client, topic):
    batch = build_batch([Record(value=b"x" * 1000)])
    for _ in range(3):
        client.produce_records(topic, batch)
    for limits in ({"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0, "partition_max_bytes": 0}):
        assert len(fetch(client, topic, 1, **limits).records) == len(batch)


def test_only_the_first_partition_with_records_may_exceed_the_limits(client, new_topic):
    name, _ = new_topic(3)
    batch = build_batch([Record(value=b"x" * 1000)])
    for partition in (1, 2):
        client.produce_records(name, batch, partition=partition)
    asked = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": MAX_BYTES} for index in range(3)]
    fields = {**fetch_fields(name, 0, max_bytes=10), "topics": [{"topic": name, "partitions": asked}]}
    response = client.call(ApiKey.FETCH, VERSION, **fields)
    assert partitions_in(response) == {(name, 0): 0, (name, 1): len(batch), (name, 2): 0}


def test_a_partitions_limit_cuts_what_is_behind_the_first_batch(client, topic):
    batch = build_batch([Record(value=b"x" * 1000)])
    for _ in range(5):
        client.produce_records(topic, batch)
    limit = 2 * len(batch) + 100
    records = fetch(client, topic, 0, partition_max_bytes=limit).records
    assert 2 * len(batch) <= len(records) <= limit


class Session:
    """An incremental fetch session over one connection."""

    def __init__(self, client, name, offsets):
        self._client = client
        self._name = name
        self._epoch = 0
        self.id = 0
        self.answer = self.fetch(offsets)

    def fetch(self, offsets, max_wait_ms=0, **fields):
        self.send(offsets, max_wait_ms, **fields)
        return self.receive()

    def send(self, offsets, max_wait_ms=0, **fields):
        partitions = [
            {"partition": index, "fetch_offset": offset, "partition_max_bytes": MAX_BYTES} for index, offset in offsets.items()
        ]
        topics = [{"topic": self._name, "partitions": partitions}] if partitions else []
        values = {**fetch_fields(self._name, 0, max_wait_ms=max_wait_ms), "topics": topics}
        self._client.send(ApiKey.FETCH, VERSION, **{**values, "session_id": self.id, "session_epoch": self._epoch, **fields})

    def receive(self):
        answer = self._client.receive(ApiKey.FETCH, VERSION)
        if answer.error_code == NONE:
            self.id = answer.session_id
            self._epoch += 1
        return answer


def test_a_session_tells_only_what_is_new(client, other, new_topic):
    name, _ = new_topic(3)
    session = Session(client, name, {0: 0, 1: 0, 2: 0})
    assert session.id > 0
    assert partitions_in(session.answer) == {(name, 0): 0, (name, 1): 0, (name, 2): 0}
    assert partitions_in(session.fetch({})) == {}
    batch = build_batch([Record(value=b"x")])
    other.produce_records(name, batch, partition=1)
    assert partitions_in(session.fetch({})) == {(name, 1): len(batch)}
    # Until the consumer says that it is further on, it is given the same again.
    assert partitions_in(session.fetch({})) == {(name, 1): len(batch)}
    assert partitions_in(session.fetch({1: 1})) == {}


def test_a_session_waits_and_is_woken(client, other, new_topic):
    name, _ = new_topic(3)
    session = Session(client, name, {0: 0, 1: 0, 2: 0})
    session.send({}, LONG_WAIT_MS)
    wait_until_fetching(client, other)
    batch = build_batch([Record(value=b"x")])
    other.produce_records(name, batch, partition=2)
    assert partitions_in(session.receive()) == {(name, 2): len(batch)}


def test_a_client_that_has_said_its_last_is_still_given_the_fetch_that_waits(client, other, topic):
    client.send(ApiKey.FETCH, VERSION, **fetch_fields(topic, 0, max_wait_ms=LONG_WAIT_MS, min_bytes=1))
    wait_until_fetching(client, other)
    client.finish_sending()
    other.produce(topic, b"x")
    assert client.receive(ApiKey.FETCH, VERSION).responses[0].partitions[0].records
    assert client.is_closed_by_peer()
