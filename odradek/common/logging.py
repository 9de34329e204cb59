"""The broker's own log: one event per line on stderr, readable on a terminal, as JSON elsewhere.

Do not log on the hot path. A log that cannot be written (stderr closed, its disk full) never fails the broker: the line is
lost.

A broker in its user's process may redirect its lines. Code within ``lines_to``, and everything that it starts on the loop, on
a timer or in the background, passes its lines to a function instead.

    {"topic": "orders", "partition": 3, "bytes": 512, "event": "torn tail truncated", "level": "warning", "timestamp": "..."}

Lines that clients cause are limited (``LineLimit``): a client that is refused again and again would fill the disk. In ten
seconds, at most ten lines of one cause and a hundred in all are written. The next line of a cause says how many were left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Final

from odradek.timing.system_clock import machine_time

if TYPE_CHECKING:
    from collections.abc import Hashable

    from odradek.timing.clock import Clock

# Called with a line: its level ("info", "warning" or "error"), event and fields.
LineSink = Callable[[str, str, Mapping[str, object]], None]
LEVELS: Final = ("info", "warning", "error")
_COLORS: Final = {"info": "", "warning": "\x1b[33m", "error": "\x1b[31m"}
_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_sink: ContextVar[LineSink | None] = ContextVar("sink", default=None)


@contextlib.contextmanager
def lines_to(sink: LineSink | None) -> Iterator[None]:
    """Send lines logged within the ``with`` to ``sink``; to stderr if it is None."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


class BrokerLogger:
    """Logs events with fields. Each method takes a short phrase, and the details as keywords.

    Lines below ``least_level`` are not written to stderr. ``lines_to`` gets all lines.
    """

    def __init__(self) -> None:
        self.least_level = LEVELS[0]

    def info(self, event: str, **fields: object) -> None:
        """Log an event that an operator may want to know."""
        self.tell("info", event, fields)

    def warn(self, event: str, **fields: object) -> None:
        """Log a problem that was repaired, ignored or refused, and that an operator should know."""
        self.tell("warning", event, fields)

    def error(self, event: str, exception: BaseException | None = None, **fields: object) -> None:
        """Log a fault of the broker or of its machine; with an exception, its traceback follows."""
        if exception is not None:
            fields["exception"] = "".join(traceback.format_exception(exception)).rstrip()
        self.tell("error", event, fields)

    def tell(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        """Log a line of a ``level``: "info", "warning" or "error"."""
        sink = _sink.get()
        if sink is not None:
            sink(level, event, fields)
            return
        if LEVELS.index(level) < LEVELS.index(self.least_level):
            return
        render = _for_people if _on_a_terminal() else _as_json
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(render(machine_time(), level, event, fields) + "\n")
            sys.stderr.flush()


def _on_a_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):  # closed, or there is none
        return False


def _as_json(timestamp: str, level: str, event: str, fields: Mapping[str, object]) -> str:
    return json.dumps({**fields, "event": event, "level": level, "timestamp": timestamp}, default=repr)


def _for_people(timestamp: str, level: str, event: str, fields: Mapping[str, object]) -> str:
    """Return a line such as ``09:30:00 warning: topic not created (topic=orders)``. The time is that of the machine's zone."""
    shown = dict(fields)
    exception = shown.pop("exception", None)
    # https://no-color.org
    dim, color, end = ("", "", "") if os.environ.get("NO_COLOR") else (_DIM, _COLORS[level], _PLAIN)
    local = datetime.fromisoformat(timestamp).astimezone()
    text = f"{dim}{local:%H:%M:%S}{end} {'' if level == 'info' else f'{color}{level}:{end} '}{event}"
    if shown:
        text += f" {dim}({', '.join(f'{name}={_word(value)}' for name, value in shown.items())}){end}"
    return text if exception is None else f"{text}\n{exception}"


def _word(value: object) -> str:
    """Return a value as it is if it is one printable word, otherwise its repr."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


log = BrokerLogger()


_WINDOW_MS: Final = 10_000.0
_MOST_LINES_PER_CAUSE: Final = 10
_MOST_LINES: Final = 100
# A cause may include names chosen by clients.
_MOST_CAUSES: Final = 1_000


class LineLimit:
    """A limit on log lines per window of time. Counts the lines left out. Loop thread only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window_end_ms = 0.0
        self._written_count = 0
        self._written: dict[Hashable, int] = {}
        self._suppressed: dict[Hashable, int] = {}

    def admit(self, cause: Hashable) -> dict[str, int] | None:
        """Return None if a line of this cause is to be left out, else fields to add: ``left_out``, if any lines were."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._window_end_ms:
            self._window_end_ms = now_ms + _WINDOW_MS
            self._written_count = 0
            self._written.clear()
        written = self._written.get(cause, 0)
        if written >= _MOST_LINES_PER_CAUSE or self._written_count >= _MOST_LINES:
            if len(self._suppressed) < _MOST_CAUSES or cause in self._suppressed:
                self._suppressed[cause] = self._suppressed.get(cause, 0) + 1
            return None
        self._written[cause] = written + 1
        self._written_count += 1
        number = self._suppressed.pop(cause, 0)
        return {"left_out": number} if number else {}
