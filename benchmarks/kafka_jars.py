"""Finds Apache Kafka's jars, or fetches them once.

Kafka comes from Maven Central by Apache Ivy, whose jar PySpark ships (an extra of this project), so that no Maven and no
Kafka distribution need be installed: only Java. What was fetched stays in the user's cache directory.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.load_tool import MissingTool

VERSION = "4.3.1"
SCALA_VERSION = "2.13"
LIBS_VARIABLE = "ODRADEK_KAFKA_LIBS"

# The broker, the storage tool that formats its data directory, and a logger that writes to standard error.
_DEPENDENCIES = (
    ("org.apache.kafka", f"kafka_{SCALA_VERSION}", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
_FETCH_TIMEOUT_S = 600.0


def java() -> str:
    """The path of ``java``; MissingTool when there is none."""
    found = shutil.which("java")
    if found is None:
        reason = "Apache Kafka needs Java 17 or later: apt-get install openjdk-17-jre-headless"
        raise MissingTool(reason)
    return found


def libraries() -> Path:
    """The directory that holds Kafka's jars: the one that ODRADEK_KAFKA_LIBS names, or the cache, filled if need be."""
    named = os.environ.get(LIBS_VARIABLE)
    if named:
        directory = Path(named)
        if not any(directory.glob(f"kafka_{SCALA_VERSION}-*.jar")):
            reason = f"{LIBS_VARIABLE} names {directory}, which holds no kafka_{SCALA_VERSION}-*.jar"
            raise MissingTool(reason)
        return directory
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek" / f"kafka-{VERSION}"
    if not cache.is_dir():
        _fetch(cache)
    return cache


def _fetch(directory: Path) -> None:
    """Resolve the dependencies into a directory beside the right one, and move it into place when it is whole."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    ivy = _ivy()
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        jars = Path(scratch) / "jars"
        for organisation, module, revision in _DEPENDENCIES:
            command = [
                *(java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn"),
                *("-dependency", organisation, module, revision, "-confs", "default", "-types", "jar", "bundle"),
                *("-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"),
            ]
            try:
                subprocess.run(command, check=True, timeout=_FETCH_TIMEOUT_S, cwd=scratch)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
                reason = f"Ivy could not fetch {organisation}:{module}:{revision}: {failure}"
                raise MissingTool(reason) from failure
        jars.rename(directory)


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = (spec.submodule_search_locations if spec else None) or []
    for place in places:
        for jar in sorted(Path(place).glob("jars/ivy-*.jar")):
            return jar
    reason = (
        f"fetching Kafka takes the Ivy that PySpark brings: pip install pyspark, "
        f"or set {LIBS_VARIABLE} to a directory of Kafka's jars"
    )
    raise MissingTool(reason)
