"""The client that sends hostile requests: in turn, as a flood, or reading slowly (``drawn.Manner``)."""

import contextlib
import selectors
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.campaigns.hostile_requests.cluster import with_producer
from tests.campaigns.hostile_requests.drawn import Hostile, Manner
from tests.raw_client import RawClient

# A broker that neither answers in so long nor closes the connection is silent.
ANSWER_S = 120
# What a connection of a flood has before it: more than the broker reads at once.
_FULL_BYTES = 128 * 1024
_READ_BYTES = 1 << 20
# A slow reader takes so much so often: 40 KiB/s.
_SLOW_BYTES = 4 * 1024
_SLOW_PAUSE_S = 0.1
# Of an answer so much is kept: what ``with_producer`` looks at.
_KEPT_BYTES = 64
_SHOWN = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Fate(NamedTuple):
    """What became of the requests: bytes of answers, connections that the broker closed, and whether it fell silent instead."""

    answer_bytes: int
    closed: int = 0
    is_silent: bool = False

    @property
    def told(self) -> str:
        """A few words."""
        unit, size = next((each for each in _SHOWN if self.answer_bytes >= each[1]), ("bytes", 1))
        closed = f", {self.closed} closed" if self.closed else ""
        silent = f", no answer in {ANSWER_S} s" if self.is_silent else ""
        return f"{self.answer_bytes / size:.3g} {unit} of answers{closed}{silent}"


def send(host: str, port: int, hostile: Hostile) -> Fate:
    """Send all of it."""
    match hostile.manner:
        case Manner.IN_TURN:
            return _send_in_turn(host, port, hostile)
        case Manner.FLOOD:
            return _flood(host, port, hostile)
        case Manner.SLOWLY:
            return _read_slowly(host, port, hostile)


def _send_in_turn(host: str, port: int, hostile: Hostile) -> Fate:
    answer_bytes = 0
    with RawClient(host, port) as client:
        client.socket.settimeout(ANSWER_S)
        first = None
        for frame in hostile.frames:
            try:
                client.socket.sendall(with_producer(frame, first))
                answer = _next_answer(client.socket)
            except TimeoutError:
                return Fate(answer_bytes, is_silent=True)
            except ConnectionError:
                answer = None
            if answer is None:
                return Fate(answer_bytes, closed=1)
            first = first or answer[1]
            answer_bytes += answer[0]
    return Fate(answer_bytes)


def _next_answer(reader: socket.socket) -> tuple[int, bytes] | None:
    """The size of the next answer and its beginning; None where the broker has closed the connection. Gigabytes are not kept."""
    head = _exactly(reader, 4)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    kept = _exactly(reader, min(size, _KEPT_BYTES))
    left = size - _KEPT_BYTES
    while kept is not None and left > 0:
        chunk = reader.recv(min(left, _READ_BYTES))
        if not chunk:
            return None
        left -= len(chunk)
    return None if kept is None else (size, kept)


def _exactly(reader: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        chunk = reader.recv(size - len(data))
        if not chunk:
            return None
        data += chunk
    return data


def _flood(host: str, port: int, hostile: Hostile) -> Fate:
    """Write whenever there is room, and read whatever there is."""
    (frame,) = hostile.frames
    full = frame * max(_FULL_BYTES // len(frame), 1)
    received = closed = 0
    with _connections(host, port, hostile.connections) as connections, selectors.DefaultSelector() as selector:
        sent = dict.fromkeys(connections, 0)
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        until_s = time.monotonic() + hostile.lasts_s
        while selector.get_map() and time.monotonic() < until_s:
            for key, events in selector.select(_SLOW_PAUSE_S):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                try:
                    if events & selectors.EVENT_WRITE:
                        sent[connection] += connection.send(memoryview(full)[sent[connection] % len(full) :])
                    if events & selectors.EVENT_READ:
                        had = len(connection.recv(_READ_BYTES))
                        received += had
                        if not had:
                            raise ConnectionResetError
                except ConnectionError:
                    selector.unregister(connection)
                    closed += 1
    return Fate(received, closed)


def _read_slowly(host: str, port: int, hostile: Hostile) -> Fate:
    """Write the frame, and read less than comes."""
    (frame,) = hostile.frames
    received = closed = 0
    with _connections(host, port, hostile.connections, receive_buffer_bytes=_SLOW_BYTES) as connections:
        unsent = dict.fromkeys(connections, memoryview(frame))
        until_s = time.monotonic() + hostile.lasts_s
        while unsent and time.monotonic() < until_s:
            for connection, rest in list(unsent.items()):
                try:
                    if rest:
                        unsent[connection] = rest[connection.send(rest) :]
                    had = len(connection.recv(_SLOW_BYTES))
                except BlockingIOError:
                    continue
                except ConnectionError:
                    had = 0
                received += had
                if not had:
                    del unsent[connection]
                    closed += 1
            time.sleep(_SLOW_PAUSE_S)
    return Fate(received, closed)


@contextlib.contextmanager
def _connections(host: str, port: int, count: int, *, receive_buffer_bytes: int | None = None) -> Iterator[list[socket.socket]]:
    """So many connections that do not block."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            client = stack.enter_context(RawClient(host, port, receive_buffer_bytes=receive_buffer_bytes))
            client.socket.setblocking(False)
            opened.append(client.socket)
        yield opened
