"""Long work for one request: slices of the loop's time, pieces of large requests, and the memory of large responses.

**Slices.** A handler with long work does it in slices (``timing.slices``); mostly it ends within the first one. Longer work waits
while responses have reached their memory limit, and ends when its client disconnects.

**Pieces.** A large request is handled as several requests with a part of its items each, one after the other. The ``pieces`` of
an API's module name the arrays of the items. The pieces' answers are joined as if there had been one request.

**Memory.** ``queued.max.response.bytes`` limits large responses, being written or not yet taken by their clients. A small request
may have a response of megabytes, and its client may be slow to take it. While the large responses together exceed the limit, only
the oldest unwritten one continues; none does while untaken responses alone reach the limit. The others wait, and fail after half
a minute. Small responses do not count. If a client does not take its response while others wait, ``stalled`` returns its session,
to be closed. The C library keeps memory that was freed in small pieces. It is asked to give it back when the last large response
is gone.
"""

from __future__ import annotations

from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from odradek.common.context import CLOSE_CONNECTION
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence

    from odradek.common.context import RequestContext, Session, Signal
    from odradek.timing.slices import Slices
    from odradek.timing.timer import Timer, TimerTask

# Kafka's clients give up a request after this time (``request.timeout.ms``).
_PATIENCE_MS: Final = 30_000
_STALLED_MS: Final = 10_000
# From this size on it pays to trim the heap, which takes up to some milliseconds.
_TRIM_FROM_BYTES: Final = 8 * 1024 * 1024
_TRIM_AFTER_MS: Final = 500


class NoRoom(Exception):
    """Other responses have held the memory for too long."""

    def __init__(self) -> None:
        super().__init__("responses to other clients use all of queued.max.response.bytes")


class HeldResponse:
    """The large response of one session."""

    __slots__ = ("_memory", "session", "since_ms", "size_bytes")

    def __init__(self, memory: ResponseMemory, session: Session) -> None:
        self._memory = memory
        self.session = session
        self.size_bytes = 0
        # The time at which it was completely written; None before.
        self.since_ms: float | None = None

    def release(self) -> None:
        """Free the memory: the client has taken the response, or is gone."""
        self._memory.release(self)


