"""The network of a simulated world: connections between processes, whose bytes come late, wait, or come no more.

As TCP has it, the bytes of one direction of a connection arrive in order, or the connection ends; those of two connections
overtake each other. ``cut`` is a partition, in one direction or both: bytes wait until the way is free again, and so does whoever
connects. What ended there is learned then. A killed process's connections are closed by its machine; of a machine without power
nothing is heard, until somebody who still writes to it, after it is back, is told that there is no such connection.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.campaigns.cluster_simulation.loop import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.campaigns.cluster_simulation.loop import Process, VirtualLoop

_CLOSE = None


class Transport(asyncio.Transport):
    """One end of a connection: what it writes comes to ``peer``, in order and later."""

    def __init__(self, network: SimulatedNetwork, process: Process, address: tuple[str, int]) -> None:
        super().__init__()
        self.process = process
        self.peer: Transport | None = None
        self.protocol: asyncio.BufferedProtocol | None = None
        self.is_reading = True
        self.is_lost = False
        self.latency_ms = 0.0
        self._network = network
        self._address = address
        self._is_closing = False
        # What is on its way here: when it arrives, and the bytes, or _CLOSE.
        self._coming: deque[tuple[float, bytes | None]] = deque()
        self._is_due = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Part of asyncio.Transport: there is no socket."""
        return self._address if name == "peername" else default

    def write(self, data: Any) -> None:
        if not self._is_closing and self.peer is not None:
            self._network.send(self, self.peer, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(map(bytes, list_of_data)))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Part of asyncio.Transport: the network takes all."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True
        self.wake()

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._coming.clear()
            if self.peer is not None:
                self._network.send(self, self.peer, _CLOSE)
            self._network.later(0, self.lose, None)

    abort = close

    def put(self, arrives_ms: float, data: bytes | None) -> None:
        """Let it arrive then, or behind what is on its way."""
        if self._coming:
            arrives_ms = max(arrives_ms, self._coming[-1][0])
        self._coming.append((arrives_ms, data))
        self.wake()

    def wake(self) -> None:
        """See to it that what is on its way arrives."""
        if self._coming and not self._is_due:
            self._is_due = True
            self._network.later(self._coming[0][0] - self._network.loop.now_ms, self._arrive)

    def _arrive(self) -> None:
        self._is_due = False
        network, process = self._network, self.process
        if self.is_lost or process.is_paused or self.peer is None or network.is_cut(self.peer.process.host, process.host):
            return
        now_ms = network.loop.now_ms
        received = []
        while self._coming and self._coming[0][0] <= now_ms:
            data = self._coming[0][1]
            if data is _CLOSE:
                self._deliver(received)
                self._coming.clear()
                self.lose(None)
                return
            if not self.is_reading:
                break
            received.append(data)
            self._coming.popleft()
        self._deliver(received)
        if self.is_reading:
            self.wake()

    def _deliver(self, received: list[bytes]) -> None:
        if not received or self._is_closing or self.protocol is None:
            return
        data = memoryview(received[0] if len(received) == 1 else b"".join(received))
        get_buffer, buffer_updated, run = self.protocol.get_buffer, self.protocol.buffer_updated, self.process.run
        while data and not self._is_closing:
            room = get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            run(buffer_updated, count)

    def lose(self, error: Exception | None) -> None:
        """Tell the protocol that it is over."""
        self._is_closing = True
        if not self.is_lost:
            self.is_lost = True
            self._coming.clear()
            self._network.forget(self)
            if self.protocol is not None:
                self.process.run(self.protocol.connection_lost, error)


class _Server:
    """A listener. ``sockets`` has itself: it knows its name."""

    def __init__(self, network: SimulatedNetwork, process: Process, make_protocol: Any, host: str, port: int) -> None:
        self.process = process
        self.make_protocol = make_protocol
        self.is_serving = False
        self.sockets = [self]
        self._network = network
        self._name = host, port

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def setsockopt(self, *_: object) -> None:
        """Part of socket."""

    async def start_serving(self) -> None:
        self.is_serving = True

    def close(self) -> None:
        self._network.unlisten(self._name, self)


