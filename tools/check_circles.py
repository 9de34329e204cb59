"""Fails if modules import each other in a circle, and prints the modules of each circle.

Usage: check_circles.py PACKAGE_DIRECTORY...

Every import counts, including imports within functions and imports for type checkers only. A package's ``__init__`` is a module
of its own. An import of a module does not count as an import of the packages that contain it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def read_imports(package: Path) -> dict[str, set[str]]:
    """The imports between the package's modules: importing module -> imported modules."""
    root = package.parent
    files = {_module_name(path.relative_to(root)): path for path in package.rglob("*.py")}
    return {name: set(_imported(path, files)) - {name} for name, path in files.items()}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The circles: strongly connected components of more than one module."""
    found: set[frozenset[str]] = set()
    reached = {name: _reach(imports, name) for name in imports}
    for name, others in reached.items():
        if name in others:
            found.add(frozenset(other for other in others if name in reached[other]))
    return sorted(sorted(circle) for circle in found)


def _reach(imports: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        new = imports[ahead.pop()] - seen
        seen |= new
        ahead += new
    return seen


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif node.module in known:
                    yield node.module


def main(directories: list[str]) -> int:
    """Print each circle; 1 if there is any."""
    found = [circle for directory in directories for circle in circles(read_imports(Path(directory)))]
    for circle in found:
        print("import circle:", ", ".join(circle))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
