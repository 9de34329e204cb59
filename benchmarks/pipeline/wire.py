"""Produces prebuilt record batches to any topic of any broker, including the coordinators' own topics.

A blocking socket, with the oldest versions of a few requests written by hand. Kafka lets only its own tools write to internal
topics, and recognises them by their client id.
"""

import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

ADMIN_CLIENT_ID = b"__admin_client"
_PRODUCE, _PRODUCE_VERSION = 0, 3
_FIND_COORDINATOR, _LIST_GROUPS, _LIST_TRANSACTIONS = 10, 16, 66
_GROUP, _TRANSACTION = 0, 1
_TIMEOUT_MS = 30_000
_READY_TIMEOUT_S = 30.0
# The batches of one request, well below a broker's limit for requests.
_REQUEST_BYTES = 4 * 1024 * 1024

Batches = Mapping[tuple[str, int], list[bytes]]
"""By (topic, partition), in order."""


class ProduceRefused(Exception):
    """A broker rejected a batch."""


class Wire:
    """A connection to the only broker of a cluster, closed at the end of its ``with``."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = address
        self._socket = socket.create_connection((host, int(port)), _TIMEOUT_MS / 1000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wake_coordinators(self) -> None:
        """Make the broker create both internal topics, and wait until their shards are loaded.

        A coordinator that is still loading would replay the records produced here as its own.
        """
        for kind in (_GROUP, _TRANSACTION):
            key = _string(b"whoever") + struct.pack(">b", kind)
            _until(lambda key=key: not struct.unpack_from(">ih", self._ask(_FIND_COORDINATOR, 1, key))[1])
        _until(lambda: not struct.unpack_from(">h", self._ask(_LIST_GROUPS, 0, b""))[0])
        # A flexible version: no states, no producer ids, no tagged fields in the body or the headers.
        _until(lambda: not struct.unpack_from(">xih", self._ask(_LIST_TRANSACTIONS, 0, b"\1\1\0", b"\0"))[1])

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of partitions of each topic."""
        known = AdminClient({"bootstrap.servers": self._address}).list_topics(timeout=_READY_TIMEOUT_S).topics
        return {topic: len(known[topic].partitions) for topic in topics}

    def produce(self, batches: Batches) -> None:
        """Append every batch; a partition's batches in order. Raises ProduceRefused."""
        left = {place: list(reversed(of_partition)) for place, of_partition in batches.items()}
        while left:
            body, size = [], 0
            # One batch of each partition in a request, which is what Kafka accepts.
            for topic, partition in list(left):
                batch = left[topic, partition].pop()
                if not left[topic, partition]:
                    del left[topic, partition]
                head = _string(topic.encode()) + struct.pack(">iii", 1, partition, len(batch))
                body += [head, batch]
                size += len(batch)
                if size > _REQUEST_BYTES:
                    break
            self._produce(body)

    def _produce(self, topics: list[bytes]) -> None:
        head = struct.pack(">hhii", -1, 1, _TIMEOUT_MS, len(topics) // 2)
        answer = self._ask(_PRODUCE, _PRODUCE_VERSION, head + b"".join(topics))
        [count] = struct.unpack_from(">i", answer)
        at = 4
        for _ in range(count):
            at += 2 + struct.unpack_from(">h", answer, at)[0]
            _, partition, code = struct.unpack_from(">iih", answer, at)
            if code:
                raise ProduceRefused(f"partition {partition}: error {code}")
            # After the error code: base offset and append time.
            at += 10 + 16

    def _ask(self, api_key: int, version: int, body: bytes, tagged_fields: bytes = b"") -> bytes:
        """The response without its correlation id."""
        head = struct.pack(">hhi", api_key, version, 0) + _string(ADMIN_CLIENT_ID) + tagged_fields
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        [size] = struct.unpack(">i", self._receive(4))
        return self._receive(size)[4:]

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            data += chunk
        return bytes(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._socket.close()


def _string(raw: bytes) -> bytes:
    return struct.pack(">h", len(raw)) + raw


def _until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _READY_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the coordinators do not come up")
        time.sleep(0.05)
