"""The sequence diagram of requests: places of lines and texts, for a template that draws them as SVG.

Time goes down, a row for each request, answer and decision. A row begins with its time and its text, so narrow screens show
those. Each connection has a lane with a line; the broker has the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.page.facts.requests import TimelineRow

ROW: Final = 22
TEXT: Final = 96
# The lanes, beyond the texts. Each has at most so much room, and all together.
_LANES: Final = TEXT + 520
_LANE: Final = 110.0
_ALL_LANES: Final = 550.0
# A lane that has no room for more than its number.
_NARROW: Final = 75.0
# The width of a character of a diagram's font.
CHARACTER: Final = 7.0


class Lane(NamedTuple):
    """A lane: the place of its line, and its name."""

    x: float
    name: str


class Row(NamedTuple):
    """A row: its arrow goes from ``x1`` to ``x2``, a decision has none. ``text`` fits."""

    row: TimelineRow
    y: float
    x1: float
    x2: float
    text: str


class Diagram(NamedTuple):
    """A diagram, in pixels."""

    width: float
    height: float
    lanes: tuple[Lane, ...]
    rows: tuple[Row, ...]


def diagram(rows: Sequence[TimelineRow], client_ids: Mapping[int, str], node_id: int) -> Diagram:
    """Return the diagram of these rows. Only connections that have a row have a lane."""
    connections = sorted({row.connection for row in rows if row.connection is not None})
    lane = min(_LANE, _ALL_LANES / max(len(connections), 1))
    x_of = {connection: _LANES + index * lane for index, connection in enumerate(connections)}
    broker = _LANES + len(connections) * lane
    drawn = []
    for number, row in enumerate(rows, 1):
        if row.connection is None:
            drawn.append(Row(row, number * ROW, 0, 0, fitting(row.text, broker - TEXT)))
            continue
        ends = (x_of[row.connection], broker) if row.kind == "request" else (broker, x_of[row.connection])
        text = fitting(f"{row.client_id} {row.api} {row.text}", _LANES - TEXT - 2 * CHARACTER)
        drawn.append(Row(row, number * ROW, *ends, text))
    # The texts name the clients, too.
    names = client_ids if lane > _NARROW else {}
    lanes = [Lane(x, fitting(f"{each} {names.get(each, '')}", lane - CHARACTER)) for each, x in x_of.items()]
    return Diagram(broker + _LANE / 2, (len(rows) + 1) * ROW, (*lanes, Lane(broker, f"broker {node_id}")), tuple(drawn))


def fitting(text: str, width: float) -> str:
    """Return the text, cut to a width in pixels."""
    most = max(int(width / CHARACTER), 4)
    line = " ".join(text[: most * 2].split())
    return line if len(line) <= most else f"{line[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
