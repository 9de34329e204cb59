"""A timeline as a sequence diagram in HTML: a self-contained page, without scripts, fonts or other external resources.

Each connection and the broker have a vertical line. A request is an arrow to the broker, its answer an arrow back. The
coordinators' decisions stand beside the broker's line. An arrow links to its full messages below.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from odradek.testing.timeline.events import Decision, Exchange, clock_time, cut, decision, line, outcome, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.testing.timeline.events import Event

__tracebackhide__ = True

_TIME_WIDTH = 100
_COLUMN = 190
_BROKER_GAP = 330
_NOTE_WIDTH = 900
_TOP = 50
_ROW = 22
_LABEL = 46
_NOTE = 130
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#6b7280"/></marker></defs>'
)
_STYLE = """
body { font: 13px/1.4 system-ui, sans-serif; margin: 1.5em; color: #1b1f24; background: #fff; }
svg text { font: 11px ui-monospace, monospace; fill: #1b1f24; } svg .time { fill: #6b7280; }
.life { stroke: #c7ccd4; stroke-dasharray: 3 3; } .ask { stroke: #2563eb; } .answer { stroke: #6b7280; stroke-dasharray: 5 3; }
.error { stroke: #c81e1e; } svg .error-text { fill: #c81e1e; } svg .decision { fill: #8a4b00; }
pre { white-space: pre-wrap; word-break: break-word; background: #f6f7f9; padding: .6em; }
summary { font-family: ui-monospace, monospace; }
:target summary { background: #fff3c4; }
@media (prefers-color-scheme: dark) {
  body { background: #14171c; color: #dfe3ea; } svg text { fill: #dfe3ea; } pre { background: #1e232b; }
  :target summary { background: #4d3c00; }
  svg .decision { fill: #f0b35b; } svg .error-text { fill: #ff7b7b; } .error { stroke: #ff7b7b; }
}
"""


def page(events: Sequence[Event]) -> str:
    """Return the page."""
    exchanges = [event for event in events if isinstance(event, Exchange)]
    details = "\n".join(_details(event) for event in exchanges)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Timeline</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>Timeline</h1>\n"
        f"<p>{len(exchanges)} requests, {len(events) - len(exchanges)} decisions of the coordinators. "
        "Times are the broker's, in UTC.</p>\n"
        f"{_drawing(events, exchanges)}\n<h2>Messages</h2>\n{details}\n</body>\n</html>\n"
    )


def _drawing(events: Sequence[Event], exchanges: Sequence[Exchange]) -> str:
    labels = {each.connection: each.client_id if each.connection else "this test" for each in exchanges}
    columns = {connection: _TIME_WIDTH + _COLUMN * (index + 0.5) for index, connection in enumerate(sorted(labels))}
    broker_x = _TIME_WIDTH + _COLUMN * max(len(columns) - 0.5, 0) + _BROKER_GAP
    rows = _rows(events)
    height = _TOP + _ROW * (len(rows) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{broker_x + _NOTE_WIDTH:.0f}" height="{height}" role="img">',
        _HEAD,
        _lifeline(broker_x, "broker", height),
    ]
    parts += [_lifeline(x, f"{connection} {labels[connection] or '-'}", height) for connection, x in columns.items()]
    for number, (event, is_answer) in enumerate(rows):
        y = _TOP + _ROW * (number + 1)
        if isinstance(event, Decision):
            parts.append(_text(broker_x + 10, y, decision(event), "decision", _NOTE))
            parts.append(_text(0, y, clock_time(event.at_ms), "time"))
        else:
            parts.append(_arrow(event, columns[event.connection], broker_x, y, is_answer=is_answer))
    return "\n".join([*parts, "</svg>"])


def _rows(events: Sequence[Event]) -> list[tuple[Event, bool]]:
    """Return requests, answers and decisions in order of time: (event, whether this row is its answer)."""
    placed: list[tuple[int, Event, bool]] = [(event.begun, event, False) for event in events]
    placed += [(event.ended, event, True) for event in events if isinstance(event, Exchange) and event.ended is not None]
    return [(event, is_answer) for _, event, is_answer in sorted(placed, key=lambda row: row[0])]


def _arrow(exchange: Exchange, x: float, broker_x: float, y: float, *, is_answer: bool) -> str:
    has_failed = is_answer and (bool(exchange.errors) or exchange.outcome != "answered")
    kind = "error" if has_failed else "answer" if is_answer else "ask"
    start, end = (broker_x, x) if is_answer else (x, broker_x)
    label = outcome(exchange) if is_answer else f"{exchange.api.name} v{exchange.version} {short(exchange.request)}"
    text = _text(broker_x - _BROKER_GAP + 8, y - 4, label, "error-text" if has_failed else "", _LABEL)
    time = "" if is_answer else _text(0, y, clock_time(exchange.at_ms), "time")
    return (
        f'<a href="#e{exchange.begun}"><title>{escape(line(exchange, None))}</title>'
        f'<line class="{kind}" x1="{start:.0f}" y1="{y}" x2="{end:.0f}" y2="{y}" marker-end="url(#head)"/>{text}</a>{time}'
    )


def _lifeline(x: float, label: str, height: int) -> str:
    return (
        f'<line class="life" x1="{x:.0f}" y1="{_TOP - 10}" x2="{x:.0f}" y2="{height}"/>'
        f'<text x="{x:.0f}" y="{_TOP - 18}" text-anchor="middle">{escape(cut(label, _LABEL // 2))}</text>'
    )


def _text(x: float, y: float, text: str, kind: str = "", width: int | None = None) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(cut(text, width))}</text>'


def _details(exchange: Exchange) -> str:
    messages = json.dumps({name: exchange.as_json()[name] for name in ("request", "answer")}, indent=1, ensure_ascii=False)
    return f'<details id="e{exchange.begun}"><summary>{escape(line(exchange))}</summary><pre>{escape(messages)}</pre></details>'
