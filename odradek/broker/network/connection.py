"""One client's connection: frames in, responses out, in order.

A connection reads frames, begins their requests in order, and writes the responses in order. Its state has three parts: received
frames whose requests have not begun (here), the responses that it owes (``response_queue``), and the two directions of its socket
(``flow_control``).

As in Kafka, a connection works on one request at a time. Received frames wait here while a response is pending (a Fetch that
waits for data), while the client does not read its responses, or while the broker stops. While frames wait, the socket is not
read. The exceptions are APIs with a ``pipeline_depth`` in the table of handlers: their requests may begin with up to that many
unanswered requests, if the earlier ones are decided and only wait for their responses.

Requests begin in the connection's turns (``request_limits``). The responses of one turn are one write, and the responses of all
connections in one turn of the loop are sent together (``response_queue``). A slice of a log file goes from the file to the socket
by ``sendfile`` (``socket_writer``).

A large frame is a view of the read buffer. While frames wait here, nothing is read over them. A request that has begun owns a
copy of the bytes that it keeps (``Dispatcher.dispatch``).
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.network.connection_registry import ConnectionRegistry
from odradek.broker.network.dispatch import CloseConnection
from odradek.broker.network.flow_control import FlowControl
from odradek.broker.network.large_requests import RequestTaker
from odradek.broker.network.request_limits import SMALL_BYTES
from odradek.broker.network.response_queue import ResponseQueue
from odradek.broker.network.socket_writer import SocketWriter
from odradek.common.context import Session
from odradek.common.logging import log
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FrameReader
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.timing.timer import TimerTask

# A guess at the next read of a connection that waited for its turn.
_NEXT_READ_BYTES: Final = 64 * 1024


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one client's connection. Loop thread only."""

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
        # Set for the life of the connection.
        self._dispatcher = dispatcher
        self._registry = registry
        self.session = Session(listener_name, ("", 0))
        self._reader = FrameReader(max_frame_bytes)
        # Set while there is a transport.
        self._transport: asyncio.Transport | None = None
        self._writer: SocketWriter | None = None
        self._flow: FlowControl | None = None
        # The timer that ends the muting of the connection.
        self._unmuting: TimerTask | None = None
        # The first frames whose requests have not begun (the reader has the rest), and the responses to begun requests.
        self._frames: list[bytes | memoryview] = []
        self._responses = ResponseQueue()
        self._is_processing = False
        # For ``request_limits``.
        self.served_ms = 0.0
        self.asks_little = False
        self.waits_for_turn = False
        # The reason to take no further bytes. The connection closes once all received requests are answered.
        self._ending: Exception | None = None
        self._is_closing = False
        # True if the rest of a large frame waits for memory (``request_limits``).
        self._awaits_memory = False
        # True if the buffer of a partial frame counts for the memory limit.
        self._is_large_under_way = False
        # The permitted size of the read buffer.
        self._granted_bytes = 0
        # The unsent bytes at the last call of ``idle_ms``, and the time of their last change.
        self._pending_bytes = 0
        self._drained_ms = 0.0
        self.last_active_ms = 0.0
        self.received_bytes = 0

    @property
    def is_busy(self) -> bool:
        """Return whether a request is unanswered or an answer is buffered. A muted connection's unbegun requests do not count."""
        is_unanswered = bool(self._responses.places) if self._unmuting is not None else self._is_unanswered
        return is_unanswered or (self._writer is not None and self._writer.pending_bytes > 0)

    @property
    def sent_bytes(self) -> int:
        """The bytes handed to the client: written, or queued in the transport."""
        return 0 if self._writer is None else self._writer.sent_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast("asyncio.Transport", transport)
        peername = transport.get_extra_info("peername")
        if peername:
            self.session.peer = (str(peername[0]), int(peername[1]))
        self.session.connection = self
        self._writer = SocketWriter(self._transport, self._on_drained, self._registry.outbox)
        self._flow = FlowControl(self._transport, self._writer)
        if not self._registry.add(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  a lost connection needs no reason
        """See asyncio.BufferedProtocol."""
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
            # Break the reference cycle, so the two need no garbage collector.
            self._writer = None

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  the guess of asyncio is worse than ours
        """See asyncio.BufferedProtocol."""
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol."""
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

    def eof_received(self) -> bool:
        """Note that the client sends no more. The connection closes once the pending responses are sent."""
        if self._ending is None:
            self._ending = EOFError()
        if self._flow is not None:
            self._flow.ended()
        return self._is_unanswered

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its responses."""
        if self._flow is not None:
            self._flow.pause_writing(True)
        if self._writer is not None:
            self._writer.pause()
        self._update_reading()

    def resume_writing(self) -> None:
        """Continue after the queued responses have drained."""
        if self._flow is not None:
            self._flow.pause_writing(False)
        if self._writer is not None:
            self._writer.resume()
        self._go_on()

    def close(self) -> None:
        """Close once the queued responses have been sent."""
        self._is_closing = True
        self._drop_frames()
        if self._transport is None or self._writer is None:
            return
        self._writer.send_held()
        if not self._writer.is_waiting:
            self._transport.close()

    def end(self) -> None:
        """Close now. Responses that the client has not taken are dropped."""
        self.close()
        if self._writer is not None and self._writer.pending_bytes:
            self._abort()

    def idle_ms(self, now_ms: float) -> float:
        """Return the time without bytes from the client or answers taken by it; 0 while the broker owes an answer."""
        pending_bytes = 0 if self._writer is None else self._writer.pending_bytes
        if pending_bytes != self._pending_bytes:
            self._pending_bytes = pending_bytes
            self._drained_ms = now_ms
        return 0 if self._responses.places else now_ms - max(self.last_active_ms, self._drained_ms)

    def dispatch_by(self, dispatcher: RequestTaker, min_frame_bytes: int, max_frame_bytes: int, config: str) -> None:
        """Pass requests to ``dispatcher`` from the next read on. ``config`` names the config with the frame size limit."""
        self._dispatcher = dispatcher
        self._reader.limit(min_frame_bytes, max_frame_bytes, config)

    def hold(self) -> None:
        """Begin no request until ``resume_writing``, as if the client did not read its answers."""
        if self._flow is not None:
            self._flow.pause_writing(True)

    def mute(self, for_ms: float) -> None:
        """Begin no request for a while. Begun requests are answered, and the connection may close. The longest time counts."""
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
        """Replace the transport for writing by ``wrap(transport)``; False if that is not possible at the moment."""
        if self._transport is None or self._writer is None:
            return False
        transport = wrap(self._transport)
        if not self._writer.write_through(transport):
            return False
        self._transport = transport
        return True

    def trim(self) -> None:
        """Free the memory that only a busy connection needs."""
        self._reader.trim()
        self._granted_bytes = self._reader.allocated_bytes
        self._registry.memory.release(self, self._granted_bytes, is_whole=False)

    def resume_receiving(self) -> None:
        """Read again after a wait for request memory."""
        if self._transport is not None and not self._is_closing:
            self._awaits_memory = False
            self._ask_for_memory(_NEXT_READ_BYTES)
            self._update_reading()

    def stop_reading(self) -> None:
        """Take no further requests. Received ones are still answered."""
        if self._flow is not None:
            self._flow.read(False)

    def leave_unread(self) -> None:
        """Leave the client's bytes unread until ``end``."""
        self._is_closing = True
        self.stop_reading()

    @property
    def is_left_unread(self) -> bool:
        """Return whether the client's bytes are left unread."""
        return self._is_closing

    def _ask_for_memory(self, received: int) -> None:
        """Read on in a partial frame if its size is allowed and there is memory. ``received`` bytes of it have just arrived."""
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
        """Return whether a received request waits to begin, or for its response."""
        return bool(self._responses.places) or self._is_unbegun

    @property
    def _is_unbegun(self) -> bool:
        """Return whether a received request has not begun."""
        return bool(self._frames) or self._reader.has_more

    def _drop_frames(self) -> None:
        """Drop the received requests that have not begun."""
        self._frames = []
        self._reader.has_more = False

    def _go_on(self) -> None:
        """Begin waiting requests, or read again, after an obstacle is gone."""
        if not self._is_unbegun:
            self.take_turn(inf)
        elif not self._registry.turns.ask(self, self._registry.clock.monotonic_ms()):
            self._update_reading()

    def take_turn(self, until_ms: float) -> bool:
        """Begin the requests that may begin and send responses; then read on, wait or close. True if the time ran out."""
        if self._is_processing or self._transport is None:
            # A response completed while another request begins: the loop there continues with the rest.
            return False
        self._is_processing = True
        is_time_over = False
        try:
            is_time_over = self._begin_requests(until_ms)
            self._send()
            if self._ending is not None:
                self._end_when_answered(self._ending)
        except Exception as error:  # noqa: BLE001  any failure ends this connection only
            log.error("a connection failed", error, peer=self._peer())
            self._abort()
        finally:
            self._is_processing = False
        self._update_reading()
        return is_time_over

    def _begin_requests(self, until_ms: float) -> bool:
        """Begin received requests until one has to wait, the client falls behind, or the time is over (True)."""
        frames = self._frames
        responses = self._responses
        dispatcher = self._dispatcher
        monotonic_ms = self._registry.clock.monotonic_ms
        is_first = True
        is_time_over = False
        # The client can fall behind only by what is sent here. Any answer can mute it.
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

    def _on_answered(self, chunks: object) -> None:  # noqa: ARG002  they are in the queue already
        """Handle the completion of a response that was waited for, often by another client's append.

        The requests behind it begin in the loop's next turn. The turn's responses are then written together.
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
        """Continue after the queued chunks have been sent."""
        self._release_response()
        if self._is_closing:
            self.close()
        else:
            self._go_on()

    def _release_response(self) -> None:
        """Release the memory of a written large response, which the client or the kernel has now."""
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
                log.error("cannot read an answer's records from their log", error, peer=self._peer())
                self._abort()
        if self._responses.is_broken:
            if self._responses.refusal is not None:
                self._tell_malformed(self._responses.refusal)
            self._abort()

    def _end_when_answered(self, reason: Exception) -> None:
        """Close for ``reason`` if all earlier requests are answered; else do nothing yet."""
        if self._is_unanswered or self._is_closing:
            return
        if isinstance(reason, MalformedMessage):
            self._tell_malformed(reason)
        self.close()

    def _tell_malformed(self, reason: MalformedMessage) -> None:
        self._registry.closed_malformed += 1
        extra_fields = self._registry.line_limit.admit((reason.reason, self.session.peer[0]))
        if extra_fields is not None:
            listener = self.session.listener_name
            log.warn("closing a connection", peer=self._peer(), listener=listener, cause=reason.reason, **extra_fields)

    def _update_reading(self) -> None:
        """Read unless something holds up the connection. Unread bytes stay with the kernel, and so with the client.

        A pending request stops reading only once another one has arrived. Most clients send none before they have their answer,
        and to stop and resume reading would cost half as much as the request.
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
