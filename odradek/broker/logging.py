"""The broker's own log: one event a line on stderr, for people on a terminal, as JSON elsewhere.

structlog takes some 60 ms to import and 7 MB to keep, so it comes in with the first line that is logged, which in a quiet broker
is none. Nothing here belongs on the hot path. A log that cannot be written (stderr closed, its disk full) never fails the
broker: the line is lost.

A broker in its user's process may have its lines to itself: whatever runs within ``lines_to``, and whatever that sets going on
the loop, on a timer or in the background, tells them to a function instead.

    {"topic": "orders", "partition": 3, "bytes": 512, "event": "torn tail truncated", "level": "warning", "timestamp": "..."}
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

# Is told of a line: its level ("info", "warning" or "error"), event and fields.
LineSink = Callable[[str, str, Mapping[str, object]], None]
_sink: ContextVar[LineSink | None] = ContextVar("sink", default=None)


@contextlib.contextmanager
def lines_to(sink: LineSink | None) -> Iterator[None]:
    """Within, lines go to ``sink``; to stderr where it is None."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


class BrokerLogger:
    """Events with their fields; each method takes a short phrase, and what it is about as keywords."""

    def __init__(self) -> None:
        self._logger: Any = None

    def info(self, event: str, **fields: object) -> None:
        """Something an operator may want to know."""
        self.tell("info", event, fields)

    def warn(self, event: str, **fields: object) -> None:
        """Something that was mended, ignored or refused, and that an operator should know."""
        self.tell("warning", event, fields)

    def error(self, event: str, exception: BaseException | None = None, **fields: object) -> None:
        """A fault of the broker or of its machine; with an exception, its traceback follows."""
        if exception is not None:
            fields["exc_info"] = exception
        self.tell("error", event, fields)

    def tell(self, level: str, event: str, fields: Mapping[str, object]) -> None:
        """A line of a ``level``: "info", "warning" or "error"."""
        sink = _sink.get()
        if sink is not None:
            sink(level, event, fields)
            return
        if self._logger is None:
            self._logger = _structlog_logger()
        getattr(self._logger, level)(event, **fields)


class _StandardError:
    """Where structlog hands its finished lines: whatever ``sys.stderr`` is at that moment."""

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    info = warning = error = msg


def _on_a_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):  # closed, or there is none
        return False


def _structlog_logger() -> Any:
    import structlog

    processors: list[Any] = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    if _on_a_terminal():
        # https://no-color.org
        colors = not os.environ.get("NO_COLOR")
        processors.append(structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback))
    else:
        processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # Nothing of structlog's global configuration is touched: a test suite that runs a broker inside itself has its own.
    return structlog.wrap_logger(_StandardError(), processors=processors, wrapper_class=structlog.BoundLogger)


log = BrokerLogger()
