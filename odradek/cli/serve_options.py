"""The options of ``odradek serve``: what one start takes, the flags of its HTTP port, and of its log."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from odradek.common.logging import LEVELS, log

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

# On a terminal, the first free one of these is taken.
TERMINAL_PORTS: Final = range(8080, 8180)
_MOST_PARTITIONS: Final = 100_000


class InvalidInitFile(ValueError):
    """The file of ``--init`` cannot be used; the message has the file, the key, the value and what is allowed."""


class Http(NamedTuple):
    """The HTTP port: the first free one of ``ports`` at ``host``. ``certificate``, a PEM file with its key, turns TLS on.

    Without a token, one is drawn. Without a metrics token, anyone may read the metrics. ``is_asked`` is false for the port that a
    terminal gets unasked.
    """

    host: str
    ports: Sequence[int]
    token: str | None = None
    metrics_token: str | None = None
    certificate: Path | None = None
    has_page: bool = True
    opens_browser: bool = False
    is_page_read_only: bool = False
    is_asked: bool = True

    def __repr__(self) -> str:
        """Return the address without the tokens."""
        return f"Http({self.host}:{self.ports[0]})"


class ServeOptions(NamedTuple):
    """The options of one start. ``topics`` are numbers of partitions by name; None for the config's default."""

    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None
    config_file: Path | None = None
    settings: Mapping[str, str] = {}
    is_secure: bool = False
    is_in_memory: bool = False
    topics: Mapping[str, int | None] = {}
    init_file: Path | None = None
    faults_file: Path | None = None
    http: Http | None = None
    # A person reads stdout.
    is_terminal: bool = False

    @property
    def of_a_broker(self) -> list[str]:
        """Return the flags that a controller has no use for."""
        flags = {
            "--http-port": self.http is not None and self.http.is_asked,
            "--in-memory": self.is_in_memory,
            "--topic": bool(self.topics),
            "--init": self.init_file is not None,
            "--faults": self.faults_file is not None,
        }
        return [flag for flag, is_given in flags.items() if is_given]


def takes_log_level(command: CommandT) -> CommandT:
    """Add ``--log-level``, which applies to this process."""
    return click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default=LEVELS[0],
        envvar="ODRADEK_LOG_LEVEL",
        show_default=True,
        expose_value=False,
        callback=lambda _context, _option, level: setattr(log, "least_level", level),
        help="Leave out the log's lines below this level. Also ODRADEK_LOG_LEVEL.",
    )(command)


def parse_topics(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> dict[str, int | None]:
    """Parse ``NAME`` or ``NAME:PARTITIONS`` arguments; a later one replaces an earlier one of the same name."""
    topics: dict[str, int | None] = {}
    for text in texts:
        name, colon, count = text.partition(":")
        is_count = count.isascii() and count.isdecimal() and len(count) < 7 and 0 < int(count) <= _MOST_PARTITIONS
        if not name or (colon and not is_count):
            raise click.BadParameter(f"{text!r} is not NAME or NAME:PARTITIONS, with 1 to {_MOST_PARTITIONS:,} partitions")
        topics[name] = int(count) if colon else None
    return topics


def serves_http(command: CommandT) -> CommandT:
    """Add the flags of the HTTP port, as ``http``: an ``Http``, or None if there is to be no port."""

    @click.option(
        "--http-port",
        type=click.IntRange(0, 65535),
        envvar="ODRADEK_HTTP_PORT",
        help="Port of the page, the metrics and the control API; 0 takes a free one.  [default: on a terminal 8080, or the next"
        " free one; else none]",
    )
    @click.option(
        "--http-host", default="127.0.0.1", envvar="ODRADEK_HTTP_HOST", show_default=True, help="Address of the HTTP port."
    )
    @click.option(
        "--token",
        envvar="ODRADEK_HTTP_TOKEN",
        help="Token of the control API.  [default: a random one]",
    )
    @click.option(
        "--metrics-token",
        envvar="ODRADEK_METRICS_TOKEN",
        help="Token that scrapes must have; it opens the metrics only.  [default: none is needed]",
    )
    @click.option(
        "--http-certificate",
        type=click.Path(path_type=Path),
        envvar="ODRADEK_HTTP_CERTIFICATE",
        help="TLS for the HTTP port: a PEM file with certificate and key.",
    )
    @click.option("--open", "opens_browser", is_flag=True, help="Open the page in a browser.")
    @click.option("--no-page", is_flag=True, help="No page: the HTTP port has the metrics and the control API.")
    @click.option("--page-read-only", is_flag=True, help="The page shows, and changes nothing.")
    @click.option("--no-http", is_flag=True, help="No HTTP port, on a terminal either.")
    @wraps(command)
    def with_http(
        *,
        http_port: int | None,
        http_host: str,
        token: str | None,
        metrics_token: str | None,
        http_certificate: Path | None,
        opens_browser: bool,
        no_page: bool,
        page_read_only: bool,
        no_http: bool,
        **others: object,
    ) -> object:
        if no_page and (opens_browser or page_read_only):
            raise click.UsageError(f"{'--open' if opens_browser else '--page-read-only'} and --no-page do not go together")
        is_asked = http_port is not None
        if no_http or not (is_asked or sys.stdout.isatty()):
            _refuse_leftovers(no_http=no_http)
            return command(http=None, **others)
        http = Http(
            http_host,
            TERMINAL_PORTS if http_port is None else [http_port],
            token,
            metrics_token,
            http_certificate,
            has_page=not no_page,
            opens_browser=opens_browser,
            is_page_read_only=page_read_only,
            is_asked=is_asked,
        )
        return command(http=http, **others)

    return with_http  # type: ignore[return-value]


def _refuse_leftovers(*, no_http: bool) -> None:
    """Raise UsageError for flags of a port that there is not. Environment variables may be for another command."""
    context = click.get_current_context()
    flags = {
        "http_port": "--http-port",
        "http_host": "--http-host",
        "token": "--token",
        "metrics_token": "--metrics-token",
        "http_certificate": "--http-certificate",
        "opens_browser": "--open",
        "page_read_only": "--page-read-only",
    }
    for name, flag in flags.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag} and --no-http do not go together" if no_http else f"{flag} needs --http-port")
