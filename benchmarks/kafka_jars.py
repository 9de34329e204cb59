"""Finds or downloads Apache Kafka's jars: those of the whole broker, or the few that its tools for log files need.

Apache Ivy fetches them from Maven Central. PySpark, an extra of this project, ships Ivy's jar, so that only Java has to be
installed: neither Maven nor a Kafka distribution. Downloaded jars stay in the user's cache directory.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load_tool import MissingTool

VERSION = "4.3.1"
SCALA_VERSION = "2.13"
LIBS_VARIABLE = "ODRADEK_KAFKA_LIBS"


@dataclass(frozen=True, slots=True)
class Jars:
    """A set of Kafka's jars.

    Args:
        directory: the name of the directory in the cache that holds them.
        modules: organisation, module and revision of each.
        transitive: whether their dependencies are included.
    """

    directory: str
    modules: tuple[tuple[str, str, str], ...]
    transitive: bool


_LOGGER = ("org.slf4j", "slf4j-simple", "1.7.36")

# The broker, the storage tool that formats its data directory, and a logger that writes to standard error: 54 MB.
BROKER = Jars(
    directory=f"kafka-{VERSION}",
    modules=(
        ("org.apache.kafka", f"kafka_{SCALA_VERSION}", VERSION),
        ("org.apache.kafka", "kafka-tools", VERSION),
        _LOGGER,
    ),
    transitive=True,
)
# The classes that DumpLogSegments loads, with any of its decoders: 16 MB.
LOG_TOOLS = Jars(
    directory=f"kafka-tools-{VERSION}",
    modules=(
        *(
            ("org.apache.kafka", f"kafka-{name}", VERSION)
            for name in (
                *("tools", "tools-api", "clients", "server-common", "storage", "metadata"),
                *("coordinator-common", "group-coordinator", "transaction-coordinator"),
            )
        ),
        *(("com.fasterxml.jackson.core", f"jackson-{name}", "2.21.2") for name in ("core", "databind")),
        ("com.fasterxml.jackson.core", "jackson-annotations", "2.21"),
        ("net.sf.jopt-simple", "jopt-simple", "5.0.4"),
        ("org.slf4j", "slf4j-api", "1.7.36"),
        _LOGGER,
    ),
    transitive=False,
)
_FETCH_TIMEOUT_S = 600.0


def java() -> str:
    """The path of ``java``: JAVA_HOME's if that is set. Raises MissingTool if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        reason = "Apache Kafka needs Java 17 or later: apt-get install openjdk-17-jre-headless"
        raise MissingTool(reason)
    return found


def libraries(wanted: Jars = BROKER) -> Path:
    """The directory with these jars: the one that ODRADEK_KAFKA_LIBS names, or the cache, filled if necessary."""
    named = os.environ.get(LIBS_VARIABLE)
    if named:
        directory = Path(named)
        if not any(directory.glob(f"kafka_{SCALA_VERSION}-*.jar")):
            reason = f"{LIBS_VARIABLE} names {directory}, which holds no kafka_{SCALA_VERSION}-*.jar"
            raise MissingTool(reason)
        return directory
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek"
    # The jars of the whole broker include those of its tools.
    for there in (BROKER, wanted):
        if (cache / there.directory).is_dir():
            return cache / there.directory
    _fetch(wanted, cache)
    return cache / wanted.directory


def _fetch(wanted: Jars, cache: Path) -> None:
    """Resolve the modules into a temporary directory beside the final one, and rename it when it is complete."""
    cache.mkdir(parents=True, exist_ok=True)
    ivy = _ivy()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        modules = Path(scratch) / "ivy.xml"
        modules.write_text(_ivy_file(wanted), encoding="utf-8")
        jars = Path(scratch) / "jars"
        command = [
            *(java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-ivy", str(modules), "-types", "jar", "bundle"),
            *("-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        try:
            subprocess.run(command, check=True, timeout=_FETCH_TIMEOUT_S, cwd=scratch)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            reason = f"Ivy could not fetch {wanted.directory}: {failure}"
            raise MissingTool(reason) from failure
        jars.rename(cache / wanted.directory)


def _ivy_file(wanted: Jars) -> str:
    """Ivy's input: the modules, each with its own jar only or with all run-time dependencies."""
    configuration = "default->default" if wanted.transitive else "default->master"
    dependencies = "".join(
        f'<dependency org="{organisation}" name="{module}" rev="{revision}" conf="{configuration}"/>'
        for organisation, module, revision in wanted.modules
    )
    info = f'<info organisation="odradek" module="{wanted.directory}"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{dependencies}</dependencies></ivy-module>'


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
