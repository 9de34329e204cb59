"""The picture of a streams group's topology: places of boxes and lines, for a template that draws them as SVG.

Records flow from left to right. A column of topics is followed by a column of the subtopologies that read them, and that by a
column of the repartition topics that these write. The box of a subtopology also names its changelog topics.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.streams_groups import input_topics
from odradek.page.views.diagram import CHARACTER, fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.message_types.streams_group_describe import Subtopology, Topology

WIDTH: Final = 210
LINE: Final = 17
_GAP: Final = 70
_MARGIN: Final = 8
_BETWEEN: Final = 14
# The most changelog topics that a box names.
_MOST_NAMED: Final = 5


class Box(NamedTuple):
    """A topic or a subtopology. Its ``lines`` fit, the first is its name; ``name`` is the name in full."""

    name: str
    is_topic: bool
    x: float
    y: float
    height: float
    lines: tuple[str, ...]


class Picture(NamedTuple):
    """A picture, in pixels. A line goes from (x1, y1) to (x2, y2). ``text`` says the same in words."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[tuple[float, float, float, float], ...]
    text: str


def topology_picture(topology: Topology) -> Picture:
    """Return the picture of a topology."""
    subtopologies = topology.subtopologies or ()
    boxes: dict[tuple[bool, str], Box] = {}
    bottom: Counter[int] = Counter()
    lines = {(False, each.subtopology_id): _lines(each) for each in subtopologies}
    columns = _columns(subtopologies)
    for (is_topic, name), column in columns.items():
        texts = tuple(fitting(text, WIDTH - 2 * CHARACTER) for text in lines.get((is_topic, name), [name]))
        height = len(texts) * LINE + _MARGIN
        y = _MARGIN + bottom[column]
        boxes[is_topic, name] = Box(name, is_topic, _MARGIN + column * (WIDTH + _GAP), y, height, texts)
        bottom[column] += int(height) + _BETWEEN
    arrows = []
    for each in subtopologies:
        box = boxes[False, each.subtopology_id]
        arrows += [_arrow(boxes[True, topic], box) for topic in input_topics(each)]
        arrows += [_arrow(box, boxes[True, topic]) for topic in sorted(each.repartition_sink_topics)]
    width = max((box.x for box in boxes.values()), default=0) + WIDTH + _MARGIN
    height = max(bottom.values(), default=0) + _MARGIN
    return Picture(width, height, tuple(boxes.values()), tuple(arrows), "; ".join(map(_words, subtopologies)))


def _columns(subtopologies: Sequence[Subtopology]) -> dict[tuple[bool, str], int]:
    """Return the column of each topic and subtopology: one more than that of anything it gets records from."""
    columns: dict[tuple[bool, str], int] = {}
    # A topology may have circles, and then no longest way.
    for _ in range(len(subtopologies) + 1):
        before = dict(columns)
        for each in subtopologies:
            inputs = input_topics(each)
            for topic in inputs:
                columns.setdefault((True, topic), 0)
            column = max((columns[True, topic] for topic in inputs), default=0) + 1
            columns[False, each.subtopology_id] = column
            for topic in sorted(each.repartition_sink_topics):
                columns[True, topic] = max(columns.get((True, topic), 0), column + 1)
        if columns == before:
            break
    return columns


def _lines(subtopology: Subtopology) -> list[str]:
    stores = sorted(topic.name for topic in subtopology.state_changelog_topics)
    more = [f"and {len(stores) - _MOST_NAMED} more"] if len(stores) > _MOST_NAMED else []
    return [f"Subtopology {subtopology.subtopology_id}", *stores[:_MOST_NAMED], *more]


def _words(subtopology: Subtopology) -> str:
    parts = [f"subtopology {subtopology.subtopology_id} reads {', '.join(input_topics(subtopology)) or 'nothing'}"]
    if subtopology.repartition_sink_topics:
        parts.append(f"writes {', '.join(sorted(subtopology.repartition_sink_topics))}")
    if subtopology.state_changelog_topics:
        parts.append(f"keeps state in {', '.join(sorted(topic.name for topic in subtopology.state_changelog_topics))}")
    return ", ".join(parts)


def _arrow(source: Box, target: Box) -> tuple[float, float, float, float]:
    return source.x + WIDTH, source.y + source.height / 2, target.x, target.y + target.height / 2
