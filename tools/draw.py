"""Draw the pictures of docs/architecture.md: each docs/pictures/NAME.txt becomes NAME.svg beside it.

Usage: draw.py [PATH...]    without a path, all of docs/pictures

A source begins with its kind:

    sequenceDiagram    participants, messages, notes and alternatives, in a subset of Mermaid's syntax
    floors             a grid of names, then a line `name: caption` for each. Equal names in a rectangle of cells make one room

The SVGs are committed, so that a Git host shows them. They have a background of their own, for light and dark pages.
"""

import re
import sys
from html import escape
from pathlib import Path

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"

# Generous: the browser's own font may be wider than most.
CHARACTER = 7.0
BOLD_CHARACTER = 7.9
LINE = 16
MARGIN = 16
# A message between neighbours has lines of this width at most.
MESSAGE_WIDTH = 132
STYLE = """
text { font: 13px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; fill: #1b1f24; }
.title { font-weight: 600; } .soft { fill: #57606a; } .message { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.ground { fill: #ffffff; stroke: #d0d7de; } .box { fill: #eef4fb; stroke: #8aa4c0; } .inner { fill: #f6f8fa; stroke: #b4bdc7; }
.note { fill: #fff6dc; stroke: #d9be75; } .life { stroke: #b4bdc7; }
.frame { fill: none; stroke: #8aa4c0; stroke-dasharray: 5 4; }
.call, .return { stroke: #24567f; fill: none; } .return { stroke-dasharray: 5 4; } .head { fill: #24567f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .soft { fill: #9aa7b4; } .message { stroke: #14181d; }
.ground { fill: #14181d; stroke: #30363d; } .box { fill: #1d2b3a; stroke: #54718f; } .inner { fill: #1b2027; stroke: #444c56; }
.note { fill: #352d16; stroke: #7d6a34; } .life { stroke: #444c56; } .frame { stroke: #54718f; }
.call, .return { stroke: #79b8ff; } .head { fill: #79b8ff; }
}
"""
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>'
)

PARTICIPANT = re.compile(r"participant (\w+) as (.+)")
MESSAGE = re.compile(r"(\w+)(-?->>)(\w+): (.+)")
NOTE = re.compile(r"Note over (\w+)(?:,(\w+))?: (.+)")


def width_of(text: str) -> float:
    """Return how wide a text is drawn, at most."""
    return len(text) * CHARACTER


def wrapped(text: str, width: float) -> list[str]:
    """Return a text in lines that fit ``width``."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def box_at(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle."""
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4" class="{kind}"/>'


