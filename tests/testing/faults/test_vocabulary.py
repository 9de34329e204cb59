"""What a rule may say, and what is said of one that may not."""

import pytest

from odradek.testing import Broker
from odradek.testing.faults.vocabulary import BadRule, checked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"apis": "Produce"}, "apis: there is no such key; allowed are api, client_id"),
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
        ({"drop": True, "stall": True}, "drop and stall: one rule has one of these"),
        ({"refuse": True, "topic": "t"}, "topic: 't' is not allowed of connections"),
        ({"nth": 1, "times": 1}, "nth: 1 is not allowed with after or times"),
        ({"seed": 1}, "seed: 1 is not allowed alone"),
        ({"partition": 1}, "partition: 1 is not allowed alone"),
    ],
)
def test_a_bad_rule_is_told_by_its_key_its_value_and_what_is_allowed(words, message):
    with pytest.raises(BadRule) as raised:
        checked(words)
    assert str(raised.value).startswith(message)


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
