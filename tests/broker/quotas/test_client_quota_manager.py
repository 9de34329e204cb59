"""The sensors of one kind of quota."""

from uuid import UUID

import pytest

from odradek.broker.metrics.broker import QUOTA_SECTION
from odradek.broker.quotas.client_quota_manager import (
    IDLE_MS,
    ClientQuotaManager,
    QuotaWindow,
    fetch_response_bytes,
    share_fetch_response_bytes,
)
from odradek.broker.replica.fetch_partitions import FetchPartition
from odradek.controller.metadata.client_quotas import (
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    QuotaEntity,
    quota_record,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.message_types.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.message_types.fetch import FetchPartition as GuardedRequest
from odradek.protocol.message_types.share_fetch import AcquiredRecords, ShareFetchableTopicResponse, ShareFetchResponse
from odradek.protocol.message_types.share_fetch import PartitionData as ShareData
from odradek.protocol.records import Record, build_batch
from tests.broker.quotas.bed import Client, broker_with, quota, told_ms
from tests.cases import each_case

BEGIN_MS = 1_000_000


@pytest.fixture
def quotas():
    return ClientQuotas()


@pytest.fixture
def manager(quotas):
    return ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, QuotaWindow())


def put(quotas, value, **names):
    quotas.replay(
        quota_record(QuotaEntity.of({kind.replace("_", "-"): name for kind, name in names.items()}), PRODUCER_BYTE_RATE, value)
    )


def test_a_client_without_a_quota_is_not_counted(quotas, manager):
    put(quotas, 10, client_id="other")
    assert manager.record("u", "c", 1e9, BEGIN_MS) == 0
    assert list(manager.sensors(BEGIN_MS)) == []


def test_a_burst_within_ten_seconds_worth_is_let_through(quotas, manager):
    put(quotas, 1_000, client_id="c")
    assert manager.record("u", "c", 10_000, BEGIN_MS) == 0
    assert manager.record("u", "c", 1_000, BEGIN_MS) == 1_000


def test_the_throttle_time_is_what_brings_the_rate_down_to_the_quota(quotas, manager):
    put(quotas, 1_000, client_id="c")
    throttle_ms = manager.record("u", "c", 25_000, BEGIN_MS)
    assert throttle_ms == 15_000
    # The sample of 25,000 bytes is obsolete after eleven seconds.
    assert manager.record("u", "c", 1, BEGIN_MS + throttle_ms) == 0


def test_clients_of_one_user_share_its_sensor(quotas, manager):
    put(quotas, 1_000, user="u")
    manager.record("u", "one", 6_000, BEGIN_MS)
    assert manager.record("u", "two", 6_000, BEGIN_MS) == 2_000
    assert [owner for owner, _ in manager.sensors(BEGIN_MS)] == [("u", "")]


def test_each_client_has_a_sensor_of_its_own_by_a_default(quotas, manager):
    put(quotas, 1_000, client_id=None)
    manager.record("u", "one", 10_000, BEGIN_MS)
    assert manager.record("u", "two", 10_000, BEGIN_MS) == 0


