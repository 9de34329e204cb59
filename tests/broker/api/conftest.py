"""A topic of the module's broker to use a raw client on; or a broker in this process; or its core, which needs no loop."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.bed import make_broker
from tests.broker.api.in_process import Node, new_broker
from tests.broker.api.share_requests import ShareNode, new_share_broker
from tests.broker.api.streams_requests import NO_DELAY, StreamsNode


@pytest.fixture
def topic(client, new_name):
    """(name, id) of a topic with two partitions."""
    name = new_name()
    response = client.call(ApiKey.CREATE_TOPICS, 7, topics=[{"name": name, "num_partitions": 2, "replication_factor": 1}])
    assert response.topics[0].error_code == ErrorCode.NONE
    return name, response.topics[0].topic_id


@pytest.fixture
def new_id(new_name):
    """Transactional ids that nobody else has."""
    return lambda: f"transactional-{new_name()}"


@pytest.fixture
def core():
    return make_broker()


@pytest.fixture
async def node():
    async with new_broker() as broker:
        yield Node(broker)


@pytest.fixture
async def shares():
    """A broker that serves share groups, with share coordinators in memory."""
    async with new_share_broker() as broker:
        node = ShareNode(broker)
        await node.turn_on()
        yield node


@pytest.fixture
async def streams():
    """A broker with a topic ``t`` of two partitions, which assigns tasks at once."""
    async with new_broker(**NO_DELAY) as broker:
        node = StreamsNode(broker)
        await node.create(partition_count=2)
        yield node
