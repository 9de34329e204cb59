"""The sequence diagram of requests: places of lines and texts, for a template that draws them as SVG.

Time goes down, a row for each request, answer and decision. Each connection has a lane with a line; the broker has the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.page.facts.requests import Lifeline, TimelineRow

ROW: Final = 22
TOP: Final = 34
_TIME: Final = 96
_LANE: Final = 170
# The broker's lane has a margin for texts of decisions.
_LAST: Final = 90
_LEAST_WIDTH: Final = 560
# The width of a character of the diagram's font.
_CHARACTER: Final = 7.0


class Lane(NamedTuple):
    """A lane: the place of its line, and its name."""

    x: float
    name: str
    is_broker: bool


class Row(NamedTuple):
    """A row. The arrow goes from ``x1`` to ``x2``; a decision has none. ``text`` begins at ``text_x``, and fits."""

    row: TimelineRow
    y: float
    x1: float
    x2: float
    text_x: float
    text: str


class Diagram(NamedTuple):
    """A diagram, in pixels."""

    width: float
    height: float
    lanes: tuple[Lane, ...]
    rows: tuple[Row, ...]


def diagram(rows: Sequence[TimelineRow], lifelines: Sequence[Lifeline], node_id: int) -> Diagram:
    """Return the diagram of these rows. Only connections that have a row have a lane."""
    names = {each.connection: each.client_id for each in lifelines}
    connections = sorted({row.connection for row in rows if row.connection is not None})
    lane = max(_LANE, (_LEAST_WIDTH - _TIME - _LAST) / max(len(connections), 1))
    x_of = {connection: _TIME + 24 + index * lane for index, connection in enumerate(connections)}
    broker = _TIME + 24 + len(connections) * lane
    lanes = [Lane(x_of[each], f"{each} {names.get(each, '')}".strip(), False) for each in connections]
    drawn = []
    for index, row in enumerate(rows):
        y = TOP + (index + 1) * ROW
        if row.connection is None:
            drawn.append(Row(row, y, 0, 0, _TIME, _fitting(row.text, broker + _LAST - _TIME)))
            continue
        x = x_of[row.connection]
        ends = (x, broker) if row.kind == "request" else (broker, x)
        drawn.append(Row(row, y, *ends, x + 8, _fitting(_text(row), broker - x - 16)))
    return Diagram(broker + _LAST, TOP + (len(rows) + 1) * ROW, (*lanes, Lane(broker, f"broker {node_id}", True)), tuple(drawn))


def _text(row: TimelineRow) -> str:
    if row.kind == "request":
        return f"{row.api} {row.text}"
    took = "" if row.took_ms is None else f" {row.took_ms:.1f} ms"
    return f"{row.outcome or row.api}{took}"


def _fitting(text: str, width: float) -> str:
    most = max(int(width / _CHARACTER), 4)
    line = " ".join(text[: most * 2].split())
    return line if len(line) <= most else f"{line[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
