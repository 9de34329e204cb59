"""Requests of throttled clients, from the frame to the answer and the muted connection."""

import pytest

from odradek.common.context import OwnSession, RequestContext
from odradek.controller.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.metadata import MetadataRequest
from odradek.protocol.records import Record, build_batch
from odradek.timing.reply import Reply
from tests.broker.quotas.bed import Client, broker_with, quota, told_ms
from tests.raw_client import fetch_fields

RECORDS = build_batch([Record(timestamp=0, value=bytes(30_000))])


@pytest.fixture
def broker():
    return broker_with("t")


@pytest.fixture
def client(broker):
    return Client(broker)


def test_without_quotas_there_is_no_gate(broker):
    assert broker.dispatcher._gate is None
    quota(broker, PRODUCER_BYTE_RATE, 1, client_id="client")
    assert broker.dispatcher._gate is not None
    quota(broker, PRODUCER_BYTE_RATE, None, client_id="client")
    assert broker.dispatcher._gate is None
    assert broker.quotas.managers is None


def test_a_connection_rate_is_nothing_that_requests_pay_for(broker):
    quota(broker, "connection_creation_rate", 1, ip="127.0.0.1")
    assert broker.dispatcher._gate is None


def test_a_producer_over_its_quota_is_told_so_and_muted(broker, client):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, client_id="client")
    answer = client.produce(RECORDS)
    # The whole request counts, against a quota over ten seconds.
    assert told_ms(answer) == client.sent_bytes - 10_000
    assert client.muted_ms == [told_ms(answer)]
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_producer_that_wants_no_answer_is_muted_too(broker, client):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, user="ANONYMOUS")
    assert client.produce(RECORDS, acks=0) is None
    assert client.muted_ms == [client.sent_bytes - 10_000]


def test_another_client_is_unharmed(broker, client):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, client_id="client")
    client.produce(RECORDS)
    other = Client(broker, "other")
    assert told_ms(other.produce(RECORDS)) == 0
    assert other.muted_ms == []


def test_the_user_is_the_principals_name(broker):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, user="ada")
    assert told_ms(Client(broker, None, "User:ada").produce(RECORDS)) > 0
    assert told_ms(Client(broker, None, "User:ben").produce(RECORDS)) == 0


def test_a_consumer_over_its_quota_gets_nothing_and_a_throttle_time(broker, client):
    client.produce(RECORDS)
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 6_500, client_id="client")
    first = client.fetch()
    assert (told_ms(first), client.muted_ms) == (0, [])
    assert len(first.responses[0].partitions[0].records) == 2 * len(RECORDS)
    second = client.fetch(1)
    assert second.responses == ()
    assert client.muted_ms == [told_ms(second)]
    assert told_ms(second) == pytest.approx(3 * len(RECORDS) / 6.5 - 10_000, abs=50)


def test_a_consumer_gets_no_more_at_once_than_its_quota_allows(broker, client):
    client.produce(RECORDS)
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 5_000, client_id="client")
    # The records are as many as may be read, and the rest of the answer is beyond the quota.
    assert 0 < told_ms(client.fetch()) < 30
    broker.clock.advance(client.muted_ms[-1])
    assert len(client.fetch().responses[0].partitions[0].records) == 50_000


def test_a_throttled_fetch_does_not_count(broker, client):
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 5_000, client_id="client")
    client.fetch()
    assert told_ms(client.fetch()) == told_ms(client.fetch()) > 0


def test_a_throttled_fetch_leaves_its_session_as_it_was(broker, client):
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 4_000, client_id="client")
    full = client.fetch(session_epoch=0)
    assert full.session_id > 0
    throttled = client.fetch(session_id=full.session_id, session_epoch=1)
    assert (throttled.session_id, throttled.error_code, throttled.responses) == (full.session_id, 0, ())
    assert told_ms(throttled) > 0
    quota(broker, CONSUMER_BYTE_RATE, None, client_id="client")
    again = client.ask(ApiKey.FETCH, 12, replica_id=-1, max_bytes=1 << 20, session_id=full.session_id, session_epoch=2)
    assert len(again.responses[0].partitions[0].records) == len(RECORDS)


