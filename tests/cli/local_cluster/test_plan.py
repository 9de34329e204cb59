"""What the nodes of a local cluster are started with."""

from pathlib import Path

import pytest

from odradek.cli.local_cluster.node import plan_cluster
from odradek.common.config.broker_config import load

PLACE = Path("/place")
FACTORS = ("default.replication.factor", "offsets.topic.replication.factor", "transaction.state.log.replication.factor")


def test_there_are_a_controller_and_brokers_from_1_on():
    controller, first, second = plan_cluster(PLACE, 9000, (9001, 9002), {}, cores=8)
    assert (controller.name, controller.address, controller.directory) == (
        "controller 100",
        "127.0.0.1:9000",
        PLACE / "controller-100",
    )
    assert (first.name, first.log_path) == ("broker 1", PLACE / "broker-1.log")
    assert (second.name, second.address) == ("broker 2", "127.0.0.1:9002")


def test_brokers_have_valid_configurations_without_warnings():
    _, *brokers = plan_cluster(PLACE, 9000, (9001, 9002, 9003), {"num.partitions": "7"}, cores=8)
    for node_id, broker in enumerate(brokers, 1):
        config = load(None, broker.settings)
        assert (config.warnings, config["process.roles"], config["node.id"]) == ((), ("broker",), node_id)
        assert (config["num.partitions"], len(config["controller.quorum.voters"])) == (7, 1)


@pytest.mark.parametrize(("brokers", "replicas", "min_isr"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (5, 3, 2)])
def test_there_are_three_replicas_where_there_are_three_brokers(brokers, replicas, min_isr):
    settings = plan_cluster(PLACE, 9000, tuple(range(9001, 9001 + brokers)), {}, cores=8)[-1].settings
    assert [settings[name] for name in FACTORS] == [str(replicas)] * 3
    assert settings["transaction.state.log.min.isr"] == str(min_isr)


def test_a_setting_that_is_chosen_counts_for_every_node():
    plans = plan_cluster(PLACE, 9000, (9001,), {"default.replication.factor": "1"}, cores=8)
    assert {plan.settings["default.replication.factor"] for plan in plans} == {"1"}


@pytest.mark.parametrize(("cores", "told"), [(2, "0"), (3, "0"), (4, None)])
def test_brokers_poll_busily_where_each_node_has_a_core(cores, told):
    settings = plan_cluster(PLACE, 9000, (9001, 9002, 9003), {}, cores=cores)[-1].settings
    assert settings.get("socket.busy.poll.us") == told


def test_a_setting_of_one_broker_counts_for_that_broker():
    plans = plan_cluster(PLACE, 9000, (9001, 9002), {"num.partitions": "7"}, {2: {"num.partitions": "3"}}, cores=8)
    assert [plan.settings["num.partitions"] for plan in plans] == ["7", "7", "3"]


def test_what_clients_are_told_to_connect_to_is_a_setting():
    _, broker = plan_cluster(PLACE, 9000, (9001,), {}, cores=8)
    assert broker.settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9001"
