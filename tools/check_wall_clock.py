"""Fails if a module outside the timing room reads a clock.

Usage: check_wall_clock.py PACKAGE_DIRECTORY

Other rooms get the time as an argument or through a Clock, so that a whole broker runs under a virtual clock. The check is
syntactic. It finds any import of ``time``, ``now``, ``utcnow`` and ``today`` of ``datetime`` and ``date``, and any call of a
method ``time()`` without arguments, which event loops have.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

CLOCK_ROOM = "timing"
DATE_CLASSES = frozenset({"date", "datetime"})
DATE_READINGS = frozenset({"now", "today", "utcnow"})


def readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, reason) for each place in a module that reads a clock."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(name.name == "time" for name in names):
                yield node.lineno, "import time"
            case ast.ImportFrom(module="time", level=0):
                yield node.lineno, "from time import ..."
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attr) if (
                owner in DATE_CLASSES and attr in DATE_READINGS
            ):
                yield node.lineno, f"{owner}.{attr}"
            case ast.Call(func=ast.Attribute(attr="time"), args=[], keywords=[]):
                yield node.lineno, "a call of time()"


def main(directory: str) -> int:
    """Print each reading of a clock outside the timing room; 1 if there is any."""
    failed = False
    package = Path(directory)
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] == CLOCK_ROOM:
            continue
        for line, what in readings(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            failed = True
            print(f"{path}:{line}: {what}: outside {CLOCK_ROOM}/ time comes in as an argument or through a Clock")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
