"""HTML from templates: the environment, and the filters that turn facts into text.

Everything is escaped. ``data`` is for texts that clients chose: names, keys, values. It isolates their direction. Control
characters, and marks that are invisible or change the direction, are shown by their code points.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from odradek.protocol.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jinja2 import Template

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
# A template's blocks with this prefix are live.
LIVE: Final = "live_"
# The pieces of a block that are rendered at once, in a few milliseconds: a row of a table has about twenty.
_CHUNKS_AT_ONCE: Final = 400
_NOTHING: Final = "\N{EN DASH}"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# C0 and C1 controls but tab and newline, bidirectional and zero-width marks, line separators, halves of surrogate pairs, the
# private use and tag characters.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e0fff]"
)


def data(text: object) -> Markup:
    """Return a client's text, isolated, with its hidden characters shown."""
    return Markup(f"<bdi>{coded(str(text))}</bdi>")  # noqa: S704  the text is escaped


def coded(text: str) -> Markup:
    """Return a client's text with its hidden characters shown, for an element that isolates its direction."""
    if _HIDDEN.search(text) is None:
        return escape(text)
    parts: list[str] = []
    position = 0
    for found in _HIDDEN.finditer(text):
        parts += (escape(text[position : found.start()]), f"<i>U+{ord(found[0]):04X}</i>")
        position = found.end()
    return Markup("".join([*parts, escape(text[position:])]))  # noqa: S704  each part is escaped


def preview(text: str, most: int = 160) -> Markup:
    """Return the first characters of a client's text on one line."""
    line = " ".join(text[: most * 2].split())
    return data(line if len(line) <= most and len(text) <= most * 2 else f"{line[:most]}\N{HORIZONTAL ELLIPSIS}")


def number(value: float | None) -> str:
    """Return a number with its thousands apart."""
    if value is None:
        return _NOTHING
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def size(value: float | None) -> str:
    """Return a number of bytes."""
    if value is None:
        return _NOTHING
    for unit in _UNITS[:-1]:
        if abs(value) < 1024:
            return f"{number(round(value, 1))} {unit}"
        value /= 1024
    return f"{number(round(value, 1))} {_UNITS[-1]}"


def duration(milliseconds: float | None) -> str:
    """Return a time span: its largest unit that fits, and the next one where that matters."""
    if milliseconds is None:
        return _NOTHING
    if milliseconds < 1000:
        return f"{number(round(milliseconds, 1 if milliseconds < 10 else None))} ms"
    # Two clocks that are read one after the other are an hour apart, less a millisecond.
    seconds = round(milliseconds / 1000)
    if seconds < 60:
        return f"{milliseconds / 1000:.3g} s" if seconds < 10 else f"{seconds} s"
    for unit, length, next_unit, next_length in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= length:
            rest = seconds % length // next_length
            return f"{seconds // length:,} {unit}" + (f" {rest} {next_unit}" if rest and seconds < 10 * length else "")
    return f"{seconds} s"


def moment(at_ms: float | None, *, short: bool = False) -> Markup:
    """Return a time, in UTC. A ``short`` one has no date. Kafka's -1 is no time."""
    if at_ms is None or at_ms < 0:
        return escape(_NOTHING)
    try:
        time = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return data(int(at_ms))
    shown = f"{time:%H:%M:%S}.{time.microsecond // 1000:03}"
    if not short:
        shown = f"{time:%Y-%m-%d} {shown}"
    return Markup('<time datetime="{}">{}</time>').format(f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z", shown)


def count(value: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{value:,} {one if value == 1 else many or f'{one}s'}"


def url(view: str, **query: object) -> str:
    """Return the URL of a view. None is left out."""
    asked = urlencode([(name, str(value)) for name, value in query.items() if value is not None], safe="/:,", quote_via=quote)
    path = f"/page/{view}" if view != "overview" else "/"
    return f"{path}?{asked}" if asked else path


@cache
def static_url(name: str) -> str:
    """Return the URL of a file of the page. It changes with the file."""
    return f"/page/static/{name}?{sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


class Templates:
    """The templates, compiled when they are first used."""

    def __init__(self, **shared: object) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: Iterable[Callable[..., object]] = (data, coded, preview, number, size, duration, moment, count, error_name)
        self._environment.filters |= {each.__name__: each for each in filters}
        self._environment.globals |= {"url": url, "static_url": static_url, **shared}
        self._compiled: dict[str, Template] = {}

    async def page(self, name: str, values: Mapping[str, Any]) -> str:
        """Return a whole page. Others may use the loop meanwhile."""
        live = await self.fragments(name, values)
        return self._compiled[name].render({**values, "live": live})

    async def fragments(self, name: str, values: Mapping[str, Any]) -> dict[str, Markup]:
        """Return the live parts of a page, by the id of their element. Others may use the loop after each few rows."""
        if name not in self._compiled:
            # This takes a tenth of a second.
            self._compiled[name] = await asyncio.to_thread(self._compile, name)
        template = self._compiled[name]
        context = template.new_context(dict(values))
        found: dict[str, Markup] = {}
        for block, render in template.blocks.items():
            if not block.startswith(LIVE):
                continue
            chunks: list[str] = []
            for chunk in render(context):
                chunks.append(chunk)
                if len(chunks) % _CHUNKS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            found[block.removeprefix(LIVE)] = Markup("".join(chunks).strip())  # noqa: S704  the environment escapes
        return found

    def _compile(self, name: str) -> Template:
        self._environment.get_template("layout.html")
        self._environment.globals["parts"] = self._environment.get_template("parts.html").module
        return self._environment.get_template(f"{name}.html")
