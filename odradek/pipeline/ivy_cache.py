"""The project's own cache of Apache Ivy, which downloads jars from Maven Central: Spark's Kafka connector, and Kafka for tests.

Ivy's default is one cache for all programs of a user. Two that fill it at the same time break each other's downloads.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


@contextmanager
def ivy_cache() -> Iterator[Path]:
    """Yield the cache's directory, locked: other processes wait here until the ``with`` ends."""
    directory = platformdirs.user_cache_path("odradek", appauthor=False) / "ivy"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory
