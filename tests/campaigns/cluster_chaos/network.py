"""The network between the nodes of a cluster and its clients: every connection goes through a gate, which may harm it.

A gate is a port in front of a node's listener, and the address that the node advertises. Who connects is told by the client id in
the first request: brokers name themselves there. What is harmed is a flow, the bytes from one party to another:

    held    nothing arrives, and nobody is told: what was sent arrives when the network is healed
    cut     the connections between the two are reset, and so is each new one
    slow    every piece of data arrives so much later

The gates run on an event loop in a thread of their own. The methods may be called from any thread.
"""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from struct import Struct
from typing import Any, Final, TypeVar

CLIENTS: Final = "clients"
CONTROLLER: Final = "controller"
Party = int | str
Flow = tuple[Party, Party]

_PIECE_BYTES: Final = 1 << 16
# The length, API key, version and correlation id of a request, and the length of the client id.
_HEAD: Final = Struct(">ihhih")
_BROKER: Final = re.compile(r"^(?:broker|odradek-observer)-(\d+)")
_TIMEOUT_S: Final = 10.0
_TURNS: Final = 20

T = TypeVar("T")


def both_ways(pairs: Iterable[Flow]) -> list[Flow]:
    """The flows between these parties."""
    return [flow for one, other in pairs for flow in ((one, other), (other, one))]


class Network:
    """Healthy at first."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        # The two ends of each connection, by who is connected.
        self._connections: dict[tuple[asyncio.StreamWriter, asyncio.StreamWriter], frozenset[Party]] = {}
        self._admitted: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._cut: frozenset[frozenset[Party]] = frozenset()
        self._held: frozenset[Flow] = frozenset()
        self._delays_s: dict[Flow, float] = {}
        self._healed = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def gate(self, target: Party, port: Callable[[], int], *, source: Party | None = None) -> int:
        """The port of a new gate to what is then ``port`` of ``target``. Who passes is ``source``, or who the client id says."""
        return self._run(self._open(target, port, source))

    def hold(self, flows: Iterable[Flow]) -> None:
        """Let nothing arrive, without a word."""
        held = frozenset(flows)
        self._call(lambda: setattr(self, "_held", self._held | held))

    def cut(self, flows: Iterable[Flow]) -> None:
        """Reset the connections between these parties, and each new one."""
        pairs = frozenset(map(frozenset, flows))
        self._call(lambda: setattr(self, "_cut", self._cut | pairs))
        self.reset(flows)

    def reset(self, flows: Iterable[Flow]) -> None:
        """Reset the connections that there are now between these parties."""
        pairs = frozenset(map(frozenset, flows))
        self._call(lambda: self._reset(pairs))

    def slow(self, flows: Iterable[Flow], delay_s: float) -> None:
        """Let everything arrive later."""
        delays = dict.fromkeys(flows, delay_s)
        self._call(lambda: self._delays_s.update(delays))

    def heal(self) -> None:
        """Harm nothing any more."""
        self._call(self._heal)

    def close(self) -> None:
        """End all connections, and the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_S)
        self._loop.close()

    # ------------------------------------------------------------------------------------------------------ on the loop's thread

    def _call(self, work: Callable[[], object]) -> None:
        async def called() -> None:
            work()

        self._run(called())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    def _reset(self, pairs: frozenset[frozenset[Party]]) -> None:
        for writers, parties in self._connections.items():
            if parties in pairs:
                for writer in writers:
                    writer.transport.abort()

    def _heal(self) -> None:
        self._cut, self._held, self._delays_s = frozenset(), frozenset(), {}
        self._healed.set()
        self._healed = asyncio.Event()

    async def _open(self, target: Party, port: Callable[[], int], source: Party | None) -> int:
        def admit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._connect(reader, writer, target, port, source))
            self._admitted[task] = writer
            task.add_done_callback(lambda task: self._admitted.pop(task).transport.abort())

        server = await asyncio.start_server(admit, "127.0.0.1", 0)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def _end(self) -> None:
        # A connection that is being accepted is admitted in one of the next turns of the loop, and closed in a later one. If the
        # server were closed first, it would stay open.
        for listener in (each for server in self._servers for each in server.sockets):
            self._loop.remove_reader(listener.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            tasks = list(self._admitted)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._servers:
            server.close()

    async def _connect(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target: Party,
        port: Callable[[], int],
        source: Party | None,
    ) -> None:
        first = b""
        with suppress(OSError, asyncio.IncompleteReadError):
            if source is None:
                first = await reader.readexactly(_HEAD.size)
                *_, name_bytes = _HEAD.unpack(first)
                name = await reader.readexactly(max(name_bytes, 0))
                first, source = first + name, party(name.decode(errors="replace"))
            if frozenset((source, target)) in self._cut:
                return
            node_reader, node_writer = await asyncio.open_connection("127.0.0.1", port())
            ends = writer, node_writer
            self._connections[ends] = frozenset((source, target))
            try:
                await self._relay((reader, node_writer, (source, target), first), (node_reader, writer, (target, source), b""))
            finally:
                del self._connections[ends]
                node_writer.transport.abort()

    async def _relay(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter, Flow, bytes]) -> None:
        """Until either end is closed, and the other has got what was on its way."""
        tasks = [self._loop.create_task(self._pass(*way)) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flow: Flow, data: bytes) -> None:
        no_delay(writer)
        with suppress(OSError):
            while True:
                data = data or await reader.read(_PIECE_BYTES)
                if flow in self._delays_s:
                    await asyncio.sleep(self._delays_s[flow])
                while flow in self._held:
                    await self._healed.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
                data = b""
            writer.close()
            await writer.wait_closed()


def party(client_id: str) -> Party:
    """A broker's id, by the names under which brokers ask others; else a client."""
    found = _BROKER.match(client_id)
    return int(found[1]) if found else CLIENTS


def no_delay(writer: asyncio.StreamWriter) -> None:
    """Send small pieces at once."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
