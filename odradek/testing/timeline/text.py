"""A timeline as text: a line for each event, with messages in short form, without fields that have their defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.testing.timeline.events import Decision, Exchange
from odradek.testing.timeline.json_form import uuid_text
from odradek.testing.timeline.messages import Omitted, record_count

if TYPE_CHECKING:
    from odradek.testing.timeline.events import Event

__tracebackhide__ = True

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
    if isinstance(value, Omitted):
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
