"""Tries the odradek that is installed, from outside of a checkout: ``python tools/try_wheel.py compiled`` or ``pure``.

It is the build that it is to be, its command serves, and a broker of the test kit keeps what it is given. Otherwise it exits
with 1, and says why on stderr.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

BUILDS = {"compiled": "compiled", "pure": "pure Python"}
# As an installed command runs: the folder of this script, and the present one, are no places for modules.
PYTHON = (sys.executable, "-P")
KEEPS = """
from odradek.testing import Broker
with Broker(topics={"t": 1}) as broker:
    broker.produce("t", ["kept"])
    print([record.text for record in broker.records("t")])
"""


def told(*words: str) -> str:
    """What Python prints when it is run with these words. Raises CalledProcessError."""
    return subprocess.run([*PYTHON, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.strip()


def serve_and_stop() -> None:
    """Start a broker, ask it for its APIs, and stop it."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["-m", "odradek", "serve", "--port", "0", "--data-dir", str(Path(directory, "data"))]
        broker = subprocess.Popen([*PYTHON, *words], stdout=subprocess.PIPE, text=True)
        try:
            ready = broker.stdout.readline().strip() if broker.stdout else ""
            require(ready.startswith("odradek ready on 127.0.0.1:"), ready)
            told("-m", "odradek.cli.health", ready.rpartition(" ")[2])
        finally:
            broker.terminate()
            status = broker.wait(60)
        require(status == 0, f"the broker ended with {status}")


def require(is_so: bool, found: str) -> None:
    """Exit with 1 unless it is so."""
    if not is_so:
        sys.exit(f"found: {found}")


def main() -> None:
    """See the module."""
    build = BUILDS[sys.argv[1]]
    version = told("-m", "odradek", "--version")
    require(version.endswith(f", {build}"), version)
    where = told("-c", "import odradek; print(odradek.__file__)")
    require("site-packages" in where, where)
    serve_and_stop()
    kept = told("-c", KEEPS)
    require(kept == "['kept']", kept)
    print(f"{version}: {where}")


if __name__ == "__main__":
    main()
