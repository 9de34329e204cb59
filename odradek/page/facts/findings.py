"""The report of the pipeline about this broker, if somebody has written one where the page looks.

It looks for ``report.html`` in the directories of the data, beside them, and in the working directory, and takes a file that
the pipeline has written. See docs/pipeline.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.page.facts.source import Source


@dataclass(frozen=True, slots=True)
class Report:
    """The report: a page of HTML that needs no network."""

    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Findings:
    """``report`` is None if there is none; ``looked_at`` has the paths that were tried."""

    report: Report | None
    looked_at: tuple[str, ...]


async def findings(source: Source) -> Findings:
    """Return the newest report, or where it would be found. Raises Denied without DESCRIBE on the cluster."""
    raise NotImplementedError


async def report_bytes(source: Source) -> bytes:
    """Return the content of the newest report. Raises Missing, Denied."""
    raise NotImplementedError
