"""A network of one node in memory, for a ``NodeClient``: connections are made, or not, as the test says."""

import asyncio
from errno import ECONNREFUSED

from odradek.client.api import Api
from odradek.client.node_client import ClientConfig
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from tests.client.peer import Peer, nothing

HEARTBEAT = Api(ApiKey.HEARTBEAT)
METADATA = Api(ApiKey.METADATA)

HeartbeatRequest = messages(ApiKey.HEARTBEAT).HeartbeatRequest
MetadataRequest = messages(ApiKey.METADATA).MetadataRequest

CONFIG = ClientConfig(
    request_timeout_ms=3000,
    connection_setup_timeout_ms=1000,
    reconnect_backoff_ms=100,
    reconnect_backoff_max_ms=400,
    max_in_flight_requests=2,
    max_queued_requests=5,
)


def silent(_api_key, _version, _request):
    """A node that never answers."""


async def settle():
    """Let everything happen that does not wait for time to pass."""
    for _ in range(30):
        await asyncio.sleep(0)


class Link(asyncio.Transport):
    """The client's transport; its other end is a ``Peer``, whose answers arrive in the next turn of the loop."""

    def __init__(self, protocol, peer, *, is_mute):
        super().__init__()
        self._is_mute = is_mute
        self._protocol = protocol
        self._is_lost = False
        # What the node has answered while its answers are held up.
        self._held = None
        self.peer = peer

    def writelines(self, chunks):
        answers = self.peer.receive(b"".join(map(bytes, chunks)))
        if self._held is not None:
            self._held += answers
        elif answers and not self._is_mute:
            asyncio.get_running_loop().call_soon(self.deliver, answers)

    def hold(self):
        """Hold up the answers from now on."""
        self._held = b""

    def release(self):
        """Let them go."""
        held, self._held = self._held, None
        self.deliver(held)

    def deliver(self, data):
        """Bytes from the node."""
        while data and not self._is_lost:
            room = self._protocol.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self._protocol.buffer_updated(count)

    def lose(self, error=None):
        """The node closes the connection, or it breaks."""
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(error)

    def abort(self):
        asyncio.get_running_loop().call_soon(self.lose)

    @property
    def is_lost(self):
        return self._is_lost


class Net:
    """``links`` are the connections made so far; ``attempts`` counts those that were tried.

    An attempt fails while it ``refuses``, and never ends while it ``hangs``; a node that ``is_mute`` says nothing at all.
    """

    def __init__(self, answer=nothing, **peer):
        self._answer = answer
        self._peer = peer
        self.links = []
        self.attempts = 0
        self.refuses = False
        self.hangs = False
        self.is_mute = False

    async def connect(self, make_protocol):
        self.attempts += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses:
            raise ConnectionRefusedError(ECONNREFUSED, "Connection refused")
        protocol = make_protocol()
        link = Link(protocol, Peer(self._answer, **self._peer), is_mute=self.is_mute)
        self.links.append(link)
        protocol.connection_made(link)
        return link, protocol


async def failure(future):
    """The error that the request ends with."""
    await settle()
    assert future.done()
    return future.exception()


def asked(net):
    """The APIs that were asked for over all connections, without the negotiations."""
    return [key for link in net.links for key, _, _ in link.peer.asked if key != ApiKey.API_VERSIONS]
