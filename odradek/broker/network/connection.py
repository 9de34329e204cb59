"""One client's connection: frames in, responses out, in order.

A connection reads frames, begins their requests in order, and writes the responses in order. It keeps three things apart: the
frames that have arrived and whose requests have not begun (here), the responses that it owes (``response_queue``), and the two
directions of its socket (``flow_control``).

As in Kafka, a connection works on one request at a time: while a response is awaited (a Fetch that waits for data), while the
client does not read what was sent, or while the broker stops, the frames that have arrived wait here and, once there are any,
the socket is not read. The exceptions are APIs with a ``pipeline_depth`` in the table of handlers: so many of a connection's
requests may be unanswered when one of these begins, if those before it have been decided and wait for their responses only.

Requests begin in the connection's turns (``request_turns``). Those of one turn are answered in one write, and the answers to all
connections in one turn of the loop are sent together (``outbox``). A slice of a log file goes from the file to the socket by
``sendfile`` (``socket_writer``).

A large frame is a view of the buffer that is read into. While frames wait here, nothing is read over them. A request that has
begun has its own bytes of whatever it keeps (``Dispatcher.dispatch``).
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final, cast

from typing_extensions import override

from odradek.broker.network.connection_registry import ConnectionRegistry
from odradek.broker.network.dispatch import CloseConnection
from odradek.broker.network.flow_control import FlowControl
from odradek.broker.network.request_memory import SMALL_BYTES
from odradek.broker.network.request_taker import RequestTaker
from odradek.broker.network.response_queue import ResponseQueue
from odradek.broker.network.socket_writer import SocketWriter
from odradek.common.context import Session
from odradek.common.logging import log
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FrameReader
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.timing.timer import TimerTask

# What a connection will read that has waited for its turn: a guess.
_NEXT_READ_BYTES: Final = 64 * 1024


class Connection(asyncio.BufferedProtocol):
    """The asyncio end of one client. Everything here happens on the loop thread."""

    __slots__ = (
        "_awaits_memory",
        "_dispatcher",
        "_drained_ms",
        "_ending",
        "_flow",
        "_frames",
        "_granted_bytes",
        "_is_closing",
        "_is_large_under_way",
        "_is_processing",
        "_pending_bytes",
        "_reader",
        "_registry",
        "_responses",
        "_transport",
        "_unmuting",
        "_writer",
        "asks_little",
        "last_active_ms",
        "received_bytes",
        "served_ms",
        "session",
        "waits_for_turn",
    )

    def __init__(self, dispatcher: RequestTaker, registry: ConnectionRegistry, listener_name: str, max_frame_bytes: int) -> None:
        # For the life of the connection.
        self._dispatcher = dispatcher
        self._registry = registry
        self.session = Session(listener_name, ("", 0))
        self._reader = FrameReader(max_frame_bytes)
        # While there is a transport.
        self._transport: asyncio.Transport | None = None
        self._writer: SocketWriter | None = None
        self._flow: FlowControl | None = None
        # What ends the time for which the connection is muted.
        self._unmuting: TimerTask | None = None
        # The first frames whose requests have not begun, the rest being with the reader; and the responses to those that have.
        self._frames: list[bytes | memoryview] = []
        self._responses = ResponseQueue()
        self._is_processing = False
        # For ``request_turns``.
        self.served_ms = 0.0
        self.asks_little = False
        self.waits_for_turn = False
        # Why nothing will be begun behind what has arrived; the connection closes when all of that has been answered.
        self._ending: Exception | None = None
        self._is_closing = False
        # Whether the next bytes of a large frame wait for others' (``request_memory``).
        self._awaits_memory = False
        # Whether a part of a frame has come whose buffer is counted there.
        self._is_large_under_way = False
        # The size of buffer that it may have.
        self._granted_bytes = 0
        # What the client had not taken when ``idle_ms`` last looked, and when it had last taken some of it.
        self._pending_bytes = 0
        self._drained_ms = 0.0
        self.last_active_ms = 0.0
        self.received_bytes = 0

    @property
    def is_busy(self) -> bool:
        """Return whether a request is unanswered, or an answer is still in our buffers. A muted connection begins no others."""
        is_unanswered = bool(self._responses.places) if self._unmuting is not None else self._is_unanswered
        return is_unanswered or (self._writer is not None and self._writer.pending_bytes > 0)

    @property
    def sent_bytes(self) -> int:
        """What was handed on to the client: written, or queued in the transport."""
        return 0 if self._writer is None else self._writer.sent_bytes

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peername = transport.get_extra_info("peername")
        if peername:
            self.session.peer = (str(peername[0]), int(peername[1]))
        self.session.connection = self
        self._writer = SocketWriter(self._transport, self._on_drained, self._registry.outbox)
        self._flow = FlowControl(self._transport, self._writer)
        if not self._registry.add(self):
            self._transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.remove(self)
        self._registry.memory.forget(self)
        self._drop_frames()
        self._responses.clear()
        self._release_response()
        self._transport = None
        self._flow = None
        self.session.connection = None
        if self._unmuting is not None:
            self._unmuting.cancel()
            self._unmuting = None
        if self._writer is not None:
            self._writer.close()
            # Each knows the other: left so, the two would be the garbage collector's.
            self._writer = None

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.writable()

    @override
    def buffer_updated(self, nbytes: int) -> None:
        registry = self._registry
        self.last_active_ms = now_ms = registry.clock.monotonic_ms()
        if registry.busy_poll is not None:
            registry.busy_poll.arrived(now_ms)
        self.received_bytes += nbytes
        if self._ending is not None or self._is_closing:
            if self._flow is not None:
                self._flow.insist()
            return
        try:
            frames = self._reader.filled(nbytes)
            self._ending = self._reader.error
        except MalformedMessage as error:
            frames = []
            self._ending = error
        if frames:
            if self._frames:
                self._frames += frames
            else:
                self._frames = frames
            if self._is_large_under_way:
                self._is_large_under_way = False
                self._granted_bytes = self._reader.allocated_bytes
                self._registry.memory.release(self, self._granted_bytes, is_whole=True)
        elif self._ending is None:
            if self._reader.is_full and self._reader.wanted_bytes > self._granted_bytes:
                self._ask_for_memory(nbytes)
            return
        if not registry.turns.ask(self, now_ms):
            self._update_reading()

    @override
    def eof_received(self) -> bool:
        """Send the responses that are due before the connection closes."""
        if self._ending is None:
            self._ending = EOFError()
        if self._flow is not None:
            self._flow.ended()
        return self._is_unanswered

    @override
    def pause_writing(self) -> None:
        """Stop reading from a client that does not take its responses."""
        if self._flow is not None:
            self._flow.pause_writing(True)
        if self._writer is not None:
            self._writer.pause()
        self._update_reading()

    @override
    def resume_writing(self) -> None:
        """Go on after the queued responses have drained."""
        if self._flow is not None:
            self._flow.pause_writing(False)
        if self._writer is not None:
            self._writer.resume()
        self._go_on()

    def close(self) -> None:
        """Close once what is queued has been sent."""
        self._is_closing = True
        self._drop_frames()
        if self._transport is None or self._writer is None:
            return
        self._writer.send_held()
        if not self._writer.is_waiting:
            self._transport.close()

    def end(self) -> None:
        """Close now: what the client has not taken by this time it does not get."""
        self.close()
        if self._writer is not None and self._writer.pending_bytes:
            self._abort()

    def idle_ms(self, now_ms: float) -> float:
        """How long nothing has come and nothing of an answer has been taken; 0 while the answer is the broker's to give."""
        pending_bytes = 0 if self._writer is None else self._writer.pending_bytes
        if pending_bytes != self._pending_bytes:
            self._pending_bytes = pending_bytes
            self._drained_ms = now_ms
        return 0 if self._responses.places else now_ms - max(self.last_active_ms, self._drained_ms)

    def dispatch_by(self, dispatcher: RequestTaker, min_frame_bytes: int, max_frame_bytes: int, config: str) -> None:
        """Take requests to ``dispatcher`` from the next read on, in frames of so many bytes, which ``config`` says."""
        self._dispatcher = dispatcher
        self._reader.limit(min_frame_bytes, max_frame_bytes, config)

    def hold(self) -> None:
        """Begin no request until ``resume_writing``: as if the client were behind with its answers."""
        if self._flow is not None:
            self._flow.pause_writing(True)

    def mute(self, for_ms: float) -> None:
        """Begin no request for so long: what has begun is answered, and the connection may be closed. The longest time counts."""
        if self._flow is None:
            return
        deadline_ms = self._registry.clock.monotonic_ms() + for_ms
        if self._unmuting is not None:
            if self._unmuting.deadline_ms >= deadline_ms:
                return
            self._unmuting.cancel()
        self._flow.mute(True)
        self._unmuting = self._registry.call_at(deadline_ms, self._unmute)

    def _unmute(self) -> None:
        self._unmuting = None
        if self._flow is not None:
            self._flow.mute(False)
            self._go_on()

    def write_through(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> bool:
        """Write by what ``wrap`` makes of the transport from now on; False if that cannot be done at this moment."""
        if self._transport is None or self._writer is None:
            return False
        transport = wrap(self._transport)
        if not self._writer.write_through(transport):
            return False
        self._transport = transport
        return True

    def trim(self) -> None:
        """Give back memory that only a busy connection needs."""
        self._reader.trim()
        self._granted_bytes = self._reader.allocated_bytes
        self._registry.memory.release(self, self._granted_bytes, is_whole=False)

    def resume_receiving(self) -> None:
        """Read again: there is memory for the next request."""
        if self._transport is not None and not self._is_closing:
            self._awaits_memory = False
            self._ask_for_memory(_NEXT_READ_BYTES)
            self._update_reading()

    def stop_reading(self) -> None:
        """Take no further request; those already here are still answered."""
        if self._flow is not None:
            self._flow.read(False)

    def leave_unread(self) -> None:
        """Take nothing of what comes, until ``end``."""
        self._is_closing = True
        self.stop_reading()

    @property
    def is_left_unread(self) -> bool:
        """Return whether nothing is to be taken that the client sends."""
        return self._is_closing

    def _ask_for_memory(self, received: int) -> None:
        """A frame is under way, of which so many bytes have just come: read on if it may be so large, and there is memory."""
        reader = self._reader
        announced_bytes, key = reader.coming
        try:
            self._dispatcher.ensure_allowed(key, announced_bytes)
        except MalformedMessage as error:
            self._ending = error
            self._go_on()
            return
        size = reader.wanted_bytes
        if self._registry.memory.may_receive(self, size, size - reader.allocated_bytes + received):
            self._granted_bytes = size
            self._is_large_under_way = self._is_large_under_way or size > SMALL_BYTES
        else:
            self._awaits_memory = True
            self._update_reading()

    @property
    def _is_unanswered(self) -> bool:
        """Return whether a request that has arrived waits for its response, or to be begun."""
        return bool(self._responses.places) or self._is_unbegun

    @property
    def _is_unbegun(self) -> bool:
        """True while a request that has arrived has not begun."""
        return bool(self._frames) or self._reader.has_more

    def _drop_frames(self) -> None:
        """Begin none of the requests that have arrived."""
        self._frames = []
        self._reader.has_more = False

    def _go_on(self) -> None:
        """Go on: the obstacle is gone."""
        if not self._is_unbegun:
            self.take_turn(inf)
        elif not self._registry.turns.ask(self, self._registry.clock.monotonic_ms()):
            self._update_reading()

    def take_turn(self, until_ms: float) -> bool:
        """Begin the requests that may begin and send responses; then read on, wait or close."""
        if self._is_processing or self._transport is None:
            # A response that completes while another request is begun: the loop there goes on with the rest.
            return False
        self._is_processing = True
        is_time_over = False
        try:
            is_time_over = self._begin_requests(until_ms)
            self._send()
            if self._ending is not None:
                self._end_when_answered(self._ending)
        except Exception as error:  # noqa: BLE001  whatever it is, it is this connection's end and nobody else's trouble
            log.error("a connection failed", error, peer=self._peer())
            self._abort()
        finally:
            self._is_processing = False
        self._update_reading()
        return is_time_over

    def _begin_requests(self, until_ms: float) -> bool:
        """Begin requests that have come until one has to wait, the client falls behind, or time is over, which is True."""
        frames = self._frames
        responses = self._responses
        dispatcher = self._dispatcher
        monotonic_ms = self._registry.clock.monotonic_ms
        is_first = True
        is_time_over = False
        # Only what is sent here can bring the client behind; to mute it, any answer can.
        may_begin = self._flow is not None and self._flow.may_begin()
        begun = 0
        try:
            while may_begin:
                if begun == len(frames):
                    if not self._reader.has_more:
                        break
                    self._frames = frames = self._reader.filled(0)
                    self._ending = self._reader.error or self._ending
                    begun = 0
                frame = frames[begun]
                if responses.places and not responses.may_begin(dispatcher.pipeline_depth(frame)):
                    break
                if not is_first:
                    if self._flow is not None and self._flow.is_held:
                        break
                    if monotonic_ms() >= until_ms:
                        is_time_over = True
                        break
                is_first = False
                begun += 1
                response = dispatcher.dispatch(frame, self.session, self.last_active_ms)
                if isinstance(response, Reply):
                    responses.wait_for(response)
                    response.when_done(self._on_answered)
                elif responses.answer(response):
                    self._send()
                    may_begin = self._flow is not None and self._flow.may_begin()
        except (MalformedMessage, CloseConnection) as error:
            self._ending = error
            self._drop_frames()
            return False
        if begun == len(frames):
            self._frames = []
        else:
            del frames[:begun]
        return is_time_over

    def _on_answered(self, chunks: object) -> None:  # noqa: ARG002  the queue has them, in their place
        """A response is there that had to be waited for.

        Often another client's append completes it. The requests behind it begin in the loop's next turn, and several responses
        are written then, together.
        """
        if self._transport is None or self._is_processing:
            return
        is_alone = len(self._responses.places) == 1
        if is_alone:
            self._send()
        if is_alone and not self._is_unbegun and self._ending is None:
            self._update_reading()
        elif not self._is_closing:
            self._registry.turns.wait(self)

    def _on_drained(self) -> None:
        """What waited for the socket has been sent."""
        self._release_response()
        if self._is_closing:
            self.close()
        else:
            self._go_on()

    def _release_response(self) -> None:
        """The client, or the kernel, has the large response that was written, if one was."""
        if self.session.held_response is not None:
            self.session.held_response.release()

    def _send(self) -> None:
        """Write the responses that are ready."""
        chunks = self._responses.take()
        if chunks and self._writer is not None and self._transport is not None and not self._transport.is_closing():
            try:
                self._writer.write(chunks)
                if self.session.held_response is not None and not self._writer.is_waiting:
                    self._release_response()
            except OSError as error:
                log.error("an answer could not be read from its log", error, peer=self._peer())
                self._abort()
        if self._responses.is_broken:
            if self._responses.refusal is not None:
                self._tell_malformed(self._responses.refusal)
            self._abort()

    def _end_when_answered(self, reason: Exception) -> None:
        """Close for ``reason`` if nothing that came before it is left to be answered."""
        if self._is_unanswered or self._is_closing:
            return
        if isinstance(reason, MalformedMessage):
            self._tell_malformed(reason)
        self.close()

    def _tell_malformed(self, reason: MalformedMessage) -> None:
        self._registry.closed_malformed += 1
        left_out = self._registry.line_limit.left_out((reason.reason, self.session.peer[0]))
        if left_out is not None:
            log.warn("closing a connection", peer=self._peer(), cause=reason.reason, **left_out)

    def _update_reading(self) -> None:
        """Read while nothing holds the connection up; leave the bytes with the kernel, and so with the client, otherwise.

        A request that waits holds it up once there is another one. Most clients send none before they have their answer, and to
        stop reading and begin again would cost as much as half the request.
        """
        flow = self._flow
        if flow is None or self._is_closing:
            return
        is_held_up = (
            bool(self._frames)
            or self._reader.has_more
            or self._ending is not None
            or self._awaits_memory
            or self._registry.is_stopping
            or not flow.may_begin()
        )
        if is_held_up is flow.is_reading:
            flow.read(not is_held_up)

    def _abort(self) -> None:
        self._is_closing = True
        self._drop_frames()
        if self._transport is not None:
            self._transport.abort()

    def _peer(self) -> str:
        host, port = self.session.peer
        return f"{host}:{port}"
