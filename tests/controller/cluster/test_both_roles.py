"""A broker with the cluster's controller in its own process (``process.roles=broker,controller``), and others that join it.

The directory was a lone broker's before, and is one's again in the end.
"""

import pytest

from benchmarks.ports import free_ports
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.controller.cluster.own_clusters import SETTINGS, Clients, Quorum, values_of

pytestmark = pytest.mark.timeout(120)

FIRST, SECOND = 11, 12
ALONE = {"node.id": "1", "offsets.topic.num.partitions": "3"}


def test_a_lone_brokers_directory_becomes_the_first_of_a_cluster_and_is_alone_again(tmp_path):
    port, controller_port = free_ports(2)
    node = BrokerProcess(tmp_path / "one", settings=ALONE)
    node.port = port
    clients = Clients({1: port})
    with node:
        clients.create("solo", 2, 1)
        clients.produce("solo", values_of("solo", 40), 2)
    node.settings |= SETTINGS | {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    brokers = OdradekBrokers(tmp_path / "others", Quorum(controller_port), {FIRST: SETTINGS, SECOND: SETTINGS})
    try:
        with node:
            assert clients.consume("solo", 40, 2) == values_of("solo", 40)
            brokers.start()
            every = Clients({1: port} | brokers.ports)
            every.create("three")
            every.produce("three", values_of("three", 90))
            node.kill9()
            node.start()
            every.until(lambda: every.in_sync_at(1, "three") == [[1, FIRST, SECOND]] * 3, lambda: node.stderr[-3000:])
            every.produce("three", values_of("more", 90))
            assert [brokers.stop(FIRST), brokers.stop(SECOND)] == [0, 0]
            assert clients.leaders("three") == [1, 1, 1]
    finally:
        brokers.close()
    node.settings = ALONE
    with node:
        assert clients.consume("three", 180) == sorted(values_of("three", 90) + values_of("more", 90))
        assert clients.consume("solo", 40, 2) == values_of("solo", 40)
        clients.produce("three", values_of("last", 9))
    assert '"level": "error"' not in node.stderr
