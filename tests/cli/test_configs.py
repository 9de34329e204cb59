"""``odradek configs`` against a broker."""

import pytest

from odradek.cli import configs
from odradek.protocol.message_types.describe_configs import DescribeConfigsResourceResult

# A new directory has this, because its partitions keep eligible leader replicas (KIP-966).
OF_ALL_BROKERS = {"min.insync.replicas": ("1", "all brokers")}


@pytest.fixture
def described(ask_json):
    """The value and the source of each config that is shown."""
    return lambda *arguments: {
        row["config"]: (row["value"], row["source"]) for row in ask_json("configs", "describe", *arguments)
    }


def test_a_topics_own_configs_are_set_appended_and_removed(ask_json, described, topic):
    ask_json("configs", "alter", "topic", topic, "retention.ms=1000", "segment.ms=9")
    altered = ask_json("configs", "alter", "topic", topic, "--append", "cleanup.policy=compact", "--remove", "segment.ms")
    assert altered[0] == {"config": "segment.ms", "value": "604800000"}
    own = {"retention.ms": ("1000", "topic"), "cleanup.policy": ("delete,compact", "topic")}
    assert described("topic", topic) == {**own, **OF_ALL_BROKERS}
    ask_json("configs", "alter", "topic", topic, "--subtract", "cleanup.policy=delete")
    assert described("topic", topic, "cleanup.policy") == {"cleanup.policy": ("compact", "topic")}


def test_defaults_are_shown_when_asked_for(described, topic):
    assert described("topic", topic) == OF_ALL_BROKERS
    assert described("topic", topic, "--all")["retention.ms"] == ("604800000", "default")
    assert described("topic", topic, "retention.ms") == {"retention.ms": ("604800000", "default")}


def test_a_broker_and_all_brokers_have_configs(ask_json, described):
    ask_json("configs", "alter", "broker", "default", "message.max.bytes=2000000")
    ask_json("configs", "alter", "broker", 1, "log.cleaner.backoff.ms=20000")
    assert described("broker", "default") == {"message.max.bytes": ("2000000", "all brokers"), **OF_ALL_BROKERS}
    of_broker = described("broker", 1)
    assert of_broker["message.max.bytes"] == ("2000000", "all brokers")
    assert of_broker["log.cleaner.backoff.ms"] == ("20000", "broker")
    assert of_broker["listeners"][1] == "server.properties"
    ask_json("configs", "alter", "broker", "default", "--remove", "message.max.bytes")


def test_a_group_has_configs(ask_json, described, new_name):
    group = new_name()
    ask_json("configs", "alter", "group", group, "consumer.session.timeout.ms=50000")
    assert described("group", group) == {"consumer.session.timeout.ms": ("50000", "group")}


@pytest.mark.parametrize(
    ("argument", "before", "after"),
    [
        ("retention.ms=5", ("604800000", 5), ("5", 1)),
        ("--remove=retention.ms", ("5", 1), ("604800000", 5)),
        ("--append=cleanup.policy=compact", ("delete", 5), ("delete,compact", 1)),
        ("--subtract=cleanup.policy=delete", ("delete,compact", 1), ("compact", 1)),
    ],
)
def test_a_change_is_shown_though_the_broker_learns_of_it_a_moment_later(ask_json, topic, monkeypatch, argument, before, after):
    key = "cleanup.policy" if "cleanup.policy" in argument else "retention.ms"
    entries = [[DescribeConfigsResourceResult(key, value, config_source=source)] for value, source in (before, before, after)]
    monkeypatch.setattr(configs, "_describe", lambda *_: entries.pop(0))
    assert ask_json("configs", "alter", "topic", topic, argument) == [{"config": key, "value": after[0]}]


def test_a_wrong_config_is_refused_and_the_right_one_suggested(ask, topic):
    for arguments in (("describe", "topic", topic, "retension.ms"), ("alter", "topic", topic, "retension.ms=1")):
        status, _, err = ask("configs", *arguments)
        assert status == 1
        assert err.startswith(f"odradek: topic {topic}: there is no config retension.ms; did you mean retention.ms")


def test_a_wrong_value_is_refused_with_the_brokers_reason(ask, topic):
    status, _, err = ask("configs", "alter", "topic", topic, "retention.ms=soon")
    assert (status, "retention.ms" in err, err.count("\n")) == (1, True, 1)


def test_a_broker_has_an_id(ask):
    assert ask("configs", "describe", "broker", "x") == (2, "", "odradek: x is not the id of a broker, and not default\n")
    assert ask("configs", "describe", "broker", "9") == (2, "", "odradek: the cluster has no broker 9\n")
