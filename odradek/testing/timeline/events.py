"""The events of a timeline: exchanges, each a request with its outcome, and decisions of the coordinators.

In a file each event is a line of JSON. ``at_ms`` is the broker's time in ms since the epoch, ``took_ms`` a duration. ``begun``
and ``ended`` are the positions of a request and of its answer among all events. They order events with the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.testing.timeline.json_form import from_json, to_json
from odradek.testing.timeline.messages import error_codes, request_class

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
