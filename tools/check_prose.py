"""Fails if a docstring or comment begins with a clause, or a sentence of a document cannot be read in one go.

Usage: check_prose.py PACKAGE_DIRECTORY DOCUMENT...

A docstring begins with a noun phrase or an imperative. So does a comment, but it may begin with a condition or a time. A sentence
of a document has at most 35 words. Code blocks, tables and headings do not count, and a name in backticks is one word.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 35
CLAUSE = re.compile(r"(What|Who|Whose|Whom|Whoever|Whether|Those|Where|Of|How|When|Which|Part of|That|If)\b")
COMMENT = re.compile(r" *# (What|Who|Whose|Whom|Whoever|Whether|Those|Of|How|Part of)\b")
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
NOT_PROSE = re.compile(r"^ *(\||#|<|    |$)")
ITEM = re.compile(r"^ *([-*]|\d+\.) +")
SENTENCE_END = re.compile(r"(?<=[.!?:;])[)*\"]*\s+")
NAME = re.compile(r"`[^`]*`|\[([^]]*)\]\([^)]*\)")


def clauses(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, first line) of each docstring and each comment that begins with a clause."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            if CLAUSE.match(docstring):
                yield node.body[0].lineno, docstring.split("\n")[0]
    before = ""
    for number, line in enumerate(source.split("\n"), 1):
        # The second line of a comment may begin with any word.
        if COMMENT.match(line) and not before.lstrip().startswith("#"):
            yield number, line.strip()
        before = line


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each paragraph or item of a document."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    first, lines = 0, []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if lines and (NOT_PROSE.match(line) or ITEM.match(line)):
            yield first, " ".join(lines)
            lines = []
        if not NOT_PROSE.match(line):
            first = first if lines else number
            lines.append(ITEM.sub("", line).strip())


def long_sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line of its paragraph, beginning) of each sentence that is too long."""
    for line, text in paragraphs(path.read_text(encoding="utf-8")):
        for sentence in SENTENCE_END.split(NAME.sub(lambda match: match[1] or "name", text)):
            words = sentence.split()
            if len(words) > MOST_WORDS:
                yield line, f"{len(words)} words: {' '.join(words[:8])} ..."


def main(package: str, documents: list[str]) -> int:
    """Print each finding; 1 if there is any."""
    failed = False
    for path in sorted(Path(package).rglob("*.py")):
        for line, found in clauses(path):
            failed = True
            print(f"{path}:{line}: a docstring or comment begins with the thing or an imperative, and not so: {found}")
    for path in map(Path, documents):
        for line, found in long_sentences(path):
            failed = True
            print(f"{path}:{line}: a sentence has {MOST_WORDS} words at most: {found}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
