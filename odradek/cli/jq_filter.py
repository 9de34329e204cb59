"""``--jq``: the results of a jq program on each value, by the library jq (the extra ``jq``)."""

import json
from typing import TYPE_CHECKING, Any

import click

from odradek.client.known_cluster import Partition
from odradek.protocol.records import Record

if TYPE_CHECKING:
    from odradek.cli.record_format import Render


class _JqFailed(click.ClickException):
    """A value that the program cannot take."""

    exit_code = 1


def jq_filter(program: str) -> "Render":
    """Return the function of a program. A record without a result is left out. Raises click.ClickException."""
    compiled = _compiled(program)

    def render(partition: Partition, record: Record) -> bytes:
        if record.value is None:
            return b""
        try:
            results: list[object] = compiled.input_value(json.loads(record.value)).all()
        except ValueError as error:
            place = f"{partition[0]}-{partition[1]} at offset {record.offset}"
            raise _JqFailed(f"{place}: jq: {error}; --value-filter leaves records out") from error
        return b"".join(json.dumps(result, ensure_ascii=False).encode() + b"\n" for result in results)

    return render


def _compiled(program: str) -> Any:  # noqa: ANN401  the library has no types
    try:
        from jq import compile as compile_program  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise click.UsageError("--jq needs the library jq: pip install 'odradek[jq]'") from None
    try:
        return compile_program(program)
    except ValueError as error:
        raise click.UsageError(f"--jq {program}: {error}") from error