def test_a_session_does_not_begin_with_a_throttled_fetch(broker, client):
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 1_000, client_id="client")
    assert client.fetch(session_epoch=0).session_id == 0
    assert len(broker.fetch_sessions) == 0


def test_a_follower_is_not_held_to_the_quotas_of_clients(broker, client):
    client.produce(RECORDS)
    quota(broker, CONSUMER_BYTE_RATE, 1, client_id="client")
    assert told_ms(client.fetch(replica_id=2)) == 0


def test_a_fetch_that_waited_is_counted_when_there_is_something(broker, client):
    quota(broker, CONSUMER_BYTE_RATE, 1_000, client_id="client")
    waiting = client.send(ApiKey.FETCH, 12, **fetch_fields("t", 0, max_wait_ms=5_000))
    assert isinstance(waiting, Reply)
    assert not waiting.done
    Client(broker, "other").produce(RECORDS)
    assert waiting.done
    assert client.muted_ms == [pytest.approx(len(RECORDS) - 10_000, abs=100)]


class Busy:
    """A gate behind all others, in which requests take so long."""

    def __init__(self, broker, busy_ms):
        self.broker = broker
        self.busy_ms = busy_ms

    def admit(self, context, request):
        self.broker.clock.advance(self.busy_ms)

    def release(self, context, response):
        return response


def busy(broker, busy_ms):
    broker.dispatcher.add_gate(Busy(broker, busy_ms))


def test_a_client_whose_requests_take_too_long_is_throttled_for_a_sample_at_most(broker, client):
    quota(broker, REQUEST_PERCENTAGE, 1, client_id="client")
    busy(broker, 110)
    # 110 ms in ten seconds are 1.1 percent.
    answer = client.ask(ApiKey.METADATA, 9, topics=[])
    assert told_ms(answer) == pytest.approx(1_000, abs=120)
    for _ in range(10):
        answer = client.ask(ApiKey.METADATA, 9, topics=[])
    assert told_ms(answer) == 1_000
    assert client.muted_ms[-1] == 1_000


def test_the_time_of_an_unanswered_produce_is_nobodys(broker, client):
    quota(broker, REQUEST_PERCENTAGE, 0.001, client_id="client")
    busy(broker, 50)
    assert client.produce(RECORDS, acks=0) is None
    assert client.muted_ms == []
    assert told_ms(client.produce(RECORDS, acks=1)) == 1_000


def test_a_fetch_counts_its_time_once(broker, client):
    quota(broker, REQUEST_PERCENTAGE, 1, client_id="client")
    busy(broker, 50)
    client.fetch()
    ((_, sensor),) = broker.quotas.managers.request.sensors(broker.quotas.managers.now_ms())
    assert sum(sample.total for sample in sensor.samples._samples) == pytest.approx(5)


def test_time_spent_waiting_does_not_count(broker, client):
    quota(broker, REQUEST_PERCENTAGE, 1, client_id="client")
    waiting = client.send(ApiKey.FETCH, 12, **fetch_fields("t", 0, max_wait_ms=5_000))
    broker.clock.advance(5_000)
    assert waiting.done
    assert client.muted_ms == []


def test_of_two_throttle_times_the_longest_holds(broker, client):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, client_id="client")
    quota(broker, REQUEST_PERCENTAGE, 0.001, client_id="client")
    busy(broker, 50)
    answer = client.produce(RECORDS)
    assert client.muted_ms == [told_ms(answer)] == [client.sent_bytes - 10_000]


def test_a_broker_that_asks_itself_is_not_throttled(broker):
    quota(broker, REQUEST_PERCENTAGE, 0.001, user=None)
    busy(broker, 50)
    context = RequestContext(ApiKey.METADATA, 9, 1, "client", OwnSession("", ("127.0.0.1", 0)))
    assert broker.dispatcher.call(context, MetadataRequest(topics=[])).throttle_time_ms == 0


def create(client, version, *names, partitions=1, validate_only=False):
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1} for name in names]
    return client.ask(ApiKey.CREATE_TOPICS, version, topics=topics, timeout_ms=5_000, validate_only=validate_only)


@pytest.fixture
def two_a_second():
    """A broker on which a client may change two partitions a second, and four at once."""
    broker = broker_with("t", controller_quota_window_num="2")
    quota(broker, CONTROLLER_MUTATION_RATE, 2, client_id="client")
    return broker


