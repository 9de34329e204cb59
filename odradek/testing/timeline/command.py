"""``odradek replay``: the requests of a recorded timeline against any broker."""

import sys
from pathlib import Path

import click

from odradek.testing.timeline.replay import replay as send_again
from odradek.testing.timeline.timeline import Timeline


class _Refused(click.ClickException):
    exit_code = 2


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    default="127.0.0.1:9092",
    envvar="ODRADEK_BOOTSTRAP",
    show_default=True,
    help="The broker to replay to.",
)
@click.option(
    "--timeout", "timeout_s", metavar="SECONDS", default=10.0, show_default=True, help="How long to wait for an answer."
)
def replay(file: Path, bootstrap_server: str, timeout_s: float) -> None:
    """Send the requests of a recorded timeline to a broker, and compare the answers.

    FILE is what Timeline.save of odradek.testing has written. A line for each difference goes to stdout, and the counts. Exit
    status 1 if an answer differs, 2 if the file or the broker cannot be used.
    """
    try:
        result = send_again(Timeline.load(file), bootstrap_server, timeout_s=timeout_s)
    except (OSError, ValueError) as error:
        raise _Refused(str(error)) from error
    click.echo(result)
    sys.exit(1 if result.differences else 0)