def picture(width: float, height: float, parts: list[str]) -> str:
    """Return the SVG around its parts."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    ground = box_at(0.5, 0.5, width - 1, height - 1, "ground")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{STYLE}</style>\n{HEAD}\n'
    return head + "\n".join([ground, *parts]) + "\n</svg>\n"


class Sequence:
    """A sequence diagram: lifelines, and rows from top to bottom."""

    def __init__(self, lines: list[str]) -> None:
        self.names: dict[str, str] = {}
        self.rows: list[str] = []
        for line in lines:
            found = PARTICIPANT.fullmatch(line)
            if found is not None:
                self.names[found[1]] = found[2]
            else:
                self.rows.append(line)
        self.at = self._columns()
        self.right = max(self.at.values()) + 70 + MARGIN
        self.y = 0.0
        self.parts: list[str] = []

    def _columns(self) -> dict[str, float]:
        """Return the x of each lifeline: neighbours are as far apart as their texts need."""
        keys = list(self.names)
        half = {key: self._width(name) / 2 + 5 for key, name in self.names.items()}
        at = dict.fromkeys(keys, 0.0)
        messages = [found for found in map(MESSAGE.fullmatch, self.rows) if found is not None]
        for number, key in enumerate(keys):
            if number == 0:
                at[key] = MARGIN + max(half[key], 60)
                continue
            before = keys[number - 1]
            at[key] = at[before] + half[before] + half[key]
            for found in messages:
                if {found[1], found[3]} == {before, key}:
                    at[key] = max(at[key], at[before] + min(width_of(found[4]), MESSAGE_WIDTH) + 18)
        return at

    def _width(self, name: str) -> float:
        """Return the width of a participant's box. The folder of its name has a line of its own."""
        return max(len(part) for part in name.split("/")) * BOLD_CHARACTER + 14

    def draw(self) -> str:
        """Return the diagram as SVG."""
        top = MARGIN + 42
        self.y = top + 8
        frames: list[float] = []
        for row in self.rows:
            self._row(row, frames)
        self.y += 10
        lives = []
        for key, name in self.names.items():
            x, width = self.at[key], self._width(name)
            lives.append(f'<line class="life" x1="{x:.0f}" y1="{top}" x2="{x:.0f}" y2="{self.y:.0f}"/>')
            lives.append(box_at(x - width / 2, MARGIN, width, 42, "box"))
            folder, _, last = name.rpartition("/")
            lives += [text_at(x, MARGIN + 18, f"{folder}/", "soft", "middle")] if folder else []
            lives.append(text_at(x, MARGIN + (34 if folder else 26), last, "title", "middle"))
        return picture(self.right, self.y + MARGIN, lives + self.parts)

    def _row(self, row: str, frames: list[float]) -> None:
        word, _, rest = row.partition(" ")
        message, note = MESSAGE.fullmatch(row), NOTE.fullmatch(row)
        if message is not None:
            self._message(message[1], message[3], message[4], is_return=message[2] == "-->>")
        elif note is not None:
            self._note(note[1], note[2] or note[1], note[3])
        elif word == "alt":
            self.y += 14
            frames.append(self.y)
            self._condition(rest)
        elif word == "else":
            self.y += 12
            ends = f'x1="{MARGIN}" y1="{self.y:.0f}" x2="{self.right - MARGIN:.0f}" y2="{self.y:.0f}"'
            self.parts.append(f'<line class="frame" {ends}/>')
            self._condition(rest)
        elif word == "end":
            self.y += 12
            begin = frames.pop()
            self.parts.append(box_at(MARGIN, begin, self.right - 2 * MARGIN, self.y - begin, "frame"))
        else:
            raise ValueError(f"unknown line: {row}")

    def _condition(self, text: str) -> None:
        self.y += 18
        self.parts.append(text_at(MARGIN + 8, self.y, f"[{text}]", "soft"))

    def _message(self, source: str, target: str, text: str, *, is_return: bool) -> None:
        start, end = self.at[source], self.at[target]
        lines = wrapped(text, max(abs(end - start) - 18, MESSAGE_WIDTH))
        self.y += 15 + LINE * len(lines)
        kind = "return" if is_return else "call"
        for number, each in enumerate(reversed(lines)):
            self.parts.append(text_at((start + end) / 2, self.y - 6 - LINE * number, each, "message", "middle"))
        line = f'x1="{start:.0f}" y1="{self.y:.0f}" x2="{end:.0f}" y2="{self.y:.0f}"'
        self.parts.append(f'<line class="{kind}" {line} marker-end="url(#head)"/>')

    def _note(self, first: str, last: str, text: str) -> None:
        self.y += 12
        middle = (self.at[first] + self.at[last]) / 2
        width = max(self.at[last] - self.at[first] + 60, 170)
        # A note at the edge stays within the picture.
        middle = min(max(middle, MARGIN + width / 2), self.right - MARGIN - width / 2)
        lines = wrapped(text, width - 16)
        height = LINE * len(lines) + 9
        self.parts.append(box_at(middle - width / 2, self.y, width, height, "note"))
        for number, line in enumerate(lines):
            self.parts.append(text_at(middle, self.y + LINE * (number + 1), line, "", "middle"))
        self.y += height


def floors(lines: list[str]) -> dict[str, tuple[int, int, int, int]]:
    """Return the rectangle of each name of a grid: first column, first row, and the column and row behind the last."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for y, line in enumerate(lines):
        for x, name in enumerate(line.split()):
            left, top, right, bottom = found.get(name, (x, y, x, y))
            found[name] = (min(left, x), min(top, y), max(right, x + 1), max(bottom, y + 1))
    return found


def draw_floors(lines: list[str]) -> str:
    """Return the rooms of a house as SVG, floor above floor."""
    captions = dict(line.split(": ", 1) for line in lines if ": " in line)
    grid = [line for line in lines if ": " not in line]
    column, row, gap = 194, 42, 6
    parts = []
    for name, (left, top, right, bottom) in floors(grid).items():
        x, y = MARGIN + left * column, MARGIN + top * row
        width, height = (right - left) * column - gap, (bottom - top) * row - gap
        parts.append(box_at(x, y, width, height, "inner" if "/" in name else "box"))
        caption = captions[name]
        if len(name) * BOLD_CHARACTER + width_of(caption) + 32 <= width:
            parts.append(text_at(x + 10, y + 23, name, "title"))
            parts.append(text_at(x + 22 + len(name) * BOLD_CHARACTER, y + 23, caption, "soft"))
            continue
        texts = [(name, "title"), *((line, "soft") for line in wrapped(caption, width - 16))]
        first = y + (height - LINE * len(texts)) / 2 + 13
        parts += [text_at(x + 10, first + LINE * number, *text) for number, text in enumerate(texts)]
    columns = len(grid[0].split())
    return picture(2 * MARGIN + columns * column - gap, 2 * MARGIN + len(grid) * row - gap, parts)


def drawn(source: str) -> str:
    """Return the SVG of a picture's source."""
    kind, *lines = [line.strip() for line in source.splitlines() if line.strip()]
    return Sequence(lines).draw() if kind == "sequenceDiagram" else draw_floors(lines)


def main(paths: list[str]) -> None:
    """Draw each picture."""
    for path in map(Path, paths or sorted(map(str, PICTURES.glob("*.txt")))):
        path.with_suffix(".svg").write_text(drawn(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
