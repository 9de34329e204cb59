"""The report of the pipeline about this broker, if somebody has written one where the page looks.

It looks for ``report.html`` in the directories of the data, beside them, and in the working directory, and takes a file that
the pipeline has written. See docs/pipeline.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.page.facts.source import Missing, require_cluster

if TYPE_CHECKING:
    from odradek.page.facts.source import Source

_NAME: Final = "report.html"
# The title that the pipeline gives its report (``odradek.pipeline.report.page``), and where it stands.
_TITLE: Final = b"<title>odradek: what groups and transactions did</title>"
_HEAD_BYTES: Final = 4_096


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
    """Return the newest report, or where it would be found. Raises Denied without DESCRIBE on the cluster, Unavailable."""
    await require_cluster(source)
    paths = _places(source)
    found = await asyncio.to_thread(lambda: [report for report in map(_report, paths) if report is not None])
    newest = max(found, key=lambda report: report.modified_ms, default=None)
    return Findings(newest, tuple(map(str, paths)))


async def report_bytes(source: Source) -> bytes:
    """Return the content of the newest report. Raises Missing, Denied, Unavailable."""
    report = (await findings(source)).report
    if report is None:
        raise Missing("there is no report of the pipeline")
    path = Path(report.path)
    try:
        return await asyncio.to_thread(path.read_bytes)
    except OSError as error:
        raise Missing(f"cannot read {path}: {error.strerror}") from error


def _places(source: Source) -> list[Path]:
    directories = [Path(each.path) for each in source.core.log_manager.directories.all]
    near = [Path.cwd(), *directories, *(directory.parent for directory in directories)]
    return list(dict.fromkeys(directory.absolute() / _NAME for directory in near))


def _report(path: Path) -> Report | None:
    """Return the report at a path; None if the pipeline has written none there."""
    try:
        with path.open("rb") as file:
            if _TITLE not in file.read(_HEAD_BYTES):
                return None
        about = path.stat()
    except OSError:
        return None
    return Report(str(path), about.st_size, about.st_mtime_ns // 1_000_000)
