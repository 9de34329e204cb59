"""A client of one socket that sends what it is told to, well formed or not, and waits for exactly what it asks for.

Requests are plain dictionaries, with our names for the fields (``protocol.messages``) of exactly the version that is sent, and go
through the compiled writers. kio decodes the responses, so that the broker's encoders are not checked against our own readers.
That is what sets it apart from ``odradek.client``, which negotiates versions, matches responses and sends nothing malformed.
"""

import socket
import struct
from functools import cache
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from kio.serial import entity_reader

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_header
from odradek.protocol.messages import Layout, load
from odradek.protocol.records import Record, build_batch
from odradek.protocol.writers import Write, compile_writer
from tests import kio_schemas

TIMEOUT_S = 10.0
MAX_BYTES = 1 << 20


def encode_request(api_key: ApiKey, version: int, correlation_id: int = 1, client_id: str | None = "raw", **fields: Any) -> bytes:
    """A whole frame. Fields that are not named have Kafka's default."""
    layout = _layout(api_key, version)
    chunks: list[bytes] = [request_header(api_key, version, correlation_id, client_id, flexible=layout.flexible)]
    _writer(layout)(chunks.append, _message(layout, fields))
    body = b"".join(chunks)
    return struct.pack(">i", len(body)) + body


@cache
def _layout(api_key: ApiKey, version: int) -> Layout:
    return load(api_key, version, "request")


@cache
def _writer(layout: Layout) -> Write:
    return compile_writer(layout, {})


def _message(layout: Layout, fields: dict[str, Any]) -> Any:
    """An object with every field of ``layout``: those given, and Kafka's defaults."""
    values = {}
    for spec in layout.fields:
        value = fields.pop(spec.name, spec.default)
        if spec.layout is not None and isinstance(value, list | tuple):
            value = [_message(spec.layout, dict(item)) for item in value]
        elif spec.layout is not None and isinstance(value, dict):
            value = _message(spec.layout, dict(value))
        values[spec.name] = value
    assert not fields, f"{layout.name} has no {sorted(fields)}"
    return SimpleNamespace(**values)


def decode_response(api_key: ApiKey, version: int, frame: bytes) -> tuple[int, Any]:
    """(correlation id, kio's response); all of the frame must be used up."""
    entity = kio_schemas.load(api_key, version, "response")
    position = 4
    if entity.__flexible__ and api_key != ApiKey.API_VERSIONS:
        assert frame[4] == 0, "tagged fields in a response header"
        position = 5
    response, size = entity_reader(entity)(frame, position)
    assert position + size == len(frame)
    return int.from_bytes(frame[:4], "big", signed=True), response


class RawClient:
    """A connection, closed at the end of its ``with``."""

    def __init__(self, host: str, port: int, *, receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise
        self._correlation_id = 0

    @property
    def address(self) -> str:
        """``host:port`` of this end, as the broker logs its peer."""
        host, port = self.socket.getsockname()
        return f"{host}:{port}"

    def send(self, api_key: ApiKey, version: int, **fields: Any) -> int:
        """Send a request without waiting; its correlation id."""
        self._correlation_id += 1
        self.socket.sendall(encode_request(api_key, version, self._correlation_id, **fields))
        return self._correlation_id

    def receive_frame(self) -> bytes | None:
        """The next frame without its length; None where the broker has closed the connection."""
        head = self._receive(4)
        return None if head is None else self._receive(int.from_bytes(head, "big"))

    def receive(self, api_key: ApiKey, version: int) -> Any:
        """The answer to the last request sent."""
        frame = self.receive_frame()
        if frame is None:
            raise ConnectionResetError("the broker closed the connection")
        correlation_id, response = decode_response(api_key, version, frame)
        assert correlation_id == self._correlation_id
        return response

    def call(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        """Send and receive."""
        self.send(api_key, version, **fields)
        return self.receive(api_key, version)

    def finish_sending(self) -> None:
        """Send no more, and go on receiving."""
        self.socket.shutdown(socket.SHUT_WR)

    def is_closed_by_peer(self) -> bool:
        """Wait for the broker to close; False where it says something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def produce(self, topic: str, *values: bytes, partition: int = 0, acks: int = -1, version: int = 9, **batch: Any) -> Any:
        """Produce one batch; the partition's answer."""
        records = build_batch([Record(value=value, timestamp=1_700_000_000_000) for value in values], **batch)
        return self.produce_records(topic, records, partition=partition, acks=acks, version=version)

    def produce_records(self, topic: str, records: bytes, *, partition: int = 0, acks: int = -1, version: int = 9) -> Any:
        """Produce these bytes; the partition's answer, None with ``acks`` 0."""
        self.send(ApiKey.PRODUCE, version, **produce_fields(topic, records, partition=partition, acks=acks))
        if acks == 0:
            return None
        return self.receive(ApiKey.PRODUCE, version).responses[0].partition_responses[0]

    def _receive(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self.socket.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            data += chunk
        return bytes(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.socket.close()


def produce_fields(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> dict[str, Any]:
    """The fields of a Produce request (versions 3 to 12) of one batch."""
    partition_data = [{"index": partition, "records": records}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": partition_data}]}


def fetch_fields(topic: str, offset: int, *, partition: int = 0, **fields: Any) -> dict[str, Any]:
    """The fields of a Fetch request (versions 7 to 12) of one partition; at once and without a session by default."""
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": MAX_BYTES}
    for name in ("partition_max_bytes", "current_leader_epoch", "last_fetched_epoch"):
        if name in fields:
            asked[name] = fields.pop(name)
    return {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 50 * MAX_BYTES,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [asked]}],
        **fields,
    }
