"""One client's connection: frames in, responses out, in order.

As in Kafka, a connection works on one request at a time: while an answer is awaited (a Fetch that waits for data), while the
client does not read what was sent, or while the broker stops, the frames that have arrived wait here and, once there are any,
the socket is not read. That is what keeps the order of responses, and what bounds the memory of a connection: one request's
answer, the frames of one read, and a frame under way.

There are two exceptions, for what waits for nothing but the disk: each append would have one commit of a connection, and each
flush one produce. OffsetCommits are decided on in order as they come, and share the append; so are Produces behind one that has
been appended and waits for its flush. They form a line of at most ``_MAX_LINE``, and are answered in order by few writes. A
request of another kind waits for them as it would for one.

Requests that came in one read are answered in one write, and those of one turn of the loop together (``outbox``). A slice of a
log file goes from the file to the socket by ``sendfile`` (``socket_writer``).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from odradek.broker.logging import log
from odradek.broker.network.dispatch import DECIDED, CloseConnection, Dispatcher
from odradek.broker.network.socket_writer import SocketWriter
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FrameReader

if TYPE_CHECKING:
    from odradek.broker.network.listeners import ConnectionRegistry

# A burst of pipelined requests is answered in writes of about this many chunks, or bytes.
_WRITE_FROM_CHUNKS: Final = 512
_WRITE_FROM_BYTES: Final = 1024 * 1024
# What a response begins with.
_LENGTH: Final = Struct(">i").unpack_from
# Requests of one connection that may wait for the disk together.
_MAX_LINE: Final = 128
_OFFSET_COMMIT: Final = ApiKey.OFFSET_COMMIT.to_bytes(2, "big")
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")


class _LineAnswer:
    """The place of an answer among those that are to be written. Nothing may be begun behind one that ``is_last``."""

    __slots__ = ("_abort", "_answered", "chunks", "is_last")

    def __init__(self, answered: Callable[[], None], abort: Callable[[], None]) -> None:
        self._answered = answered
        self._abort = abort
        self.chunks: list[Any] | None = None
        self.is_last = False

    def respond(self, chunks: list[Any] | None) -> None:
        """What dispatch calls."""
        if chunks is None:
            self._abort()
            return
        self.chunks = chunks
        self._answered()


class Connection(asyncio.BufferedProtocol):
    """The asyncio end of one client. Everything here happens on the loop thread."""

    __slots__ = (
        "_answers_are_due",
        "_dispatcher",
        "_drained_ms",
        "_frames",
        "_has_ended",
        "_holds_buffer",
        "_is_closing",
        "_is_processing",
        "_is_waiting",
        "_line",
        "_line_head",
        "_pending_bytes",
        "_reader",
        "_reading_paused",
        "_registry",
        "_transport",
        "_writer",
        "_writing_paused",
        "last_active_ms",
        "listener_name",
        "peer",
        "received_bytes",
    )

    def __init__(self, dispatcher: Dispatcher, registry: "ConnectionRegistry", listener_name: str, max_frame_bytes: int) -> None:
        # For the life of the connection.
        self._dispatcher = dispatcher
        self._registry = registry
        self.listener_name = listener_name
        self.peer: tuple[str, int] = ("", 0)
        self._transport: asyncio.Transport | None = None
        self._writer: SocketWriter | None = None
        self._reader = FrameReader(max_frame_bytes)
        # For the request under way.
        self._frames: list[bytes | memoryview] = []
        self._is_waiting = False
        # Whether the request that waits is a view of the buffer that is read into.
        self._holds_buffer = False
        self._is_processing = False
        # Requests that wait for the disk, in order; and the first of them, if it was not known beforehand that it would.
        self._line: deque[_LineAnswer] = deque()
        self._line_head: _LineAnswer | None = None
        self._answers_are_due = False
        # Flow control.
        self._reading_paused = False
        self._writing_paused = False
        self._has_ended = False
        self._is_closing = False
        # What the client had not taken when somebody last looked, and when it had last taken some of it.
        self._pending_bytes = 0
        self._drained_ms = 0.0
        self.last_active_ms = 0.0
        self.received_bytes = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is unanswered or an answer not yet handed to the kernel."""
        return self._is_waiting or bool(self._frames) or (self._writer is not None and self._writer.pending_bytes > 0)

    @property
    def sent_bytes(self) -> int:
        """What was handed on to the client: written, or queued in the transport."""
        return 0 if self._writer is None else self._writer.sent_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol interface."""
        self._transport = cast("asyncio.Transport", transport)
        peername = transport.get_extra_info("peername")
        self.peer = (str(peername[0]), int(peername[1])) if peername else ("", 0)
        self._writer = SocketWriter(self._transport, self._on_drained, self._registry.outbox)
        if not self._registry.add(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  a lost connection needs no reason
        """Part of asyncio's protocol interface."""
        self._registry.remove(self)
        self._frames = []
        self._transport = None
        if self._writer is not None:
            self._writer.close()
            # Each knows the other: left so, the two would be the garbage collector's.
            self._writer = None

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  asyncio's guess is poorer than ours
        """Part of asyncio's protocol interface: where the next bytes go."""
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Part of asyncio's protocol interface: ``nbytes`` have come."""
        registry = self._registry
        self.last_active_ms = now_ms = registry.clock.monotonic_ms()
        if registry.busy_poll is not None:
            registry.busy_poll.arrived(now_ms)
        self.received_bytes += nbytes
        try:
            frames = self._reader.filled(nbytes)
        except MalformedMessage as error:
            self._close_for(error.reason)
            return
        if frames and not self._is_closing:
            if self._frames:
                self._frames += frames
            else:
                self._frames = frames
            self._process()

    def eof_received(self) -> bool:
        """Part of asyncio's protocol interface: the client sends no more. What it waits for it is given before all is closed."""
        self._has_ended = True
        return self._is_waiting or bool(self._frames)

    def pause_writing(self) -> None:
        """Part of asyncio's protocol interface: the client does not keep up."""
        self._writing_paused = True
        self._update_reading()

    def resume_writing(self) -> None:
        """Part of asyncio's protocol interface: what was queued has drained."""
        self._writing_paused = False
        self._process()

    def close(self) -> None:
        """Close once what is queued has been sent."""
        self._is_closing = True
        self._frames = []
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
        return 0 if self._is_waiting else now_ms - max(self.last_active_ms, self._drained_ms)

    def trim(self) -> None:
        """Give back memory that only a busy connection needs."""
        self._reader.trim()

    def stop_reading(self) -> None:
        """Take no further request; those already here are still answered."""
        if self._transport is not None and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _process(self) -> None:
        """Answer what is here and may be answered, then read on or not."""
        if self._is_processing:
            # A reply that completes while its own frame is being handled: the loop there goes on with the rest.
            return
        self._is_processing = True
        try:
            self._answer_frames()
        except Exception as error:  # noqa: BLE001  whatever it is, it is this connection's end and nobody else's trouble
            log.error("a connection failed", error, peer=f"{self.peer[0]}:{self.peer[1]}")
            self._abort()
        finally:
            self._is_processing = False
        if self._reader.error is not None and not (self._frames or self._is_waiting or self._is_closing):
            self._close_for(self._reader.error.reason)
        self._update_reading()

    def _answer_frames(self) -> None:
        """Answer the frames that are here, until one has to wait or the client falls behind."""
        done = 0
        frames = self._frames
        queue: list[Any] = []
        queued_bytes = 0
        dispatch = self._dispatcher.dispatch
        arrived_ms = self.last_active_ms
        try:
            while done < len(frames) and not self._cannot_write():
                frame = frames[done]
                if frame[:2] == _OFFSET_COMMIT and self._join_line(frame):
                    done += 1
                    continue
                if self._is_waiting:
                    if self._line and frame[:2] == _PRODUCE and self._join_line(frame):
                        done += 1
                        continue
                    break
                done += 1
                chunks = dispatch(frame, self.listener_name, self.peer, self._respond_later, arrived_ms)
                if chunks is None:
                    self._is_waiting = True
                    self._holds_buffer = type(frame) is not bytes
                elif chunks is DECIDED:
                    self._line_head = self._add_to_line()
                elif chunks:
                    queue += chunks
                    queued_bytes += _LENGTH(chunks[0])[0]
                    if len(queue) > _WRITE_FROM_CHUNKS or queued_bytes > _WRITE_FROM_BYTES:
                        self._write(queue)
                        queue = []
                        queued_bytes = 0
        except MalformedMessage as error:
            self._write(queue)
            queue = []
            self._close_for(error.reason)
        except CloseConnection:
            self._write(queue)
            queue = []
            self.close()
            done = len(frames)
        if done == len(frames):
            self._frames = []
        else:
            del frames[:done]
        if queue:
            self._write(queue)

    def _on_drained(self) -> None:
        """What waited for the socket has been sent."""
        if self._is_closing:
            self.close()
        else:
            self._process()

    def _cannot_write(self) -> bool:
        return self._writing_paused or (self._writer is not None and self._writer.is_waiting)

    def _respond_later(self, chunks: list[Any] | None) -> None:
        """A request that waited has its answer; None: there is none, and the connection ends.

        Often it is another client's append that calls: the requests behind this one wait for the loop's next turn.
        """
        if self._transport is None:
            return
        if self._line_head is not None:
            head, self._line_head = self._line_head, None
            head.respond(chunks)
            return
        self._is_waiting = False
        if chunks is None:
            self._abort()
            return
        self._write(chunks)
        if self._frames or self._reader.error is not None:
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._update_reading()

    def _go_on(self) -> None:
        if self._transport is not None:
            self._process()

    def _add_to_line(self) -> _LineAnswer:
        answer = _LineAnswer(self._line_answered, self._abort)
        self._line.append(answer)
        self._is_waiting = True
        self._holds_buffer = False
        return answer

    def _join_line(self, frame: bytes | memoryview) -> bool:
        """Have a request decided on behind those that wait; False where it is to come again when they have been answered."""
        line = self._line
        if self._is_waiting and not 0 < len(line) < _MAX_LINE:
            return False
        if line and line[-1].is_last and line[-1].chunks is None:
            return False
        answer = self._add_to_line()
        try:
            chunks = self._dispatcher.dispatch(frame, self.listener_name, self.peer, answer.respond, self.last_active_ms)
        except (MalformedMessage, CloseConnection) as error:
            line.remove(answer)
            self._is_waiting = bool(line)
            # A produce that is not to be answered has been appended: it is not to come again.
            if line and not (isinstance(error, CloseConnection) and frame[:2] == _PRODUCE):
                return False
            raise
        if chunks is None:
            # A commit has been decided on; a produce may be yet to be appended, from its frame.
            answer.is_last = frame[:2] == _PRODUCE
            self._holds_buffer = answer.is_last and type(frame) is not bytes
        elif chunks is not DECIDED:
            answer.respond(chunks)
        return True

    def _line_answered(self) -> None:
        """One in the line has its answer: write it with those of the others that have theirs in this turn of the loop."""
        if not self._answers_are_due:
            self._answers_are_due = True
            asyncio.get_running_loop().call_soon(self._write_answers)

    def _write_answers(self) -> None:
        self._answers_are_due = False
        if self._transport is None:
            return
        line = self._line
        queue: list[Any] = []
        while line and (chunks := line[0].chunks) is not None:
            line.popleft()
            queue += chunks
        self._is_waiting = bool(line)
        self._write(queue)
        if self._frames or self._reader.error is not None:
            self._process()
        else:
            self._update_reading()

    def _write(self, chunks: list[Any]) -> None:
        if chunks and self._writer is not None and self._transport is not None and not self._transport.is_closing():
            try:
                self._writer.write(chunks)
            except OSError as error:
                log.error("an answer could not be read from its log", error, peer=f"{self.peer[0]}:{self.peer[1]}")
                self._abort()

    def _abort(self) -> None:
        self._is_closing = True
        self._frames = []
        if self._transport is not None:
            self._transport.abort()

    def _update_reading(self) -> None:
        """Read while nothing holds the connection up; leave the bytes with the kernel, and so with the client, otherwise.

        A request that waits holds it up once there is another one. Most clients send none before they have their answer, and to
        stop reading and begin again would cost as much as half the request.
        """
        if self._transport is None or self._is_closing or self._transport.is_closing():
            return
        if self._has_ended:
            if not (self._is_waiting or self._frames):
                self.close()
            return
        pause = (
            (self._is_waiting and (self._holds_buffer or bool(self._frames)))
            or self._cannot_write()
            or self._registry.is_stopping
        )
        if pause == self._reading_paused:
            return
        self._reading_paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _close_for(self, reason: str) -> None:
        self._registry.closed_malformed += 1
        log.warn("closing a connection", peer=f"{self.peer[0]}:{self.peer[1]}", cause=reason)
        self.close()
