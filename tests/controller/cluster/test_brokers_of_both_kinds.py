"""odradek's controller with an unmodified broker of Apache Kafka's and brokers of odradek's under it.

Some know the controller by its address alone, and learn from the log that it is the voter.
"""

import pytest

from odradek.client.api import Api
from odradek.client.blocking import BlockingClient
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.odradek_brokers import OdradekBrokers
from tests.campaigns.kafka_tools.odradek_controller import LOG_DIR, NODE_ID, OdradekController
from tests.controller.cluster.own_clusters import DEADLINE_S, SETTINGS, Clients, batches_by_offset, values_of

pytestmark = [pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(300)]

KAFKA, FIRST, SECOND = 5, 11, 12
EVERY = [KAFKA, FIRST, SECOND]


CONTROLLER = {
    "broker.session.timeout.ms": "2000",
    # Kafka's broker comes when there is one, and the log begins at it.
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "1",
}


class Cluster:
    def __init__(self, scratch):
        self.controller = OdradekController(scratch / "controller", CONTROLLER, is_dynamic=True)
        # The other broker is told the voter.
        by_address = SETTINGS | {"controller.quorum.voters": ""} | self.controller.quorum
        self.kafka = KafkaBrokers(scratch / "kafka", self.controller, {KAFKA: by_address})
        self.odradek = OdradekBrokers(scratch / "odradek", self.controller, {FIRST: by_address, SECOND: SETTINGS})
        self.clients = Clients(self.odradek.ports | self.kafka.ports)

    def begin(self):
        self.controller.start()
        self.odradek.start()
        self.clients.until(lambda: list(self.controller.log_dir().glob("*.checkpoint")))
        self.kafka.start()

    def close(self):
        self.odradek.close()
        self.kafka.close()
        self.controller.close()

    def told(self):
        return self.controller.log()[-3000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("own"))
    try:
        made.begin()
        yield made
    finally:
        made.close()


def test_topics_survive_kills_of_a_broker_and_of_the_controller(cluster):
    clients = cluster.clients
    clients.create("kept")
    values = values_of("kept", 360)
    clients.produce("kept", values[:90])
    cluster.kafka.kill9(KAFKA)
    clients.until(lambda: KAFKA not in clients.leaders("kept") and len(clients.leaders("kept")) == 3, cluster.told)
    clients.produce("kept", values[90:180])
    cluster.controller.kill9()
    # Who leads goes on to lead.
    clients.produce("kept", values[180:270])
    cluster.controller.start()
    cluster.kafka.start()
    clients.until(lambda: clients.in_sync("kept") == [EVERY] * 3, cluster.told)
    clients.produce("kept", values[270:])
    assert clients.consume("kept", 360) == values


def test_brokers_of_both_kinds_have_the_controllers_log(cluster):
    def same(copy):
        """Whether a copy has what the controller's log has, from where both have it on."""
        own, copied = batches_by_offset(cluster.controller.log_dir()), batches_by_offset(copy)
        shared = own.keys() & copied.keys()
        return (
            max(copied) >= known
            and bool(shared)
            and {offset: own[offset] for offset in shared} == {offset: copied[offset] for offset in shared}
        )

    known = max(batches_by_offset(cluster.controller.log_dir()))
    copies = [cluster.odradek.data(FIRST), cluster.odradek.data(SECOND), cluster.kafka.data(KAFKA)]
    cluster.clients.until(lambda: all(same(data / LOG_DIR) for data in copies), cluster.told)
    # Nobody had it from the beginning.
    assert min(batches_by_offset(cluster.kafka.data(KAFKA) / LOG_DIR)) > 0


def test_the_quorum_is_described_through_any_broker(cluster):
    topic = RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])
    for port in cluster.clients.ports.values():
        client = BlockingClient("127.0.0.1", port, "asks", DEADLINE_S)
        try:
            response = client.call(Api(ApiKey.DESCRIBE_QUORUM), DescribeQuorumRequest([topic]))
        finally:
            client.close()
        [partition] = response.topics[0].partitions
        assert (partition.leader_id, sorted(each.replica_id for each in partition.observers)) == (NODE_ID, EVERY)


def test_nothing_was_a_fault(cluster):
    assert "Traceback" not in cluster.controller.log()
    assert '"level": "error"' not in cluster.controller.log()
