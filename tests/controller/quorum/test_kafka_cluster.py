"""What is told of a cluster of several brokers is what Apache Kafka's brokers tell of it, from the same metadata."""

import asyncio
from types import SimpleNamespace

import pytest
import pytest_asyncio

from odradek.broker.api import SERVED, describe_cluster, describe_topic_partitions, find_coordinator, metadata
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.cluster_view import Cluster as KnownCluster
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices
from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.real_quorum import TIMEOUT_S, RealQuorum
from tests.raw_client import RawClient, decode_response

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
SETTINGS = {"broker.session.timeout.ms": "6000", "metadata.max.idle.interval.ms": "100"}
EACH_BROKER = {
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "2",
}
BROKERS = {5: EACH_BROKER | {"broker.rack": "a"}, 6: EACH_BROKER}
HANDLERS = {
    ApiKey.METADATA: metadata,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
    ApiKey.FIND_COORDINATOR: find_coordinator,
}


class Cluster:
    """Two brokers of Kafka's under a controller, and an observer of it."""

    def __init__(self, controllers, brokers, quorum):
        self.controllers, self.brokers, self.quorum = controllers, brokers, quorum

    def ask_kafka(self, key, version, fields):
        with RawClient("127.0.0.1", self.brokers.ports[5]) as client:
            return client.call(key, version, **fields)

    def ask_odradek(self, image, key, version, fields):
        """Decoded by kio from what is sent."""
        there = Reply()
        there.complete(None)
        services = SimpleNamespace(
            cluster=KnownCluster(image, 5),
            cluster_id=self.controllers.cluster_id,
            controller=SimpleNamespace(image=image, ensure_internal_topic=lambda _: there),
            config={"max.request.partition.size.limit": 2000, "auto.create.topics.enable": False},
            slices=Slices(lambda: 0.0, lambda callback: callback()),
            response_memory=None,
        )
        context = RequestContext(key, version, 1, "c", Session("PLAINTEXT", ("127.0.0.1", 1)))
        response = HANDLERS[key].handle(services, context, messages(key).request(**fields))
        if isinstance(response, Reply):
            response = response.response
        return decode_response(key, version, b"".join(bytes(chunk) for chunk in response_encoder(key, version)(1, response))[4:])[
            1
        ]


def comparable(response):
    """Without what depends on chance or on time: Kafka names any broker that is alive as controller."""
    told = as_data(response)
    told.pop("throttle_time", None)
    if "controller_id" in told:
        told["controller_id"] = told["controller_id"] in (5, 6)
    for name in ("brokers", "topics"):
        if name in told:
            told[name] = sorted(told[name], key=repr)
    return told


def as_data(value):
    if hasattr(value, "__dataclass_fields__"):
        return {name: as_data(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return [as_data(each) for each in value]
    return value


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cluster(tmp_path_factory):
    controllers = KafkaControllers(tmp_path_factory.mktemp("controllers"), 1, SETTINGS)
    brokers = KafkaBrokers(tmp_path_factory.mktemp("brokers"), controllers, BROKERS)
    try:
        controllers.start()
        brokers.start()
        quorum = RealQuorum(controllers)
        yield Cluster(controllers, brokers, quorum)
        quorum.close()
    finally:
        brokers.close()
        controllers.close()


def questions(groups):
    """Each API in each version."""
    for version in range(SERVED[ApiKey.METADATA].min_version, SERVED[ApiKey.METADATA].max_version + 1):
        yield ApiKey.METADATA, version, {"topics": [] if version == 0 else None}
    for version in range(3):
        fields = {"include_fenced_brokers": True} if version == 2 else {}
        yield ApiKey.DESCRIBE_CLUSTER, version, fields
    yield ApiKey.DESCRIBE_CLUSTER, 2, {}
    yield ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": []}
    yield ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": groups}


def as_odradek_asks(key, version, fields):
    """Metadata of all topics is asked for by null here, in version 0, too."""
    return {"topics": None} if key == ApiKey.METADATA and version == 0 else fields


async def differences(cluster, observed):
    """Those that stay: the broker and the observer follow the controller independently."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + TIMEOUT_S
    while True:
        found = {}
        for key, version, fields in questions(["g", "h", "i", "j"]):
            kafka = comparable(await asyncio.to_thread(cluster.ask_kafka, key, version, fields))
            odradek = comparable(cluster.ask_odradek(observed.image, key, version, as_odradek_asks(key, version, fields)))
            if kafka != odradek:
                found[key.name, version] = kafka, odradek
        if not found or loop.time() > deadline_s:
            return found
        await asyncio.sleep(0.2)


async def test_brokers_partitions_and_coordinators_are_told_as_kafka_tells_them_while_brokers_live_and_when_one_dies(
    cluster, tmp_path
):
    async with cluster.quorum.observing(tmp_path) as observed:
        await cluster.quorum.create_topics(["t"], assignments=[[5, 6], [6, 5]])
        await cluster.quorum.create_topics(["alone"], assignments=[[5], [6]])
        # Its brokers make the topic of the coordinators.
        await asyncio.to_thread(cluster.ask_kafka, ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g"]})
        await observed.until(lambda: "__consumer_offsets" in observed.image.topics)
        assert await differences(cluster, observed) == {}
        cluster.brokers.kill9(6)
        await observed.until(lambda: observed.image.kept.brokers[6].fenced)
        topics = observed.image.topics
        await observed.until(lambda: [topics[name].partitions[1].leader for name in ("t", "alone")] == [5, -1])
        assert await differences(cluster, observed) == {}
