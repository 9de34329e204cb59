"""The output of commands that ask a broker: an aligned table for people, or JSON.

A table has the column titles of Kafka's own tools (``LOG-END-OFFSET``), aligns numbers to the right, and shows ``-`` for a
missing value. JSON has the same columns as keys (``log_end_offset``), and null for a missing value.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

Row = Mapping[str, Any]
_GAP = "  "


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
