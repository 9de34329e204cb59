"""A small Go program that uses franz-go, in the version of the examples."""

import shutil
import subprocess
from pathlib import Path

from benchmarks.load_tool import MissingTool
from tests.broker_process import REPOSITORY
from tests.needed import needed


def built(source: Path, scratch: Path) -> list[str]:
    """The command that runs the program of a source file, built in ``scratch``. Raises MissingTool where it cannot be."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(REPOSITORY / "examples" / "go" / name, scratch)
    shutil.copy(source, scratch)
    # As benchmarks/load is built, so that the library is compiled once.
    command = [needed("go"), "build", "-trimpath", "-buildvcs=false", "-o", source.stem, source.name]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"franz-go cannot be had: {' '.join(done.stderr.split())[-500:]}"
        raise MissingTool(reason)
    return [str(scratch / source.stem)]