class SimulatedNetwork:
    """``longest_latency_ms`` is how late bytes come at most; ``slow`` has hosts whose bytes come as much later."""

    def __init__(self, loop: VirtualLoop, random: Random, longest_latency_ms: float) -> None:
        self.loop = loop
        self.longest_latency_ms = longest_latency_ms
        self.slow: dict[str, float] = {}
        # Machines without power.
        self.dark: set[str] = set()
        self._random = random
        self._servers: dict[tuple[str, int], _Server] = {}
        self._transports: dict[Transport, None] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        # Hosts by the numbers of their addresses.
        self._numbers: dict[str, int] = {}

    # ----------------------------------------------------------------------------------------------------------------- faults

    def is_cut(self, source: str, target: str) -> bool:
        """Whether nothing comes from one host to another."""
        return (source, target) in self._cuts or source in self.dark or target in self.dark

    def cut(self, source: str, target: str) -> None:
        """Let nothing through, until ``mend`` was called as often."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def mend(self, source: str, target: str) -> None:
        """Let through again what one ``cut`` held up."""
        left = self._cuts.pop((source, target), 0) - 1
        if left > 0:
            self._cuts[source, target] = left
        self.wake()

    def mend_all(self) -> None:
        """Let everything through, and fast."""
        self._cuts.clear()
        self.slow.clear()
        self.wake()

    def wake(self) -> None:
        """Let come what waits and may."""
        for transport in list(self._transports):
            transport.wake()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def resume(self, process: Process) -> None:
        """Let a process that was paused have what has come meanwhile."""
        for transport in list(self._transports):
            if transport.process is process:
                transport.wake()

    def end(self, process: Process, *, is_told: bool) -> None:
        """The process is gone: its listeners and connections too. Whether others are told, or their machine's power is gone."""
        for name, server in list(self._servers.items()):
            if server.process is process:
                del self._servers[name]
        for transport in list(self._transports):
            if transport.process is process:
                if is_told:
                    transport.close()
                transport.protocol = None
                transport.lose(None)

    def reset(self, host: str) -> list[Transport]:
        """The connections of others to a host that has forgotten them."""
        return [
            each for each in self._transports if each.peer is not None and each.peer.is_lost and each.peer.process.host == host
        ]

    def sever(self, transport: Transport) -> None:
        """End a connection as a router does that forgets it: both ends are told, sooner or later."""
        peer = transport.peer
        for each in (transport, peer):
            if each is not None and not each.is_lost:
                each.put(self.loop.now_ms + self._latency_ms(each), _CLOSE)

    @property
    def transports(self) -> list[Transport]:
        """Of the connections that are open, both ends."""
        return list(self._transports)

    # -------------------------------------------------------------------------------------------------------------- connections

    def listen(self, make_protocol: Callable[[], asyncio.BufferedProtocol], host: str, port: int) -> _Server:
        process = _process()
        if (host, port) in self._servers:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        server = self._servers[host, port] = _Server(self, process, make_protocol, host, port)
        return server

    def unlisten(self, name: tuple[str, int], server: _Server) -> None:
        """Refuse whoever connects there."""
        if self._servers.get(name) is server:
            del self._servers[name]

    async def connect(
        self, make_protocol: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> tuple[Transport, asyncio.BufferedProtocol]:
        process = _process()
        await self._way(process, host)
        server = self._servers.get((host, port))
        if server is None or process.is_dead:
            await self._way_back(process, host)
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        while not server.is_serving or server.process.is_paused:
            await asyncio.sleep(0.02)
            if self._servers.get((host, port)) is not server:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        near, far = Transport(self, process, (host, port)), Transport(self, server.process, (self._ip_of(process.host), 0))
        near.peer, far.peer = far, near
        near.latency_ms = far.latency_ms = self._random.uniform(0.05, self.longest_latency_ms)
        self._transports[far] = self._transports[near] = None
        self.later(0, self._accept, server, far)
        try:
            await self._way_back(process, host)
        except asyncio.CancelledError:
            near.close()
            raise
        if near.is_lost or process.is_dead:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        near.protocol = protocol = make_protocol()
        protocol.connection_made(near)
        near.wake()
        return near, protocol

    def _ip_of(self, host: str) -> str:
        return f"10.0.0.{self._numbers.setdefault(host, len(self._numbers) + 1)}"

    def _accept(self, server: _Server, far: Transport) -> None:
        if not far.is_lost:
            far.protocol = server.process.run(server.make_protocol)
            server.process.run(far.protocol.connection_made, far)

    async def _way(self, process: Process, host: str) -> None:
        await asyncio.sleep(self._random.uniform(0.02, self.longest_latency_ms) / 1000)
        while self.is_cut(process.host, host):
            await self._mended()

    async def _way_back(self, process: Process, host: str) -> None:
        await asyncio.sleep(self._random.uniform(0.02, self.longest_latency_ms) / 1000)
        while self.is_cut(host, process.host):
            await self._mended()

    async def _mended(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def send(self, source: Transport, target: Transport, data: bytes | None) -> None:
        """Bring ``data`` to the other end."""
        if not target.is_lost:
            target.put(self.loop.now_ms + self._latency_ms(source), data)
        elif data is not _CLOSE and not self.is_cut(source.process.host, target.process.host):
            # There is no such connection any more.
            source.put(self.loop.now_ms + 2 * self._latency_ms(source), _CLOSE)

    def _latency_ms(self, transport: Transport) -> float:
        slow, peer = self.slow, transport.peer
        extra_ms = 0.0
        if slow:
            extra_ms = slow.get(transport.process.host, 0.0) + (slow.get(peer.process.host, 0.0) if peer is not None else 0.0)
        return transport.latency_ms + self._random.random() * (self.longest_latency_ms / 4 + extra_ms)

    def later(self, delay_ms: float, action: Callable[..., None], *arguments: Any) -> None:
        """Do ``action`` as the network, which belongs to no process."""
        self.loop.at_ms(self.loop.now_ms + max(delay_ms, 0.0), action, *arguments)

    def forget(self, transport: Transport) -> None:
        """It is over."""
        self._transports.pop(transport, None)


def _process() -> Process:
    process = PROCESS.get()
    if process is None:
        raise RuntimeError("only a process has connections")
    return process
