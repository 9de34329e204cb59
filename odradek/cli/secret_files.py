"""Files that nobody else is to read."""

import os
from pathlib import Path

_MODE = 0o600


def write_secret(path: Path, data: bytes) -> None:
    """Write ``data`` to a file of its owner's alone; whoever reads it meets the old file or the new one. Raises OSError."""
    written = path.with_name(f".{path.name}.new")
    written.unlink(missing_ok=True)
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