def test_a_changed_quota_holds_for_what_was_taken_before(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.record("u", "c", 10_000, BEGIN_MS)
    put(quotas, 500, client_id="c")
    assert manager.record("u", "c", 0, BEGIN_MS) == 10_000


def test_a_removed_quota_throttles_no_more(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.record("u", "c", 100_000, BEGIN_MS)
    put(quotas, None, client_id="c")
    assert not manager.is_enabled
    assert manager.record("u", "c", 100_000, BEGIN_MS) == 0


def test_what_is_taken_back_was_never_taken(quotas, manager):
    put(quotas, 1_000, client_id="c")
    assert manager.record("u", "c", 20_000, BEGIN_MS) == 10_000
    manager.take_back("u", "c", 20_000, BEGIN_MS)
    assert manager.record("u", "c", 10_000, BEGIN_MS) == 0


def test_a_sensor_is_forgotten_after_an_idle_hour(quotas, manager):
    put(quotas, 1_000, client_id=None)
    manager.record("u", "old", 1, BEGIN_MS)
    manager.record("u", "new", 1, BEGIN_MS + IDLE_MS)
    assert [owner for owner, _ in manager.sensors(BEGIN_MS + IDLE_MS)] == [("", "old"), ("", "new")]
    assert [owner for owner, _ in manager.sensors(BEGIN_MS + IDLE_MS + 1)] == [("", "new")]


def test_new_clients_have_idle_sensors_forgotten(quotas, manager):
    put(quotas, 1_000, client_id=None)
    for number in range(100):
        manager.record("u", f"c{number}", 1, BEGIN_MS + number * IDLE_MS // 10)
    assert len(manager._sensors) <= 12


def test_throttle_times_that_are_not_over_are_counted(quotas, manager):
    put(quotas, 1_000, client_id="c")
    manager.note_throttled("u", "c", 300, BEGIN_MS)
    manager.note_throttled("u", "c", 100, BEGIN_MS)
    assert [manager.throttled_now(BEGIN_MS + passed_ms) for passed_ms in (0, 99, 100, 299, 300)] == [2, 2, 1, 1, 0]


def test_a_bound_of_throttle_times_holds(quotas):
    manager = ClientQuotaManager(PRODUCER_BYTE_RATE, quotas, QuotaWindow(), most_ms=1_000)
    put(quotas, 1, client_id="c")
    assert manager.record("u", "c", 1e6, BEGIN_MS) == 1_000


def test_there_are_only_so_many_sensors(quotas, manager):
    put(quotas, 1_000, client_id=None)
    for number in range(10_001):
        manager.record("u", f"c{number}", 1, BEGIN_MS + number)
    owners = [client_id for (_, client_id), _ in manager.sensors(BEGIN_MS + 20_000)]
    assert len(owners) == 7_501
    assert owners[0] == "c2500"
    assert owners[-1] == "c10000"


# A Fetch response counts with its size.
TOPIC_ID = UUID(int=7)
PARTITIONS = (
    PartitionData(partition_index=0, records=bytes(5)),
    PartitionData(partition_index=1, records=bytes(300), aborted_transactions=[AbortedTransaction(1, 2)]),
    PartitionData(partition_index=2, records=b""),
)


@each_case("version", range(4, 19))
@each_case("partitions", [PARTITIONS, PARTITIONS[:1], ()])
def test_the_size_is_that_of_the_body_and_four_bytes(version, partitions):
    key = TOPIC_ID if version >= 13 else "a topic"
    results = [(FetchPartition(key, GuardedRequest(partition=data.partition_index)), data) for data in partitions]
    named = (TOPIC_ID, "") if version >= 13 else (None, "a topic")
    topics = [FetchableTopicResponse(topic_id=named[0], partitions=list(partitions), topic=named[1])] if partitions else []
    encoded = response_encoder(ApiKey.FETCH, version)(1, FetchResponse(responses=topics))
    header_bytes = 9 if version >= 12 else 8
    assert fetch_response_bytes(version, results) == sum(map(len, encoded)) - header_bytes + 4


@each_case("version", [1, 2])
def test_the_size_of_a_share_fetch_response_is_that_of_its_body_and_four_bytes(version):
    acquired = [AcquiredRecords(offset, offset, 1) for offset in range(200)]
    data = [ShareData(0, records=bytes(300), acquired_records=acquired), ShareData(1, 3, records=b"")]
    for partitions in (data, data[1:], []):
        response = ShareFetchResponse(responses=[ShareFetchableTopicResponse(TOPIC_ID, partitions)] if partitions else [])
        encoded = response_encoder(ApiKey.SHARE_FETCH, version)(1, response)
        assert share_fetch_response_bytes(response) == sum(map(len, encoded)) - 9 + 4


# Metrics of quotas.
@pytest.fixture
def broker():
    return broker_with("t")


def read(broker):
    return {metric.name: dict(samples) for metric, samples in QUOTA_SECTION.read(broker)}


def test_nothing_is_told_without_a_quota(broker):
    Client(broker).produce(build_batch([Record(timestamp=0, value=b"v")]))
    assert set(map(len, read(broker).values())) == {0}


def test_a_throttled_producer_is_told_by_the_entity_of_its_quota(broker):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, client_id="client")
    client = Client(broker)
    throttle_ms = told_ms(client.produce(build_batch([Record(timestamp=0, value=bytes(12_000))])))
    told = read(broker)
    assert told["kafka_server_produce_byte_rate"] == {("", "client"): client.sent_bytes / 10}
    assert told["kafka_server_produce_throttle_time"] == {("", "client"): throttle_ms}
    assert told["kafka_server_produce_queue_size"] == {(): 1}
    assert told["kafka_server_fetch_queue_size"] == {(): 0}
    broker.clock.advance(throttle_ms)
    assert read(broker)["kafka_server_produce_queue_size"] == {(): 0}


def test_tokens_are_told_as_they_are_now(broker):
    quota(broker, CONTROLLER_MUTATION_RATE, 1, user="ANONYMOUS")
    topic = {"name": "a", "num_partitions": 15, "replication_factor": 1}
    Client(broker).ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5_000)
    assert read(broker)["kafka_server_controllermutation_tokens"] == {("ANONYMOUS", ""): -4}
    broker.clock.advance(1_000)
    told = read(broker)
    assert told["kafka_server_controllermutation_tokens"] == {("ANONYMOUS", ""): -3}
    assert told["kafka_server_controllermutation_mutation_rate"] == {("ANONYMOUS", ""): pytest.approx(15 / 31)}


def test_exempt_time_is_told_apart(broker):
    quota(broker, REQUEST_PERCENTAGE, 50, user=None)

    class Busy:
        def admit(self, context, request):
            broker.clock.advance(60)

        def release(self, context, response):
            return response

    broker.dispatcher.add_gate(Busy())
    Client(broker).produce(build_batch([Record(timestamp=0, value=b"v")]), acks=0)
    told = read(broker)
    assert told["kafka_server_request_request_time"] == {}
    assert told["kafka_server_request_exempt_request_time"] == {(): pytest.approx(0.2)}
