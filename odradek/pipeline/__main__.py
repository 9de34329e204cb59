"""The program for Spark: ``spark-submit --packages CONNECTOR .../odradek/pipeline/__main__.py run --warehouse DIR ...``."""

import sys

import click

from odradek.pipeline.commands import pipeline


def main() -> None:
    """Run the command and exit with its status."""
    try:
        status = pipeline.main(prog_name="odradek pipeline", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"odradek: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    sys.exit(status)


if __name__ == "__main__":
    main()
