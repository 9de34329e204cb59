"""A small Go program that uses franz-go, in the version of the examples."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.languages.whole_examples import EXAMPLES


def built(source: Path, scratch: Path) -> list[str]:
    """The command that runs the program of a source file, which is built in ``scratch``. Skips the test where it cannot be."""
    if shutil.which("go") is None:
        pytest.skip("there is no go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(EXAMPLES / "go" / name, scratch)
    shutil.copy(source, scratch)
    # As benchmarks/load is built, so that the library is compiled once.
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", source.stem, source.name]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"franz-go cannot be had: {done.stderr[-500:]}")
    return [str(scratch / source.stem)]
