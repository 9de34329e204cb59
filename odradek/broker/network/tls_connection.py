"""TLS between a connection and its socket: the socket's protocol on one side, the connection's transport on the other.

    socket -> ciphertext -> incoming -> OpenSSL -> the connection's own buffer
    connection's answers -> OpenSSL -> outgoing -> ciphertext -> socket

OpenSSL works on two buffers in memory, and the event loop keeps the socket. So the connection never writes to the descriptor
itself, and no file is sent by ``sendfile``. Nothing is decrypted while the connection does not read. OpenSSL's output is written
at once, including alerts: as in Kafka, a client learns why its handshake failed. Handshakes take turns (``handshake_turns``);
until its turn comes, a connection is not read.

The connection is counted, limited and swept from the moment that its socket is accepted. It gets its principal when the handshake
is done. A handshake that fails or takes too long is one line in the log.

``TlsFront`` puts TLS in front of the connections of a server's SSL and SASL_SSL listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from typing import TYPE_CHECKING, Any, Final, cast

from odradek.broker.network.handshake_turns import HandshakeTurns
from odradek.broker.security.tls.certificate_names import NoMatchingRule
from odradek.broker.security.tls.tls_listeners import TlsListeners
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.network.connection import Connection
    from odradek.broker.security.tls.tls_listeners import TlsListener
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.common.logging import LineLimit
    from odradek.timing.timer import Timer, TimerTask

HANDSHAKE_TIMEOUT_MS: Final = 30_000
# OpenSSL's reasons, in words that help to fix the cause.
_WORDS: Final = {
    "HTTP_REQUEST": "the client sent HTTP, not TLS",
    "WRONG_VERSION_NUMBER": "the client does not use TLS: check its security.protocol",
    "UNSUPPORTED_PROTOCOL": "the client supports no TLS version of ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "the client supports none of the cipher suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, but ssl.client.auth is required",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client rejected the broker's certificate",
}


class TlsConnection(asyncio.Transport, asyncio.BufferedProtocol):
    """The TLS layer between ``connection`` and its socket. Loop thread only."""

    __slots__ = (
        "_connection",
        "_deadline",
        "_fd",
        "_has_ended",
        "_incoming",
        "_is_closing",
        "_is_established",
        "_is_pump_due",
        "_is_reading",
        "_is_step_due",
        "_line_limit",
        "_listener",
        "_outgoing",
        "_socket",
        "_timer",
        "_tls",
        "_turns",
    )

    def __init__(
        self, connection: Connection, listener: TlsListener, timer: Timer, turns: HandshakeTurns, line_limit: LineLimit
    ) -> None:
        super().__init__()
        self._connection = connection
        self._listener = listener
        self._turns = turns
        self._line_limit = line_limit
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # Created with the first bytes. Until then, a connection costs no more than a plain one.
        self._tls: ssl.SSLObject | None = None
        self._is_established = False
        self._is_reading = True
        self._is_step_due = False
        self._is_pump_due = False
        self._is_closing = False
        self._has_ended = False
        self._timer = timer
        self._deadline: TimerTask | None = None
        self._socket: asyncio.Transport
        self._fd = -1

    # Called by the socket.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._socket = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        self._fd = -1 if sock is None else sock.fileno()
        self._deadline = self._timer.call_after(HANDSHAKE_TIMEOUT_MS, self._expire)
        self._connection.connection_made(self)
        if self._connection.is_left_unread and not self.is_closing():
            self._socket.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BufferedProtocol."""
        self._is_closing = True
        self._handshake_is_over()
        self._tls = None
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  the guess of asyncio is no better
        """Return the buffer for ciphertext."""
        return self._listener.received

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt the ciphertext that has arrived."""
        if self._is_closing:
            return
        if not self._is_established and self._connection.is_left_unread:
            # uvloop starts to read after ``connection_made``.
            self._socket.pause_reading()
            return
        self._incoming.write(self._listener.received[:nbytes])
        if self._is_established:
            if not self._is_pump_due:
                self._pump()
        elif not self._is_step_due:
            self._is_step_due = True
            self._turns.ask(self)
            if self._is_step_due:
                self._socket.pause_reading()

    def eof_received(self) -> bool:
        """End the handshake or the connection: the client has closed its end."""
        if self._is_closing:
            return False
        if not self._is_established:
            if self._tls is not None:
                self._fail("the client ended the handshake")
            return False
        self._pump()
        return self._end_reached()

    def pause_writing(self) -> None:
        """Pause the connection above: the client does not keep up."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Resume the connection above: the client has caught up."""
        self._connection.resume_writing()

    # Called by the connection.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the socket's extra info, except the socket itself, which only this class may write to."""
        if name == "ssl_object":
            return self._tls
        if name == "sslcontext":
            return self._listener.context
        return default if name == "socket" else self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """See asyncio.Transport."""
        return self._is_closing or self._socket.is_closing()

    def is_reading(self) -> bool:
        """See asyncio.Transport."""
        return self._is_reading

    def pause_reading(self) -> None:
        """Stop reading. A handshake under way reads on."""
        self._is_reading = False
        if self._is_established:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Read again. Bytes already received are passed on in the loop's next turn."""
        self._is_reading = True
        if self._is_established and not self._is_pump_due:
            self._is_pump_due = True
            asyncio.get_running_loop().call_soon(self._go_on_reading)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See asyncio.Transport."""
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """See asyncio.Transport."""
        return self._socket.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        tls = self._tls
        if tls is None or not len(data) or self._is_closing:
            return
        try:
            tls.write(data)
        except ssl.SSLError as error:
            self._broken(error)
            return
        self._flush()

    def close(self) -> None:
        """Send ``close_notify``, and close once all bytes are sent, without waiting for the client's ``close_notify``."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._is_established and self._tls is not None:
            # ``unwrap`` writes the alert, then raises since it would wait for the client's.
            with contextlib.suppress(ssl.SSLError, ValueError):
                self._tls.unwrap()
            self._flush()
        self._socket.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_closing = True
        self._socket.abort()

    # The handshake.

    def take_step(self) -> None:
        """Do the next step of the handshake."""
        self._is_step_due = False
        if self._is_closing:
            return
        self._shake_hands()
        if self._may_read() or not (self._is_established or self._is_closing):
            self._socket.resume_reading()
        if self._is_established:
            self._pump()

    def give_way(self) -> None:
        """Give up the handshake: too many others are under way."""
        self._fail("too many other handshakes are in progress")

    def _shake_hands(self) -> None:
        tls = self._tls
        try:
            if tls is None:
                tls = self._tls = self._listener.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            # Send the alert.
            self._flush()
            self._fail(handshake_cause(error))
            return
        self._flush()
        try:
            self._connection.session.principal = self._listener.principal_of(tls)
        except NoMatchingRule as name:
            self._fail(f"no rule of ssl.principal.mapping.rules applies to {name}")
            return
        except ValueError as error:
            self._fail(f"the client's certificate cannot be read: {error}")
            return
        self._handshake_is_over()
        self._is_established = True
        if not self._is_reading:
            self._socket.pause_reading()

    def _expire(self) -> None:
        self._deadline = None
        self._fail(f"the handshake took longer than {HANDSHAKE_TIMEOUT_MS} ms")

    def _handshake_is_over(self) -> None:
        self._turns.over(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _fail(self, cause: str) -> None:
        """Close, and log the cause, up to the line limit of the client's address."""
        self._is_closing = True
        self._handshake_is_over()
        host, port = self._connection.session.peer
        extra_fields = self._line_limit.admit((cause, host))
        if extra_fields is not None:
            listener = self._connection.session.listener_name
            log.warn("TLS handshake failed", peer=f"{host}:{port}", listener=listener, cause=cause, **extra_fields)
        self._socket.close()

    # The client's bytes.

    def _go_on_reading(self) -> None:
        self._is_pump_due = False
        if self._may_read():
            self._pump()
            # The connection may have paused.
            if self._may_read():
                self._socket.resume_reading()

    def _may_read(self) -> bool:
        """Return whether to pass on more bytes to the connection."""
        return self._is_reading and not self._has_ended and not self.is_closing()

    def _pump(self) -> None:
        """Decrypt and pass on bytes while the connection reads, as much at a time as fits its buffer."""
        while self._may_read():
            room = self._connection.get_buffer(-1)
            try:
                filled = self._decrypt(room)
            except ssl.SSLError as error:
                self._broken(error)
                return
            if filled:
                self._connection.buffer_updated(filled)
            if self._has_ended:
                if not self._end_reached():
                    self.close()
                return
            if filled < len(room):
                break
        if self._outgoing.pending:
            # OpenSSL's own answers, such as a key update.
            self._flush()

    def _decrypt(self, room: memoryview) -> int:
        """Decrypt received bytes into ``room``. Return their number. Raises SSLError."""
        tls = self._tls
        filled = 0
        try:
            while tls is not None and filled < len(room) and (self._incoming.pending or tls.pending()):
                count = cast("int", tls.read(len(room) - filled, room[filled:]))
                if not count:
                    self._has_ended = True
                    break
                filled += count
        except ssl.SSLWantReadError:
            # The rest of a record is still to come.
            pass
        return filled

    def _end_reached(self) -> bool:
        """Note the client's ``close_notify`` or EOF. Return whether answers are still to be sent."""
        self._has_ended = True
        return self._connection.eof_received()

    def _broken(self, error: ssl.SSLError) -> None:
        """Abort: the bytes are not valid TLS, or were altered on the way."""
        self._flush()
        session = self._connection.session
        host, port = session.peer
        extra_fields = self._line_limit.admit((error.reason, host))
        if extra_fields is not None:
            cause = f"TLS: {handshake_cause(error)}"
            log.warn("closing a connection", peer=f"{host}:{port}", listener=session.listener_name, cause=cause, **extra_fields)
        self.abort()

    # The bytes to the client.

    def _flush(self) -> None:
        """Send OpenSSL's output: directly to the socket as far as possible, and the rest through the loop."""
        if not self._outgoing.pending:
            return
        data = self._outgoing.read()
        if self._socket.is_closing():
            return
        if self._fd >= 0 and not self._socket.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except OSError:
                # The loop will see the same error, and handle it.
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        self._socket.write(data)


def handshake_cause(error: ssl.SSLError) -> str:
    """Return the reason for a TLS failure, in words for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not trusted: {error.verify_message}"
    reason = error.reason or str(error)
    return _WORDS.get(reason) or reason.replace("_", " ").lower()


class TlsFront:
    """The TLS setup of a server's listeners. Loads their stores. Raises InvalidConfig.

    When dynamic configs are altered, ``config`` calls back to check the stores and load them again.
    """

    def __init__(
        self,
        config: BrokerConfig,
        endpoints: Sequence[Endpoint],
        timer: Timer,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._listeners = TlsListeners(config, endpoints)
        self._timer = timer
        self._turns = HandshakeTurns(call_soon)
        config.watch(self._listeners.check, self._listeners.reload)

    def secured(self, connection: Connection, line_limit: LineLimit) -> asyncio.BaseProtocol:
        """Return the protocol for the socket of a new connection: the connection itself, or TLS in front of it."""
        name = connection.session.listener_name
        if name not in self._listeners:
            return connection
        return TlsConnection(connection, self._listeners[name], self._timer, self._turns, line_limit)
