"""The limits in a broker's fetches of the metadata log, by its configs."""

import asyncio

from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load
from odradek.controller.quorum.leader_discovery import MembershipLost
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types import describe_cluster, fetch
from tests.client.peer import Peer
from tests.memory_filesystem import MemoryFileSystem

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Controller(asyncio.Protocol):
    """A connection to a controller that knows the cluster's id, and answers no fetch."""

    def __init__(self, fetches):
        self._fetches = fetches
        self._peer = Peer(self._answer)
        self._transport = None

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._transport.write(self._peer.receive(data))

    def _answer(self, api_key, _version, request):
        if api_key == ApiKey.DESCRIBE_CLUSTER:
            return describe_cluster.DescribeClusterResponse(cluster_id=CLUSTER_ID, controller_id=1)
        self._fetches.append(request)
        return fetch.FetchResponse(error_code=-1)


async def first_fetch(**settings):
    """The first fetch of the metadata log by a broker that is starting."""
    fetches = []
    server = await asyncio.get_running_loop().create_server(lambda: Controller(fetches), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    cluster = {
        "process.roles": "broker",
        "node.id": "2",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{host}:{port}",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": "/data",
        "initial.broker.registration.timeout.ms": "300",
        "broker.session.timeout.ms": "300",
    }
    config = load(None, cluster | {name.replace("_", "."): value for name, value in settings.items()})
    assert config.warnings == ()
    try:
        await BrokerServer.start(SharedServer(config, file_system=MemoryFileSystem()))
    except MembershipLost:
        return fetches[0]
    finally:
        server.close()
    raise AssertionError


async def test_a_fetch_asks_for_as_much_as_the_config_says():
    request = await first_fetch(controller_quorum_fetch_max_bytes="4567")
    assert (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) == (4567, 4567)
    assert (await first_fetch()).max_bytes == 1048576
