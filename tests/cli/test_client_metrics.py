"""``odradek client-metrics`` against a broker."""

import pytest


@pytest.fixture
def name(new_name):
    return new_name()


def listed(ask_json, name):
    return [row for row in ask_json("client-metrics", "list") if row["name"] == name]


def test_a_subscription_that_is_set_is_listed_and_one_that_is_removed_is_not(ask_json, name):
    ask_json("client-metrics", "set", name, "--metrics", "org.apache.kafka.producer.,a", "--interval-ms", 500)
    row = {"name": name, "metrics": "org.apache.kafka.producer.,a", "interval_ms": 500, "match": ""}
    assert listed(ask_json, name) == [row]
    ask_json("client-metrics", "set", name, "--match", "client_id=app.*")
    assert listed(ask_json, name) == [row | {"match": "client_id=app.*"}]
    ask_json("client-metrics", "remove", name)
    assert listed(ask_json, name) == []


def test_a_subscription_that_cannot_be_is_refused_with_kafkas_words(ask, name):
    status, out, err = ask("client-metrics", "set", name, "--interval-ms", 99)
    assert (status, out) == (1, "")
    assert "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour) (INVALID_REQUEST)" in err


def test_there_has_to_be_something_to_set(ask, name):
    status, _, err = ask("client-metrics", "set", name)
    assert (status, "nothing to set" in err) == (2, True)
