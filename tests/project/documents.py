"""Reading the project's own documents: code blocks, tables."""

import re
from pathlib import Path

from tests.broker_process import REPOSITORY

DOCS = REPOSITORY / "docs"
README = REPOSITORY / "README.md"


def code_blocks(document: Path, language: str) -> list[str]:
    """The fenced code blocks of one language in a Markdown file, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def block_with(document: Path, language: str, text: str) -> str:
    """The only block of a language with this text in it."""
    [found] = [block for block in code_blocks(document, language) if text in block]
    return found


def table(document: Path, *header: str) -> list[dict[str, str]]:
    """The rows under the first table with these column titles, as dicts by title."""
    lines = iter(document.read_text().splitlines())
    opening = "| " + " | ".join(header) + " |"
    assert opening in lines, f"{document} has no table {opening}"
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.append(dict(zip(header, cells, strict=True)))
    return rows
