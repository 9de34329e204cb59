"""What a rule may say, and what is said of one that may not."""

import pytest

from odradek.testing import Broker
from odradek.testing.faults.vocabulary import BadRule, checked
from tests.cases import each_case


@each_case(
    ("words", "message"),
    [
        ({"apis": "Produce"}, "apis: unknown key; did you mean api? allowed are api, client_id"),
        ({"api": "Product"}, "api: 'Product' is not allowed; allowed are names and numbers of APIs, such as Produce"),
        ({"api": []}, "api: [] is not allowed"),
        ({"error": "NOPE"}, "error: 'NOPE' is not allowed; allowed are names and numbers of Kafka's error codes"),
        ({"error": True}, "error: True is not allowed"),
        ({"times": 0}, "times: 0 is not allowed; allowed is a whole number from 1 on"),
        ({"close": "now"}, "close: 'now' is not allowed; allowed are before and after"),
        ({"drop": False}, "drop: False is not allowed; allowed is true"),
        ({"split": [0]}, "split: [0] is not allowed"),
        ({"probability": 1.5}, "probability: 1.5 is not allowed; allowed is a number above 0, up to 1"),
        ({"predicate": "x"}, "predicate: 'x' is not allowed; allowed is a function"),
        ({"drop": True, "stall": True}, "drop and stall: a rule has only one action"),
        ({"refuse": True, "topic": "t"}, "topic: 't' is not allowed for connections"),
        ({"nth": 1, "times": 1}, "nth: 1 is not allowed with times"),
        ({"nth": 1, "probability": 0.5}, "nth: 1 is not allowed with probability"),
        (
            {"api": "Heartbeat", "topic": "t"},
            "topic: 't' is not allowed with Heartbeat: its requests have none, so the rule would",
        ),
        ({"api": ["EndTxn", "Produce"], "topic": "t"}, "topic: 't' is not allowed with EndTxn: its requests have none"),
        ({"api": "Produce", "group": "g"}, "group: 'g' is not allowed with Produce: its requests have none"),
        ({"api": "ApiVersions", "transactional_id": "x"}, "transactional_id: 'x' is not allowed with ApiVersions: its requests"),
        (
            {"api": "SaslHandshake", "throttle_ms": 5},
            "throttle_ms: 5 is not allowed with SaslHandshake: its responses have no",
        ),
        ({"point": "PrepareCommit", "topic": "t"}, "topic: 't' is not allowed: it has no such records"),
        ({"point": "Offsets", "topic": "__transaction_state"}, "topic: '__transaction_state' is not allowed: it has no such"),
        ({"point": "Records", "topic": "__consumer_offsets"}, "topic: '__consumer_offsets' is not allowed: it has no such"),
        ({"seed": 1}, "seed: 1 is not allowed alone"),
        ({"partition": 1}, "partition: 1 is not allowed alone"),
    ],
)
def test_a_bad_rule_is_told_by_its_key_its_value_and_what_is_allowed(words, message):
    with pytest.raises(BadRule) as raised:
        checked(words)
    assert str(raised.value).startswith(message)


@each_case(
    "words",
    [
        {"api": "FindCoordinator", "group": "g"},
        {"api": "FindCoordinator", "transactional_id": "x"},
        {"api": ["Produce", "AddPartitionsToTxn", "TxnOffsetCommit"], "transactional_id": "x", "topic": "t"},
        {"api": ["Fetch", "Metadata", "ListOffsets", "CreateTopics", "DeleteTopics"], "topic": "t", "partition": 1},
        {"api": ["Heartbeat", "JoinGroup", "DescribeGroups", "DeleteGroups", "ConsumerGroupHeartbeat"], "group": "g"},
        {"api": ["OffsetCommit", "OffsetFetch"], "group": "g", "topic": "t"},
        {"group": "g", "transactional_id": "x", "topic": "t"},
        {"point": "PrepareCommit", "topic": "__transaction_state", "partition": 1},
        {"point": "GroupMarker", "topic": "__consumer_offsets"},
        {"point": "Records", "topic": "t"},
        {"point": "Marker", "topic": "t"},
    ],
)
def test_a_rule_that_can_fire_is_taken(words):
    assert checked(words).keys() == words.keys()


def test_an_api_is_named_as_kafka_names_it_or_by_its_number():
    assert checked({"api": "TxnOffsetCommit"}) == checked({"api": 28}) == checked({"api": ["TXN_OFFSET_COMMIT"]})


def test_of_several_rules_all_are_added_or_none():
    with Broker() as broker:
        with pytest.raises(BadRule, match="rule 1: times: 0 is not allowed"):
            broker.faults.load([{"api": "Produce", "drop": True}, {"times": 0}])
        assert broker.faults.fired == []
        broker.produce("orders", ["the rule that was right is not there"])
        [fault] = broker.faults.load([{"api": "Produce", "error": 1}])
        assert str(fault) == "api=PRODUCE, error=OFFSET_OUT_OF_RANGE"
