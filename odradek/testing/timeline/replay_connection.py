"""A connection of a replay: requests as they were recorded, and the answers to them, over a blocking socket."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.request_encoder import request_encoder
from odradek.protocol.response_decoder import response_decoder
from odradek.testing.timeline.messages import sendable_request

if TYPE_CHECKING:
    from odradek.testing.timeline.events import Exchange

__tracebackhide__ = True

_LENGTH: Final = Struct(">i")
_CONNECT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 30


class NoAnswer(Exception):
    """What became of the connection instead."""

    CLOSED: ClassVar = "closed"
    SILENT: ClassVar = "silent"


class ReplayConnection:
    """``is_closed`` says whether it has ended, ``is_idle`` whether no answer is due."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, _CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._due: deque[int] = deque()
        self._correlation_id = 0
        self.is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no answer is due."""
        return not self._due

    def send(self, exchange: Exchange, request: Any) -> None:
        """Send ``request`` as the exchange was. Raises NoAnswer, KafkaError for a request that its version cannot express."""
        self._correlation_id += 1
        encode = request_encoder(exchange.api, exchange.version)
        frame = b"".join(encode(self._correlation_id, exchange.client_id, sendable_request(request)))
        try:
            self._socket.sendall(frame)
        except OSError:
            self.close()
            raise NoAnswer(NoAnswer.CLOSED) from None
        if exchange.outcome != "unanswered":
            self._due.append(self._correlation_id)

    def receive(self, exchange: Exchange, within_s: float) -> Any:
        """The answer to the oldest request. Raises NoAnswer, after which the connection is closed, and MalformedMessage."""
        self._socket.settimeout(within_s)
        try:
            frame = self._read(_LENGTH.unpack(self._read(_LENGTH.size))[0])
        except TimeoutError:
            self.close()
            raise NoAnswer(NoAnswer.SILENT) from None
        except OSError:
            self.close()
            raise NoAnswer(NoAnswer.CLOSED) from None
        due = self._due.popleft()
        if _LENGTH.unpack_from(frame)[0] != due:
            self.close()
            raise NoAnswer("an answer to another request")
        is_refused = exchange.api == ApiKey.API_VERSIONS and int.from_bytes(frame[4:6]) == ErrorCode.UNSUPPORTED_VERSION
        # It has the form of version 0 then (KIP-511).
        return response_decoder(exchange.api, 0 if is_refused else exchange.version)(frame)

    def close(self) -> None:
        """Close the socket."""
        self.is_closed = True
        with suppress(OSError):
            self._socket.close()

    def _read(self, size: int) -> bytes:
        if not 0 <= size <= _MOST_BYTES:
            raise ConnectionError(f"{size} bytes")
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)