class ResponseMemory:
    """The large responses that hold memory, and those that wait for it. Loop thread only.

    There is no limit unless ``limit_bytes`` is positive. ``call_soon`` calls back in the loop's next turn. ``trim`` gives free
    memory back to the system.
    """

    def __init__(
        self,
        limit_bytes: int,
        timer: Timer,
        monotonic_ms: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], object],
        trim: Callable[[], object],
    ) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        # The part of the held bytes that is completely written.
        self._written_bytes = 0
        self._timer = timer
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        self._trim = trim
        # The responses that hold memory, the oldest first.
        self._held: dict[HeldResponse, None] = {}
        self._waiting: dict[HeldResponse, tuple[Reply[bool], TimerTask]] = {}
        self._is_due = False
        # The peak of the held bytes since the last trim.
        self._peak_bytes = 0
        self._is_trim_due = False

    @property
    def is_full(self) -> bool:
        """Return whether responses have reached the limit."""
        return 0 < self.limit_bytes <= self.held_bytes

    def begin(self, session: Session) -> HeldResponse:
        """Register a large response to ``session`` that is about to be written."""
        held = HeldResponse(self, session)
        self._held[held] = None
        if session.connection is not None:
            session.held_response = held
        return held

    def grow(self, held: HeldResponse, count: int) -> None:
        """Add ``count`` bytes, perhaps negative, to a response."""
        if held in self._held:
            held.size_bytes += count
            self.held_bytes += count
            self._peak_bytes = max(self._peak_bytes, self.held_bytes)

    def turn(self, held: HeldResponse) -> Reply[bool] | None:
        """Return None if the response may be written on, else a Reply: True to continue, False to give up."""
        if (
            not self.is_full
            or held not in self._held
            or (held is self._first_unwritten() and self._written_bytes < self.limit_bytes)
        ):
            return None
        return self._wait(held)

    def room(self, session: Session) -> Reply[bool] | None:
        """Return None if a new response to ``session`` may be made, else a Reply as from ``turn``."""
        return self._wait(HeldResponse(self, session)) if self.is_full else None

    def _wait(self, held: HeldResponse) -> Reply[bool]:
        reply: Reply[bool] = Reply()
        self._waiting[held] = reply, self._timer.call_after(_PATIENCE_MS, lambda: self._go_on(held, may=False))
        return reply

    def written(self, held: HeldResponse) -> None:
        """Note that a response is completely written, and on its way."""
        if held in self._held:
            held.since_ms = self._monotonic_ms()
            self._written_bytes += held.size_bytes
            self._wake()

    def release(self, held: HeldResponse) -> None:
        """Free the memory of a response that was taken or dropped."""
        if held not in self._held:
            return
        self.held_bytes -= held.size_bytes
        if held.since_ms is not None:
            self._written_bytes -= held.size_bytes
        del self._held[held]
        held.session.held_response = None
        if not self._held and self._peak_bytes >= _TRIM_FROM_BYTES and not self._is_trim_due:
            self._is_trim_due = True
            self._timer.call_after(_TRIM_AFTER_MS, self._give_back)
        self._wake()

    def stalled(self) -> frozenset[Session]:
        """Return the sessions that have not taken their response in ten seconds, if others wait for the memory."""
        if not self._waiting:
            return frozenset()
        before_ms = self._monotonic_ms() - _STALLED_MS
        return frozenset([held.session for held in self._held if held.since_ms is not None and held.since_ms < before_ms])

    def _first_unwritten(self) -> HeldResponse | None:
        return next((held for held in self._held if held.since_ms is None), None)

    def _wake(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._call_soon(self._let_go_on)

    def _let_go_on(self) -> None:
        self._is_due = False
        if not self.is_full:
            for held in tuple(self._waiting):
                self._go_on(held, may=True)
            return
        first = self._first_unwritten()
        if first is not None and self._written_bytes < self.limit_bytes:
            self._go_on(first, may=True)

    def _go_on(self, held: HeldResponse, *, may: bool) -> None:
        waiting = self._waiting.pop(held, None)
        if waiting is not None:
            reply, patience = waiting
            patience.cancel()
            reply.complete(may)

    def _give_back(self) -> None:
        self._is_trim_due = False
        if not self._held:
            self._peak_bytes = 0
            self._trim()


T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H", bound="Hashable")
# Items made without a pause, at some microseconds each.
TOGETHER: Final = 250
# A response, or CLOSE_CONNECTION; or a Reply of these.
Answer: TypeAlias = "T | Signal | Reply[T | Signal]"


class SlicedServices(Protocol):
    """The services for long work on the loop, for large responses."""

    # The queue of slices.
    slices: Slices
    # The memory of large responses; None if it has no limit.
    response_memory: ResponseMemory | None


def answer_in_slices(services: SlicedServices, context: RequestContext, work: Generator[Reply[Any] | None, Any, T]) -> Answer[T]:
    """Return the response that ``work`` returns, or a Reply of it. Exceptions within the first slice are raised."""
    return now_or_later(services.slices.run(_while_wanted(services, context.session, work)))


def now_or_later(reply: Reply[T]) -> T | Reply[T]:
    """Return the response, or the Reply if it is not done. If the response is an exception, raise it."""
    if not reply.done:
        return reply
    if isinstance(reply.response, Exception):
        raise reply.response
    response: T = reply.response
    return response


def _while_wanted(
    services: SlicedServices, session: Session, work: Generator[Reply[Any] | None, Any, T]
) -> Generator[Reply[Any] | None, Any, T | Signal]:
    """Run ``work`` while its client is connected and there is room for its response. Raises NoRoom, and ``work``'s exceptions."""
    slices, memory = services.slices, services.response_memory
    has_connection = session.connection is not None
    first = slices.slices
    value = None
    while True:
        try:
            waits_for = work.send(value)
        except StopIteration as end:
            response: T = end.value
            return response
        value = yield waits_for
        if slices.slices == first:
            continue
        if has_connection and session.connection is None:
            return CLOSE_CONNECTION
        while memory is not None and (waits_for_room := memory.room(session)) is not None:
            if (yield waits_for_room) is False:
                raise NoRoom


def with_pauses(items: Iterable[T], make: Callable[[T], R], together: int = TOGETHER) -> Generator[None, None, list[R]]:
    """Return ``make(item)`` for each item; pause after ``together`` of them. ``items`` must not change meanwhile."""
    made: list[R] = []
    items = iter(items)
    while part := [make(item) for item in islice(items, together)]:
        made += part
        yield None
    return made


def each_once(
    items: Iterable[H], answer: Callable[[H], Generator[Reply[Any] | None, Any, T]]
) -> Generator[Reply[Any] | None, Any, list[T]]:
    """Return the answers to ``items``, in their order. The answer to a repeated item is made once."""
    asked = list(items)
    answers: dict[H, T] = {}
    for item in asked:
        if item not in answers:
            answers[item] = yield from answer(item)
            yield None
    return [answers[item] for item in asked]


Path = tuple[str, ...]
TOPICS: Final = ("topics", "partitions")
# For items written to a log, or with hundreds of answers each: they take up to a tenth of a millisecond.
FEW: Final = 50


class Repeated(Enum):
    """The treatment of an item that a request names twice."""

    # Handled twice, and answered twice.
    AS_OTHERS = 0
    ONCE = 1
    # Handled once, and answered twice.
    ALIKE = 2


class Pieces(NamedTuple):
    """The fields of an API's item arrays, in the request (``asked``) and in the response (``answered``).

    The first of ``asked`` is a field of the request, the next one a field of that array's items. A piece has up to
    ``most_items`` innermost items. ``repeated`` is the treatment of repeated items of the outermost array.
    """

    asked: Path
    answered: Path
    most_items: int = 500
    repeated: Repeated = Repeated.AS_OTHERS


def cut(request: Any, pieces: Pieces) -> Iterator[Any]:
    """Yield the pieces of ``request``, which together have all its items: at least one piece."""
    field = pieces.asked[0]
    items = getattr(request, field)
    if not items:
        yield request
        return
    if pieces.repeated is not Repeated.AS_OTHERS:
        items = list(dict.fromkeys(items))
    for part in _cut(items, pieces.asked[1:], pieces.most_items):
        yield request._replace(**{field: part})


def _cut(items: Sequence[Any], inside: Path, most: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for item in items:
        inner = getattr(item, inside[0]) if inside else None
        item_size = 1 if not inner else _size(inner, inside[1:])
        if part and size + item_size > most:
            yield part
            part, size = [], 0
        if inner and item_size > most:
            for inner_part in _cut(inner, inside[1:], most):
                yield [item._replace(**{inside[0]: inner_part})]
        else:
            part.append(item)
            size += item_size
    if part:
        yield part


def _size(items: Sequence[Any], inside: Path) -> int:
    if not inside:
        return len(items)
    return sum(_size(getattr(item, inside[0]) or (), inside[1:]) or 1 for item in items)


class Joined:
    """The response to ``request``, joined from the responses to its pieces in their order."""

    def __init__(self, request: Any, pieces: Pieces) -> None:
        self._asked: Sequence[Any] = getattr(request, pieces.asked[0]) if pieces.repeated is Repeated.ALIKE else ()
        self._field = pieces.answered[0]
        self._inside = pieces.answered[1:]
        self._first: Any = None
        self._items: list[Any] = []

    def add(self, response: Any) -> None:
        """Add the next piece's response."""
        if self._first is None:
            self._first = response
        _absorb(self._items, getattr(response, self._field), self._inside)

    def response(self) -> Any:
        """Return the joined response."""
        distinct = dict.fromkeys(self._asked)
        if len(self._asked) > len(distinct) == len(self._items):
            answers = dict(zip(distinct, self._items, strict=True))
            self._items = [answers[item] for item in self._asked]
        return self._first._replace(**{self._field: self._items})


def _absorb(known: list[Any], items: Sequence[Any], inside: Path) -> None:
    """Append ``items``. The first one is merged with the last known one if both are of the same topic, group and so on."""
    first = 0
    if inside and known and items and _is_same(known[-1], items[0], inside[0]):
        _absorb(getattr(known[-1], inside[0]), getattr(items[0], inside[0]), inside[1:])
        first = 1
    known.extend(items[first:])
    if inside and len(items) > first:
        # Copy its inner items: the next piece may continue them.
        inner: list[Any] = []
        _absorb(inner, getattr(known[-1], inside[0]), inside[1:])
        known[-1] = known[-1]._replace(**{inside[0]: inner})


def _is_same(one: Any, other: Any, inner: str) -> bool:
    return bool(one._replace(**{inner: ()}) == other._replace(**{inner: ()}))
