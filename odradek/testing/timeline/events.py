"""The events of a timeline: exchanges, each a request with its outcome, and decisions of the coordinators.

In a file each event is a line of JSON. ``at_ms`` is the broker's time in ms since the epoch, ``took_ms`` a duration. ``begun``
and ``ended`` are the positions of a request and of its answer among all events. They order events with the same time.

As text each event is a line, with messages in short form, without fields that have their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.texts import uuid_text
from odradek.testing.timeline.messages import (
    OmittedRecords,
    error_codes,
    from_json,
    record_count,
    request_class,
    to_json,
)

__tracebackhide__ = True

# "unanswered": no answer is due (Produce with acks=0), or it was withheld. "waiting": no answer had come yet.
Outcome: TypeAlias = Literal["waiting", "answered", "unanswered", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its outcome. The messages are those of ``odradek.testing.timeline.messages``.

    ``connection`` counts from 1; it is 0 for the test's own calls (``broker.produce``). ``answer`` is None unless the outcome
    is "answered".
    """

    begun: int
    at_ms: int
    connection: int
    client_id: str | None
    api: ApiKey
    version: int
    correlation_id: int
    request: Any
    outcome: Outcome = "waiting"
    answer: Any = None
    ended: int | None = None
    took_ms: float | None = None

    @property
    def errors(self) -> list[str]:
        """Return the names of the errors in the answer, each once."""
        return [] if self.answer is None else [code.name for code in error_codes(self.answer)]

    def as_json(self) -> dict[str, Any]:
        """Return the event as a line of a file."""
        return {
            "begun": self.begun,
            "at_ms": self.at_ms,
            "connection": self.connection,
            "client_id": self.client_id,
            "api": self.api.name,
            "version": self.version,
            "correlation_id": self.correlation_id,
            "request": to_json(self.request),
            "outcome": self.outcome,
            "answer": to_json(self.answer),
            "ended": self.ended,
            "took_ms": self.took_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision of a coordinator, or a change of the broker: "rebalance completed", "transaction Ongoing".

    ``about`` has a ``group`` or a ``transactional_id``, and more details.
    """

    begun: int
    at_ms: int
    what: str
    about: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the event as a line of a file."""
        return {"begun": self.begun, "at_ms": self.at_ms, "decision": self.what, "about": _plain(self.about)}


Event: TypeAlias = Exchange | Decision


def event_from_json(line: dict[str, Any]) -> Event:
    """Read an event that ``as_json`` returned. Raises ValueError."""
    try:
        if "decision" in line:
            return Decision(begun=line["begun"], at_ms=line["at_ms"], what=line["decision"], about=line["about"])
        api = ApiKey[line["api"]]
        answer = line["answer"]
        read: dict[str, Any] = {
            **line,
            "api": api,
            "request": from_json(request_class(api), line["request"]),
            "answer": None if answer is None else from_json(messages(api).response, answer),
        }
        return Exchange(**read)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an event of a timeline: {error!r}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


DEFAULT_WIDTH = 200
_COORDINATOR = "coordinator"
_CUT = "..."


def line(event: Event, width: int | None = DEFAULT_WIDTH) -> str:
    """Return one event in one line of at most ``width`` characters. Of an exchange, only the request is cut."""
    time = clock_time(event.at_ms)
    if isinstance(event, Decision):
        return cut(f"{time}    {_COORDINATOR}  {decision(event)}", width)
    head = f"{time} {event.connection:2} {who(event)}  {event.api.name} v{event.version} "
    tail = f" -> {outcome(event)}"
    return f"{head}{cut(short(event.request), None if width is None else max(width - len(head) - len(tail), 0))}{tail}"


def who(exchange: Exchange) -> str:
    """Return the client id, or "(this test)"."""
    return f"{exchange.client_id or '-':<11}" if exchange.connection else "(this test)"


def outcome(exchange: Exchange) -> str:
    """Return the outcome of a request: the errors of its answer, or NONE."""
    if exchange.outcome == "closed":
        return "connection closed"
    if exchange.outcome != "answered":
        return exchange.outcome
    return f"{', '.join(exchange.errors) or 'NONE'}, {0 if exchange.took_ms is None else exchange.took_ms:.1f} ms"


def decision(event: Decision) -> str:
    """Return a decision and its details."""
    about = {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in event.about.items()}
    return " ".join([event.what, *(f"{name}={value}" for name, value in about.items() if value != "")])


def short(message: Any) -> str:
    """Return a message in one line."""
    return " ".join(f"{name}={_value(name, value)}" for name, value in _told(message))


def cut(text: str, width: int | None) -> str:
    """Return the text, cut to ``width``."""
    return text if width is None or len(text) <= width else text[: max(width - len(_CUT), 0)] + _CUT


def clock_time(at_ms: int) -> str:
    """Return the time of day, in UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}.{at_ms % 1000:03}"


def _told(message: Any) -> list[tuple[str, Any]]:
    defaults = type(message)._field_defaults
    return [
        (name, value)
        for name, value in zip(message._fields, message, strict=True)
        if name not in defaults or value != defaults[name]
    ]


def _value(name: str, value: Any) -> str:
    if isinstance(value, OmittedRecords):
        return f"<{value.size_bytes} bytes>"
    if isinstance(value, bytes | memoryview):
        records = f"{record_count(value)} records, " if name == "records" else ""
        return f"<{records}{len(value)} bytes>"
    if isinstance(value, UUID):
        return uuid_text(value)
    if hasattr(value, "_fields"):
        return f"({short(value)})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value(name, each)[1:-1] if hasattr(each, '_fields') else _value(name, each) for each in value)}]"
    return str(value)
