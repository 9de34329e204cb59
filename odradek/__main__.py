"""The process behind the ``odradek`` command and ``python -m odradek``."""

import gc
from typing import NoReturn

from odradek.cli.main import main


def start() -> NoReturn:
    """Run the command as a process of its own."""
    # Imports create no garbage.
    gc.disable()
    main()


if __name__ == "__main__":
    start()
