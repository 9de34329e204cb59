"""Which clients are asked for what, and the id of it."""

from uuid import UUID

import pytest

from odradek.broker.telemetry.subscriptions import in_hash_order, requested_metrics, subscription_id, subscription_of
from odradek.common.config.table_groups import CLIENT_METRICS_DEFINITIONS
from odradek.protocol.texts import uuid_text
from tests.cases import each_case
from tests.project.documents import DOCS, code_blocks, table

ID = UUID(int=0x7140_0000_0000_0001)
CLIENT = {
    "client_id": "app-1",
    "client_software_name": "apache-kafka-java",
    "client_source_port": "5",
    "client_source_address": None,
}


def asked(*configs, attributes=CLIENT):
    return requested_metrics([subscription_of(each) for each in configs], attributes, ID)


def test_without_a_subscription_a_client_is_asked_for_nothing_every_five_minutes():
    assert asked()[:2] == ((), 300_000)


def test_the_smallest_interval_of_the_matching_subscriptions_counts():
    several = asked(
        {"metrics": "a", "interval.ms": "500"}, {"interval.ms": "200"}, {"interval.ms": "100", "match": "client_id=x"}
    )
    assert several[:2] == (("a",), 200)


def test_an_interval_beyond_five_minutes_is_five_minutes():
    assert asked({"interval.ms": "3600000"}).interval_ms == 300_000


def test_all_metrics_make_the_other_prefixes_superfluous():
    assert asked({"metrics": "a,b"}, {"metrics": "*"}).metrics == ("*",)


@each_case(
    ("match", "is_asked"),
    [
        ("", True),
        ("client_id=app-1", True),
        ("client_id=app", False),
        ("client_id=app.*", True),
        ("client_id=APP.*", False),
        ("client_id=app-[0-9],client_software_name=apache.*", True),
        ("client_id=app-[0-9],client_software_name=librdkafka", False),
        ("client_id=x,client_id=app-1", True),
        ("client_source_address=.*", False),
    ],
)
def test_a_client_is_asked_if_all_patterns_match_the_whole_of_its_attributes(match, is_asked):
    assert asked({"metrics": "m", "match": match}).metrics == (("m",) if is_asked else ())


def test_an_attribute_beyond_a_thousand_letters_matches_nothing():
    assert asked({"metrics": "m", "match": "client_id=.*"}, attributes={"client_id": "a" * 1025}).metrics == ()


# As Apache Kafka 4.3.1 computed them.
PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer.,a,b,aa,bB,org.apache.kafka.client.connection,z"
KAFKAS_IDS = {(PREFIXES, 250_000): 940162335, ("a,b", 200_000): 19487749, ("*", 150_000): 1322090239, ("", 300_000): -1517855779}


@each_case(("metrics", "interval_ms"), KAFKAS_IDS)
def test_the_id_is_kafkas(metrics, interval_ms):
    told = requested_metrics([subscription_of({"metrics": metrics, "interval.ms": str(interval_ms)})], {}, UUID(int=ID.int + 2))
    assert told.subscription_id == KAFKAS_IDS[metrics, interval_ms]


def test_the_id_changes_with_prefixes_interval_and_client():
    ids = {
        subscription_id(("a",), 1000, ID),
        subscription_id(("b",), 1000, ID),
        subscription_id(("a",), 1001, ID),
        subscription_id(("a",), 1000, UUID(int=ID.int + 1)),
    }
    assert len(ids) == 4


def test_names_are_in_the_order_of_their_hashes():
    # Their hash codes in Java: 2112 both, 97, 98. Of two that collide the first stays first.
    assert in_hash_order(["b", "BB", "a", "Aa"]) == ("BB", "Aa", "a", "b")
    assert in_hash_order(["b", "Aa", "a", "BB"]) == ("Aa", "BB", "a", "b")


def test_an_id_is_written_as_kafka_writes_it():
    assert uuid_text(UUID(int=0)) == "A" * 22
    assert uuid_text(UUID(int=(1 << 128) - 1)) == "_" * 21 + "w"


# The examples of docs/telemetry.md.
PAGE = DOCS / "telemetry.md"


@pytest.mark.parametrize("source", code_blocks(PAGE, "python"))
def test_an_example_passes(source):
    scope = {}
    exec(compile(source, PAGE, "exec"), scope)
    tests = [each for name, each in scope.items() if name.startswith("test_")]
    assert tests
    for each in tests:
        each()


def test_the_configs_are_those_that_there_are():
    told = [row["config"].strip("`") for row in table(PAGE, "config", "default", "what it says")]
    assert told == [row.name for row in CLIENT_METRICS_DEFINITIONS]
