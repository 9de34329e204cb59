"""What the configs of a client metrics subscription may be, by Kafka's codes and words."""

import pytest

from odradek.controller.metadata.resource_configs import check_subscription, parse_match
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.cases import each_case

REQUEST, CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG


@each_case(
    "configs",
    [
        {},
        {"metrics": "*", "interval.ms": "100", "match": ""},
        {"metrics": "", "interval.ms": "3600000"},
        {"metrics": " a , b ,a", "interval.ms": " 200 "},
        {"match": " client_id = app.* , client_source_port=[0-9]+"},
        {"match": "client_id=a="},
        {"match": "client_id=(?i)a"},
    ],
)
def test_a_subscription_may_be(configs):
    check_subscription("s", configs)


@each_case(
    ("configs", "code", "reason"),
    [
        ({"no.such": "1"}, REQUEST, "Unknown client metrics configuration: no.such"),
        ({"interval.ms": "99"}, REQUEST, "Invalid value 99 for interval.ms, interval must be between 100 and 3600000"),
        ({"interval.ms": "3600001"}, REQUEST, "Invalid value 3600001 for interval.ms"),
        ({"interval.ms": "x"}, CONFIG, "Invalid value x for configuration interval.ms"),
        ({"metrics": "a,,b"}, CONFIG, "Configuration 'metrics' values must not be empty"),
        ({"match": "client_id=a,"}, CONFIG, "Configuration 'match' values must not be empty"),
        ({"match": "client_id"}, CONFIG, "Illegal client matching pattern: client_id"),
        ({"match": "client_id=a=b"}, CONFIG, "Illegal client matching pattern: client_id=a=b"),
        ({"match": "Client_id=a"}, CONFIG, "Illegal client matching pattern: Client_id=a"),
        ({"match": "client_id=("}, CONFIG, "Illegal client matching pattern: client_id="),
        ({"match": "client_id=(?=a)a"}, CONFIG, "Illegal client matching pattern"),
        ({"match": f"client_id={'a' * 1025}"}, CONFIG, "Illegal client matching pattern"),
    ],
)
def test_a_subscription_may_not_be(configs, code, reason):
    with pytest.raises(KafkaError, match=reason.replace("(", "\\(")) as refused:
        check_subscription("s", configs)
    assert refused.value.code == code


def test_a_subscription_has_a_name():
    with pytest.raises(KafkaError, match="Subscription name can't be empty") as refused:
        check_subscription("", {})
    assert refused.value.code == REQUEST


def test_the_last_pattern_of_an_attribute_counts():
    patterns = parse_match(["client_id=a", "client_id=b"])
    assert patterns.keys() == {"client_id"}
    assert patterns["client_id"].fullmatch("b")
