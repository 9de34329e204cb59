"""Fails if a file or a function is too long to be read in one go; notes those that are close.

Usage: check_lengths.py DIRECTORY...

A file may have 500 lines and a function 70, from its ``def`` to its last line. Decorators do not count. A nested function
counts both on its own and as part of the function that contains it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LIMIT, FILE_NOTE = 500, 450
FUNCTION_LIMIT, FUNCTION_NOTE = 70, 60


def measure(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield (what, lines, limit, note) for a file and for each function in it."""
    source = path.read_text(encoding="utf-8")
    yield str(path), source.count("\n"), FILE_LIMIT, FILE_NOTE
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield f"{path}:{node.lineno} {node.name}", lines, FUNCTION_LIMIT, FUNCTION_NOTE


def main(directories: list[str]) -> int:
    """Print the files and functions that are too long or nearly so; 1 if any is too long."""
    failed = False
    for directory in directories:
        for path in sorted(Path(directory).rglob("*.py")):
            for what, lines, limit, note in measure(path):
                if lines > limit:
                    failed = True
                    print(f"too long: {what}: {lines} lines, {limit} at most")
                elif lines > note:
                    print(f"note: {what}: {lines} of {limit} lines")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
