"""Overrides of brokers, laid over the static configuration."""

import pytest

from odradek.broker.config.dynamic import apply_broker_overrides, base_name, is_dynamic, is_for_one_broker_only

from .doubles import make_view


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
