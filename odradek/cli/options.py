"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from odradek.cli.command_config import take_command_config

DEFAULT_SERVER = "127.0.0.1:9092"
_MAX_PORT = 65535

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def asks_a_broker(command: CommandT) -> CommandT:
    """Add ``--bootstrap-server`` (``bootstrap``: a list of (host, port)), ``--json`` (``as_json``) and ``--command-config``."""
    server = click.option(
        "--bootstrap-server",
        "bootstrap",
        metavar="HOST:PORT",
        default=DEFAULT_SERVER,
        show_default=True,
        callback=lambda _context, _option, value: parse_servers(value),
        help="A broker of the cluster; several, separated by commas, are tried in turn.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
    config = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=take_command_config,
        help="Client configs for a broker with TLS or SASL, as for Kafka's commands: security.protocol and its settings.",
    )
    return server(as_json(config(command)))


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