def test_a_client_in_debt_may_not_create_topics(two_a_second):
    client = Client(two_a_second)
    first = create(client, 7, "a", "b", partitions=3)
    # The first topic is within the quota, and the second one begins when there is one token left.
    assert [topic.error_code for topic in first.topics] == [0, 0]
    assert (told_ms(first), client.muted_ms) == (0, [])
    refused = create(client, 7, "c")
    assert [topic.error_code for topic in refused.topics] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert client.muted_ms == [told_ms(refused)] == [1_000]
    two_a_second.clock.advance(1_000)
    assert [topic.error_code for topic in create(client, 7, "c").topics] == [0]


def test_one_request_may_have_some_of_its_topics_refused(two_a_second):
    answer = create(Client(two_a_second), 7, "a", "b", "c", partitions=3)
    assert [topic.error_code for topic in answer.topics] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert "c" not in two_a_second.controller.image.topics


def test_topics_that_are_created_by_themselves_are_held_to_the_quota_and_their_client_is_not_throttled(two_a_second):
    client = Client(two_a_second)

    def told(*names):
        answer = client.ask(ApiKey.METADATA, 12, topics=[{"topic_id": None, "name": name} for name in names])
        assert (told_ms(answer), client.muted_ms) == (0, [])
        return [topic.error_code for topic in answer.topics]

    assert [topic.error_code for topic in create(client, 7, "a", partitions=5).topics] == [0]
    assert told("b", "c") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert not {"b", "c"} & set(two_a_second.controller.image.topics)
    two_a_second.clock.advance(1_000)
    # One token is left, and each topic takes one.
    assert told("b", "c", "d") == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    # Others have as many as before.
    assert create(Client(two_a_second, "other"), 7, "e", partitions=9).topics[0].error_code == 0


def test_what_the_broker_creates_for_itself_takes_of_no_client_s_quota(two_a_second):
    client = Client(two_a_second)
    client.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["group"])
    assert "__consumer_offsets" in two_a_second.controller.image.topics
    assert [topic.error_code for topic in create(client, 7, "a").topics] == [0]


def test_an_older_client_creates_its_topics_and_is_throttled(two_a_second):
    client = Client(two_a_second)
    answer = create(client, 5, "a", partitions=10)
    assert [topic.error_code for topic in answer.topics] == [0]
    assert client.muted_ms == [told_ms(answer)] == [3_000]


def test_a_topic_that_cannot_be_created_costs_nothing(two_a_second):
    client = Client(two_a_second)
    assert create(client, 7, "t", partitions=100).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert create(client, 7, "a", partitions=4).topics[0].error_code == 0
    assert create(client, 7, "b", partitions=4).topics[0].error_code == 0


def test_a_validation_costs_as_much_as_the_change(two_a_second):
    client = Client(two_a_second)
    create(client, 7, "a", partitions=10, validate_only=True)
    assert create(client, 7, "a").topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_more_partitions_and_deletions_are_held_to_the_quota(two_a_second):
    client = Client(two_a_second)
    grow = {"topics": [{"name": "t", "count": 11, "assignments": None}], "timeout_ms": 5_000}
    assert client.ask(ApiKey.CREATE_PARTITIONS, 3, **grow).results[0].error_code == 0
    delete = {"topics": [{"name": "t", "topic_id": None}], "timeout_ms": 5_000}
    refused = client.ask(ApiKey.DELETE_TOPICS, 6, **delete)
    assert (refused.responses[0].error_code, told_ms(refused)) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 3_000)
    two_a_second.clock.advance(3_000)
    assert client.ask(ApiKey.DELETE_TOPICS, 6, **delete).responses[0].error_code == 0
    grow["topics"][0]["name"] = "none"
    refused = client.ask(ApiKey.CREATE_PARTITIONS, 3, **grow)
    assert refused.results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_older_client_deletes_and_is_throttled(two_a_second):
    client = Client(two_a_second)
    create(Client(two_a_second, "other"), 7, "a", partitions=10)
    answer = client.ask(ApiKey.DELETE_TOPICS, 4, topic_names=["a"], timeout_ms=5_000)
    assert answer.responses[0].error_code == 0
    assert client.muted_ms == [told_ms(answer)] == [3_000]
