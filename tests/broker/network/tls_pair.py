"""TLS between a connection and a socket that are both doubles, joined by hand with a client of OpenSSL's."""

import asyncio
import contextlib
import ssl
from types import SimpleNamespace

from odradek.broker.network.handshake_turns import HandshakeTurns
from odradek.broker.network.tls_connection import TlsConnection
from odradek.broker.security.tls.tls_listeners import TlsListeners
from odradek.common.config.broker_config import load
from odradek.common.context import Session
from odradek.common.logging import LineLimit, lines_to
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer


class Socket(asyncio.Transport):
    """A transport that keeps what it is given."""

    def __init__(self):
        super().__init__({"peername": ("10.0.0.1", 5)})
        self.sent = b""
        self.is_open = True
        self.is_aborted = False
        self.is_read = True

    def set_write_buffer_limits(self, high=None, low=None):
        self.limits = (high, low)

    def get_write_buffer_size(self):
        return 0

    def write(self, data):
        assert self.is_open
        self.sent += data

    def is_closing(self):
        return not self.is_open

    def pause_reading(self):
        self.is_read = False

    def resume_reading(self):
        self.is_read = True

    def close(self):
        self.is_open = False

    def abort(self):
        self.is_open = False
        self.is_aborted = True


class Plain:
    """The connection: keeps what it receives, and owes answers if the test says so."""

    is_left_unread = False

    def __init__(self, room=64):
        self.session = Session("SSL", ("10.0.0.1", 5))
        self.room = bytearray(room)
        self.received = b""
        self.pieces = []
        self.owes_answers = False
        self.has_ended = self.is_lost = False
        self.reads_at_most = None

    def connection_made(self, transport):
        self.transport = transport
        assert transport.get_extra_info("socket") is None
        assert transport.get_extra_info("peername") == ("10.0.0.1", 5)

    def connection_lost(self, exc):
        self.is_lost = True

    def get_buffer(self, sizehint):
        return memoryview(self.room)

    def buffer_updated(self, nbytes):
        self.received += self.room[:nbytes]
        self.pieces.append(nbytes)
        if self.reads_at_most is not None and len(self.received) >= self.reads_at_most:
            self.transport.pause_reading()

    def eof_received(self):
        self.has_ended = True
        return self.owes_answers

    def pause_writing(self):
        self.is_paused = True

    def resume_writing(self):
        self.is_paused = False


def tls_listener(certificates):
    """What a broker has for its listener SSL."""
    config = load(None, {"listeners": "SSL://:0", **certificates.settings()})
    return TlsListeners(config, [SimpleNamespace(name="SSL")])["SSL"]


class Pair:
    """A client and a broker's end, joined by hand."""

    def __init__(self, certificates, room=64, listener=None):
        self.clock = VirtualClock()
        self.lines = []
        self.soon = []
        # The clock calls a timer back with the lines of who has made it.
        with self.told():
            self.timer = Timer(self.clock)
        self.socket = Socket()
        self.plain = Plain(room)
        listener = listener or tls_listener(certificates)
        self.end = TlsConnection(self.plain, listener, self.timer, HandshakeTurns(self.call_soon), LineLimit(self.clock))
        self.end.connection_made(self.socket)
        self._to_client, self._to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = certificates.client_context().wrap_bio(self._to_client, self._to_broker, server_hostname="localhost")

    def call_soon(self, callback):
        self.soon.append(callback)

    def next_turn(self):
        """Of the event loop."""
        due, self.soon = self.soon, []
        for callback in due:
            callback()

    def told(self):
        """Within, lines of the log are kept."""
        return lines_to(lambda level, event, fields: self.lines.append((event, dict(fields))))

    def give(self, data):
        """Ciphertext, or what is to pass for it, from the socket."""
        with self.told():
            while data and self.socket.is_open:
                room = self.end.get_buffer(-1)
                size = min(len(data), len(room))
                room[:size] = data[:size]
                self.end.buffer_updated(size)
                self.next_turn()
                data = data[size:]

    def exchange(self):
        """Carry what either has written to the other."""
        self.give(self._to_broker.read())
        self._to_client.write(self.socket.sent)
        self.socket.sent = b""

    def shake_hands(self):
        for _ in range(4):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.exchange()
        return self

    def send(self, data):
        self.client.write(data)
        self.exchange()

    def hello(self):
        """The client's first record, which is not sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.client.do_handshake()
        return self._to_broker.read()

    def record(self, data):
        """Data as the client encrypts it, which is not sent."""
        self.client.write(data)
        return self._to_broker.read()

    def receive(self):
        self.exchange()
        return self.client.read(1 << 20)

    def pass_ms(self, elapsed_ms):
        self.clock.advance(elapsed_ms)
