"""``odradek dump``: what the files of a data directory contain, of odradek or of Kafka, without a broker."""

import json
from pathlib import Path
from typing import Any

import click

from odradek.cli.dump_files import DAMAGE, Entry, dumped_files, read_file
from odradek.cli.dump_records import DECODERS, RecordDecoder, decoder_of
from odradek.cli.options import CannotWork, exit_status
from odradek.cli.record_format import iso_time

_TIMES = frozenset({"timestamp", "max_timestamp", "last_timestamp"})


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line, with times in ms since the epoch.")
@click.option("--batches", "only_batches", is_flag=True, help="Of segments, the batches without their records.")
@click.option(
    "--decoder",
    type=click.Choice(DECODERS),
    help="How to read the records.  [default: by the name of the directory]",
)
def dump(paths: tuple[Path, ...], as_json: bool, only_batches: bool, decoder: str | None) -> int:
    """Print segments, indexes, snapshots and checkpoint files, or those of a partition's directory.

    The coordinators' and the controllers' records are decoded. Checksums are verified: with damage, the exit status is 1.
    """
    failures: list[click.ClickException] = []
    for file in (file for path in paths for file in dumped_files(path)):
        decode = RecordDecoder(decoder or decoder_of(file.resolve().parent.name))
        if not as_json:
            click.echo(f"# {file}")
        try:
            for entry in read_file(file, decode, with_records=not only_batches):
                if entry["kind"] == DAMAGE:
                    failures.append(click.ClickException(f"{file}: {_place(entry)}{entry['reason']}"))
                click.echo(json.dumps({"file": str(file), **entry}, ensure_ascii=False) if as_json else _as_text(entry))
        except (OSError, ValueError) as error:
            failures.append(CannotWork(str(error)))
    return max((failure.exit_code for failure in failures), default=0) if exit_status(failures) else 0


def _place(entry: Entry) -> str:
    return f"at position {entry['position']}: " if "position" in entry else ""


def _as_text(entry: Entry) -> str:
    """Return ``kind name=value name=value``; records are indented below their batch."""
    shown = " ".join(f"{name}={_text(name, value)}" for name, value in entry.items() if name != "kind")
    return f"{'  ' if entry['kind'] == 'record' else ''}{entry['kind']} {shown}"


def _text(name: str, value: Any) -> str:  # noqa: ANN401  any JSON
    if name in _TIMES and isinstance(value, int):
        return iso_time(value)
    if isinstance(value, str) and value and not any(letter.isspace() or letter == "=" for letter in value):
        return value
    return json.dumps(value, ensure_ascii=False)
