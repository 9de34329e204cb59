"""Overrides of brokers, laid over the static configuration."""

import pytest

from odradek.common.config.definitions import ConfigType
from odradek.common.config.describe import ConfigSource, Synonym, broker_entries, cluster_default_entries, topic_entries
from odradek.common.config.dynamic import apply_broker_overrides, base_name, is_dynamic, is_for_one_broker_only
from odradek.common.config.table import BROKER_CONFIGS, TOPIC_CONFIGS
from tests.common.config.doubles import make_view


def test_this_brokers_override_wins_over_the_clusters_and_both_over_the_file():
    view = make_view(
        "max.connections=1\nmax.connection.creation.rate=1\nmessage.max.bytes=1",
        overrides={(4, ""): {"max.connections": "2", "max.connection.creation.rate": "2"}, (4, "1"): {"max.connections": "3"}},
    )
    assert apply_broker_overrides(view) == []
    assert [view.config[name] for name in ("max.connections", "max.connection.creation.rate", "message.max.bytes")] == [3, 2, 1]


def test_overrides_that_are_gone_are_no_longer_in_force():
    overrides = {(4, "1"): {"max.connections": "3"}}
    view = make_view(overrides=overrides)
    apply_broker_overrides(view)
    overrides.clear()
    apply_broker_overrides(view)
    assert view.config["max.connections"] == 2**31 - 1


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [("1", "max.connections", "x"), ("1", "num.partitions", "5"), ("", "listener.name.a.ssl.keystore.type", "JKS")],
)
def test_a_stored_override_that_cannot_be_is_left_out_and_told(broker, name, value):
    view = make_view(overrides={(4, broker): {name: value, "message.max.bytes": "7"}})
    (warning,) = apply_broker_overrides(view)
    assert name in warning
    assert view.config["message.max.bytes"] == 7


def test_stored_overrides_that_do_not_go_together_are_left_out_and_told():
    view = make_view(overrides={(4, "1"): {"max.connections.per.ip": "0"}})
    (warning,) = apply_broker_overrides(view)
    assert "max.connections.per.ip" in warning
    assert view.config["max.connections.per.ip"] == 2**31 - 1


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.a.max.connections", "max.connections"),
        ("listener.name.a", "listener.name.a"),
        ("max.connections", "max.connections"),
    ],
)
def test_a_config_for_one_listener_is_known_by_the_config_it_sets(name, base):
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "dynamic", "for_one_broker_only"),
    [
        ("max.connections", True, False),
        ("listener.name.a.max.connections", True, False),
        ("listener.name.a.ssl.keystore.type", True, True),
        ("ssl.keystore.type", False, False),
        ("sasl.jaas.config", True, True),
        ("num.partitions", False, False),
    ],
)
def test_where_a_config_may_be_set_while_the_broker_runs(name, dynamic, for_one_broker_only):
    assert is_dynamic(name) is dynamic
    assert is_for_one_broker_only(name) is for_one_broker_only


# Descriptions of configs. A Kafka 4.3.1 broker with the same settings gave the expected ones.
TOPIC, BROKER, CLUSTER, STATIC, DEFAULT = list(ConfigSource)[:5]


def topic_entry(view, name, overrides=None):
    return {entry.name: entry for entry in topic_entries(view, overrides or {})}[name]


def broker_entry(view, name):
    return {entry.name: entry for entry in broker_entries(view)}[name]


def test_every_config_is_told_but_internal_ones():
    view = make_view()
    assert {entry.name for entry in topic_entries(view, {})} == {name for name, row in TOPIC_CONFIGS.items() if not row.internal}
    told = {name for name, row in BROKER_CONFIGS.items() if not (row.internal or row.is_described_if_set)}
    assert {entry.name for entry in broker_entries(view)} == told


def test_a_config_that_kafka_sets_at_run_time_only_is_told_where_it_is_set():
    name = "leader.replication.throttled.rate"
    view = make_view(overrides={(4, "1"): {name: "10"}})
    assert apply_broker_overrides(view) == []
    entry = broker_entry(view, name)
    assert (entry.value, entry.source, entry.type, entry.synonyms) == (
        "10",
        BROKER,
        ConfigType.LONG,
        (Synonym(name, "10", BROKER),),
    )


def test_an_internal_config_is_told_where_it_is_set():
    assert topic_entry(make_view(), "internal.segment.bytes", {"internal.segment.bytes": "9"}).value == "9"
    assert broker_entry(make_view("log.initial.task.delay.ms=5"), "log.initial.task.delay.ms").value == "5"


