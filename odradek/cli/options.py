"""The options that commands share, and the form of their output: an aligned table for people, or JSON.

``--command-config`` names a file with connection settings, as Kafka's own commands take it. These configs are used:
``security.protocol``, the ``ssl.`` configs for TLS, and for SASL ``sasl.mechanism`` and ``sasl.jaas.config``, with PLAIN and
SCRAM, or with a delegation token by SCRAM's option ``tokenauth=true``. All others are ignored. The file is read at the first
connection.

A table has the column titles of Kafka's own tools (``LOG-END-OFFSET``), aligns numbers to the right, and shows ``-`` for a
missing value. JSON (``--json``) has the same columns as keys (``log_end_offset``), and null for a missing value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from odradek.cli.profiles import CommandConfig, profile, take_profile

_FILE: Final = "odradek.command_config.file"
_READ: Final = "odradek.command_config.read"


Servers = list[tuple[str, int]]
"""The (host, port) pairs of --bootstrap-server."""


def take_command_config(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    """Store the path; the callback of the option."""
    context.meta[_FILE] = path


def command_config() -> CommandConfig:
    """Return the config of the running command. Raises CannotSpeak."""
    context = click.get_current_context(silent=True)
    if context is None:
        return CommandConfig()
    if _READ not in context.meta:
        path = context.meta.get(_FILE) or profile().command_config
        context.meta[_READ] = _settings(path) if path is not None or profile().properties else CommandConfig()
    found: CommandConfig = context.meta[_READ]
    return found


def _settings(path: Path | None) -> CommandConfig:
    # 38 ms, and most commands talk to a broker without TLS and SASL.
    from odradek.cli.connection_settings import connection_settings, read_command_config

    return connection_settings(profile().properties) if path is None else read_command_config(path)


def security_hint() -> str:
    """Return what to try with a broker that closes connections; "" for a command that has connection settings."""
    if command_config() != CommandConfig():
        return ""
    return "; if it wants TLS or a password, set security.protocol in the file of --command-config or in a --profile"


def timestamp_ms_of(text: str) -> int:
    """Return a time in ISO 8601 as ms since the epoch. It is UTC unless it says otherwise. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)


DEFAULT_SERVER = "127.0.0.1:9092"
_MAX_PORT = 65535

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def reaches_a_broker(command: CommandT) -> CommandT:
    """Add ``-b/--bootstrap-server`` (``bootstrap``: a list of (host, port)), ``--command-config`` and ``--profile``.

    The servers are those of the option, of ODRADEK_BOOTSTRAP, of the profile, or the default, in this order.
    """
    server = click.option(
        "-b",
        "--bootstrap-server",
        "bootstrap",
        metavar="HOST:PORT",
        envvar="ODRADEK_BOOTSTRAP",
        show_default=DEFAULT_SERVER,
        callback=lambda _context, _option, value: parse_servers(value or profile().bootstrap or DEFAULT_SERVER),
        help="A broker of the cluster; several, separated by commas, are tried in turn. Also ODRADEK_BOOTSTRAP.",
    )
    config = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=take_command_config,
        help="Client configs for a broker with TLS or SASL, as for Kafka's commands: security.protocol and its settings.",
    )
    named = click.option(
        "--profile",
        metavar="NAME",
        envvar="ODRADEK_PROFILE",
        expose_value=False,
        is_eager=True,
        callback=take_profile,
        help="Servers and credentials of this name in the profile file. Also ODRADEK_PROFILE.",
    )
    return server(config(named(command)))


def asks_a_broker(command: CommandT) -> CommandT:
    """Add the options of ``reaches_a_broker``, and ``--json`` (``as_json``)."""
    as_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
    return reaches_a_broker(as_json(command))


def names_a_partition(command: CommandT) -> CommandT:
    """Add ``--topic`` and ``--partition``, both required."""
    topic = click.option("--topic", required=True, help="A topic.")
    partition = click.option("--partition", required=True, type=click.IntRange(0), help="One of its partitions.")
    return topic(partition(command))


def help_where_nothing_is_asked(context: click.Context) -> None:
    """Print help to stderr and exit with status 2 if a group of commands is called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


def command_group(name: str | None = None) -> Callable[[Callable[[], None]], click.Group]:
    """Turn a function, of which only name and docstring count, into a group of commands with ``help_where_nothing_is_asked``."""

    def decorate(described: Callable[[], None]) -> click.Group:
        callback = click.pass_context(help_where_nothing_is_asked)
        return click.Group(name or described.__name__, help=described.__doc__, callback=callback, invoke_without_command=True)

    return decorate


def parse_servers(text: str) -> list[tuple[str, int]]:
    """Parse ``HOST:PORT,HOST:PORT``; an IPv6 host is in brackets."""
    servers = []
    for address in text.split(","):
        host, colon, port = address.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (colon and host and port.isdecimal() and 0 < int(port) <= _MAX_PORT):
            message = f"{address!r} is not HOST:PORT"
            raise click.BadParameter(message)
        servers.append((host, int(port)))
    return servers


def key_and_value(_context: click.Context, _option: click.Parameter, settings: tuple[str, ...]) -> dict[str, str]:
    """Turn ``key=value`` arguments into a dict; a later one replaces an earlier one of the same key."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            message = f"{setting!r} is not of the form key=value"
            raise click.BadParameter(message)
        parsed[key.strip()] = value.strip()
    return parsed


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?``, or "" if no known name resembles the word."""
    from difflib import get_close_matches  # 4 ms, for a wrong name only

    by_lower_case = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower_case)
    return f"; did you mean {' or '.join(by_lower_case[name] for name in close)}?" if close else ""


Row = Mapping[str, Any]
_GAP = "  "


def row_of(columns: Sequence[str], *values: object) -> dict[str, Any]:
    """Return the row with these values, one for each column."""
    return dict(zip(columns, values, strict=True))


def render(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the table with its titles, each line ended. A row may have keys that are no column."""
    cells = [[_title(column) for column in columns], *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [_are_numbers([row[column] for row in rows]) for column in columns]
    lines = [
        _GAP.join(
            cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        for line in cells
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def show_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show(columns: Sequence[str], rows: Sequence[Row], *, as_json: bool) -> None:
    """Print the rows as a table, or as JSON."""
    if as_json:
        show_json([{column: row[column] for column in columns} for row in rows])
    else:
        click.echo(render(columns, rows), nl=False)


class CannotWork(click.ClickException):
    """A command cannot do its work at all."""

    exit_code = 2


def exit_status(failures: Sequence[click.ClickException]) -> int:
    """Print the failures to stderr, each once. Return 1 if there are any, otherwise 0."""
    for message in dict.fromkeys(failure.format_message() for failure in failures):
        click.echo(f"odradek: {message}", err=True)
    return 1 if failures else 0


def _title(column: str) -> str:
    return column.replace("_", "-").upper()


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


def _are_numbers(values: list[Any]) -> bool:
    """Return whether there are values other than None, and all of them are numbers."""
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int) and not isinstance(value, bool) for value in known)
