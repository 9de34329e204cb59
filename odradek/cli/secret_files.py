"""Files that only their owner may read."""

import os
from pathlib import Path

_MODE = 0o600


def write_secret(path: Path, data: bytes) -> None:
    """Write ``data`` to a file that only its owner may read. The file is replaced atomically. Raises OSError."""
    written = path.with_name(f".{path.name}.new")
    written.unlink(missing_ok=True)
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
