"""The command line: its commands, and its errors (one line on stderr, exit status 2)."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

import click

from odradek.build import description
from odradek.cli.options import did_you_mean, help_where_nothing_is_asked, key_and_value
from odradek.cli.serve_options import Http, ServeOptions, parse_topics, serves_http, takes_log_level

# Each command is imported when it is called.
_ELSEWHERE = {
    "acls": "odradek.cli.acls",
    "brokers": "odradek.cli.brokers",
    "certs": "odradek.cli.certs",
    "client-metrics": "odradek.cli.client_metrics",
    "cluster": "odradek.cli.local_cluster.commands",
    "configs": "odradek.cli.configs",
    "consume": "odradek.cli.consume",
    "dump": "odradek.cli.dump",
    "features": "odradek.cli.features",
    "format": "odradek.cli.format",
    "groups": "odradek.cli.groups",
    "grow-out": "odradek.cli.grow_out",
    "load": "odradek.cli.load",
    "pipeline": "odradek.pipeline.commands",
    "produce": "odradek.cli.produce",
    "quotas": "odradek.cli.quotas",
    "replay": "odradek.testing.timeline.command",
    "tokens": "odradek.cli.tokens",
    "topics": "odradek.cli.topics",
    "transactions": "odradek.cli.transactions",
    "users": "odradek.cli.users",
}


class _Commands(click.Group):
    """The commands of this module and of those in ``_ELSEWHERE``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(import_module(_ELSEWHERE[cmd_name]), cmd_name.replace("-", "_"))
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            similar = did_you_mean(name, self.list_commands(ctx))
            raise click.UsageError(f"there is no command {name}{similar or '; odradek --help lists them'}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(description(), message="%(prog)s %(version)s")
@click.pass_context
def command(context: click.Context) -> None:
    """A Kafka broker in one Python process."""
    help_where_nothing_is_asked(context)


@command.command()
@click.option("--host", help="Address to listen on.  [default: from listeners: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one.  [default: from listeners: 9092]"
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The data directory.  [default: the user's data folder]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="A server.properties in Kafka's format.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=key_and_value, help="One config; repeatable.")
@click.option("--secure", "is_secure", is_flag=True, help="Accept only SASL_SSL clients, and print how to connect.")
@click.option("--faults", "faults_file", type=click.Path(path_type=Path), help="A JSON file with rules of faults to inject.")
@takes_log_level
@click.option("--in-memory", "is_in_memory", is_flag=True, help="Keep the data in memory: it is gone when the broker stops.")
@click.option(
    "--topic",
    "topics",
    metavar="NAME:PARTITIONS",
    multiple=True,
    callback=parse_topics,
    help="A topic to create if it does not exist; repeatable.",
)
@click.option(
    "--init",
    "init_file",
    type=click.Path(path_type=Path),
    help="A YAML file with topics, users, ACLs, quotas, records and group offsets; what is missing is made.",
)
@serves_http
def serve(http: Http | None, **options: object) -> int:
    """Run a broker until it is told to stop (SIGTERM, SIGINT).

    On a terminal it prints its addresses, and opens the HTTP port. Elsewhere it prints one line on stdout when it is ready:
    odradek ready on HOST:PORT. Its log goes to stderr. The flags take precedence over --set, and --set over the file.

    With --secure, certificates and a password are made, and kept with the data. Instructions for clients are printed after
    that line.

    With --http-port, a line before that has the address of the HTTP port, and the token of its control API. /openapi.json there
    describes it.
    """
    try:
        import fcntl  # noqa: F401
    except ImportError:
        reason = "a broker needs Linux or macOS: on Windows run it in WSL, or in a container"
        raise click.UsageError(reason) from None
    if options["is_in_memory"] and options["data_dir"] is not None:
        raise click.UsageError("--in-memory and --data-dir do not go together: leave one of them out")
    from odradek.cli.serve import run

    return run(ServeOptions(http=http, is_terminal=sys.stdout.isatty(), **cast("Any", options)))


def main() -> NoReturn:
    """Run the command and exit with its status."""
    try:
        status = command.main(prog_name="odradek", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"odradek: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    sys.exit(status)