def test_a_topics_override_comes_first_and_the_brokers_settings_after_it():
    view = make_view(
        "log.cleanup.policy=delete",
        overrides={(4, "1"): {"log.cleanup.policy": "compact"}, (4, ""): {"log.cleanup.policy": "compact,delete"}},
    )
    entry = topic_entry(view, "cleanup.policy", {"cleanup.policy": " compact , delete "})
    assert (entry.value, entry.source, entry.type, entry.read_only) == ("compact,delete", TOPIC, ConfigType.LIST, False)
    assert entry.synonyms == (
        Synonym("cleanup.policy", "compact,delete", TOPIC),
        Synonym("log.cleanup.policy", "compact", BROKER),
        Synonym("log.cleanup.policy", "compact,delete", CLUSTER),
        Synonym("log.cleanup.policy", "delete", STATIC),
        Synonym("log.cleanup.policy", "delete", DEFAULT),
    )


def test_a_topic_without_override_has_the_brokers_value_and_source():
    entry = topic_entry(make_view("log.segment.bytes=2000000"), "segment.bytes")
    assert (entry.value, entry.source) == ("2000000", STATIC)


def test_a_coarser_unit_decides_the_value_but_is_not_told_as_its_source():
    # So Kafka does: log.retention.ms, which is not set, is what retention.ms is a synonym of.
    entry = topic_entry(make_view("log.retention.hours=100"), "retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == ("360000000", DEFAULT, ())


def test_what_is_not_set_has_no_value():
    entry = broker_entry(make_view(), "log.retention.ms")
    assert (entry.value, entry.source, entry.synonyms) == (None, DEFAULT, ())


def test_a_config_that_cannot_change_is_read_only():
    assert broker_entry(make_view(), "num.partitions").read_only
    assert not broker_entry(make_view(), "log.retention.ms").read_only


def test_the_value_of_a_key_nobody_knows_is_not_told():
    entry = broker_entry(make_view("some.plugins.password=secret"), "some.plugins.password")
    assert (entry.value, entry.sensitive, entry.read_only, entry.type) == (None, True, True, ConfigType.UNKNOWN)
    assert entry.synonyms == (Synonym("some.plugins.password", None, STATIC),)


def test_a_config_of_one_listener_is_told_with_the_type_of_the_config_it_sets():
    view = make_view(overrides={(4, "1"): {"listener.name.plaintext.max.connections": "7"}})
    entry = broker_entry(view, "listener.name.plaintext.max.connections")
    assert (entry.value, entry.type, entry.source) == ("7", ConfigType.INT, BROKER)


def test_node_id_is_told_under_both_its_names():
    view = make_view("node.id=7")
    assert broker_entry(view, "broker.id").value == broker_entry(view, "node.id").value == "7"


def test_listeners_are_told_as_they_were_configured():
    listeners = "PLAINTEXT://:9092,CONTROLLER://:9093"
    assert broker_entry(make_view(f"controller.listener.names=CONTROLLER\nlisteners={listeners}"), "listeners").value == listeners


def test_the_clusters_default_is_what_was_set_there_and_no_more():
    view = make_view("max.connections=4", overrides={(4, ""): {"max.connections": "5", "a.plugins.own": "x"}})
    told = [(entry.name, entry.value, entry.source, len(entry.synonyms)) for entry in cluster_default_entries(view)]
    assert told == [("max.connections", "5", CLUSTER, 1), ("a.plugins.own", None, CLUSTER, 1)]


def test_every_config_is_documented():
    view = make_view()
    assert all(entry.documentation for entry in (*topic_entries(view, {}), *broker_entries(view)))


def test_no_secret_of_tls_is_told():
    secret = "a-secret"
    names = [name for name, row in BROKER_CONFIGS.items() if name.startswith("ssl.") and row.type is ConfigType.PASSWORD]
    assert len(names) == 6
    text = "".join(f"{name}={secret}\nlistener.name.plaintext.{name}={secret}\n" for name in names)
    view = make_view(text, overrides={(4, "1"): {f"listener.name.plaintext.{name}": secret for name in names}})
    assert apply_broker_overrides(view) == []
    told = {entry.name: entry for entry in (*broker_entries(view), *cluster_default_entries(view))}
    for name in (*names, *(f"listener.name.plaintext.{name}" for name in names)):
        assert (told[name].sensitive, told[name].value) == (True, None)
    assert secret not in repr(told)
    assert secret not in repr(view.config)
