"""The process behind the ``odradek`` command and ``python -m odradek``."""

import gc
import sys
from typing import NoReturn

from odradek.cli.main import main


def start() -> NoReturn:
    """Run the command as a process of its own."""
    # While everything is being imported nothing becomes garbage.
    gc.disable()
    # kio registers its types with hypothesis wherever that is installed: 100 ms of start-up that only a test suite has a use for.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    main()


if __name__ == "__main__":
    start()
