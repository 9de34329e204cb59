"""Finds the error codes in a response: one flat function for each API, compiled from its fields.

A response may have a code at its top, one for each topic, group or partition, or all of these. The function reads every field of
type error code, and skips parts of a response that have no such field. NONE is not reported. For large responses there is a
sliced variant.
"""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Protocol

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.messages import Layout, load


class ErrorTally(Protocol):
    """The receiver of the codes."""

    def note_error(self, code: int) -> None:
        """Note one occurrence of a code other than NONE."""


ErrorScan = Callable[[Any, ErrorTally], None]
SlicedErrorScan = Callable[[Any, ErrorTally], Generator[None, None, None]]


def compile_error_scan(api_key: ApiKey) -> ErrorScan:
    """Compile the function for an API's canonical response."""
    scan: ErrorScan = _compiled(_scan_lines(load(api_key, NEWEST_VERSION[api_key], "response"), "o", in_slices=False))
    return scan


@cache
def compile_sliced_error_scan(api_key: ApiKey) -> SlicedErrorScan:
    """Compile the function as a generator that pauses after each topic, group and the like."""
    lines = _scan_lines(load(api_key, NEWEST_VERSION[api_key], "response"), "o", in_slices=True)
    scan: SlicedErrorScan = _compiled([*lines, "yield"])
    return scan


def _compiled(lines: list[str]) -> Callable[[Any, ErrorTally], Any]:
    scope: dict[str, Any] = {}
    body = "".join(f"    {line}\n" for line in lines or ["pass"])
    exec(f"def scan(o, tally):\n{body}", scope)  # noqa: S102  names come from Kafka's definitions
    return scope["scan"]  # type: ignore[no-any-return]


def _scan_lines(layout: Layout, owner: str, *, in_slices: bool) -> list[str]:
    lines: list[str] = []
    for spec in layout.fields:
        value = f"{owner}.{spec.name}"
        if spec.is_error_code:
            lines += [f"if {value}:", f"    tally.note_error({value})"]
        if spec.layout is None:
            continue
        inner = _scan_lines(spec.layout, f"{owner}_{spec.name}", in_slices=in_slices)
        if inner and spec.is_array:
            lines += [f"for {owner}_{spec.name} in {value} or ():" if spec.nullable else f"for {owner}_{spec.name} in {value}:"]
            lines += [f"    {line}" for line in inner]
            if in_slices and any(line.startswith("for ") for line in inner):
                lines.append("    yield")
        elif inner:
            lines += [f"{owner}_{spec.name} = {value}", f"if {owner}_{spec.name} is not None:"]
            lines += [f"    {line}" for line in inner]
    return lines
