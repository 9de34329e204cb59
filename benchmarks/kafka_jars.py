"""Finds or downloads Apache Kafka's jars: the broker, its tools, and a logger that writes to standard error, 54 MB.

    python -m benchmarks.kafka_jars [VERSION]                  # prints the directory that holds them

Apache Ivy fetches them from Maven Central. PySpark, an extra of this project, ships Ivy's jar, so that only Java has to be
installed: neither Maven nor a Kafka distribution. Downloaded jars stay in the user's cache directory.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs

from benchmarks.load_tool import MissingTool
from odradek.pipeline.ivy_cache import ivy_cache

# The differentials and benchmarks run the first. Directories are also taken over from the second, and Kafka Streams runs of both.
VERSIONS = ("4.4.0", "4.3.1")
VERSION = VERSIONS[0]
SCALA_VERSION = "2.13"
LIBS_VARIABLE = "ODRADEK_KAFKA_LIBS"
_FETCH_TIMEOUT_S = 600.0
# Ivy fetches each module's otherwise: 276 requests and 38 MB more.
_WITHOUT_SOURCES = ("-Divy.maven.lookup.sources=false", "-Divy.maven.lookup.javadoc=false")
# The modules of each directory in the cache, all of Apache Kafka's version.
_MODULES = {"kafka": (f"kafka_{SCALA_VERSION}", "kafka-tools"), "kafka-streams": ("kafka-streams",)}
# Ivy draws its progress on standard output, which is for the directory's name.
_STDERR = 2


def java() -> str:
    """The path of ``java``: JAVA_HOME's if that is set. Raises MissingTool if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        reason = "there is no Java, 17 or newer: sudo apt-get install -y --no-install-recommends default-jdk-headless"
        raise MissingTool(reason)
    return found


def libraries() -> Path:
    """The directory with Kafka's jars: the one that ODRADEK_KAFKA_LIBS names, or the cache, filled if necessary."""
    named = os.environ.get(LIBS_VARIABLE)
    if not named:
        return cached(VERSION)
    directory = Path(named)
    if not any(directory.glob(f"kafka_{SCALA_VERSION}-*.jar")):
        reason = f"{LIBS_VARIABLE} names {directory}, which holds no kafka_{SCALA_VERSION}-*.jar"
        raise MissingTool(reason)
    return directory


def cached(version: str, kind: str = "kafka") -> Path:
    """The directory in the cache with the jars of this version, filled if necessary. ``kafka-streams`` is 80 MB more."""
    jars = platformdirs.user_cache_path("odradek", appauthor=False) / f"{kind}-{version}"
    if not jars.is_dir():
        with ivy_cache() as ivy:
            # Another process may have filled it meanwhile.
            if not jars.is_dir():
                _fetch(version, kind, ivy, jars)
    return jars


def _fetch(version: str, kind: str, cache: Path, target: Path) -> None:
    """Resolve the modules into a temporary directory beside the final one, and rename it when it is complete."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        modules = Path(scratch) / "ivy.xml"
        modules.write_text(_ivy_file(version, kind), encoding="utf-8")
        jars = Path(scratch) / "jars"
        command = [
            *(java(), f"-Divy.default.ivy.user.dir={cache}", *_WITHOUT_SOURCES, "-cp", str(_ivy()), "org.apache.ivy.Main"),
            *("-warn", "-ivy", str(modules), "-types", "jar", "bundle"),
            *("-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        try:
            subprocess.run(command, check=True, timeout=_FETCH_TIMEOUT_S, cwd=scratch, stdout=_STDERR)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            reason = f"Ivy could not fetch Apache Kafka {version}: {failure}"
            raise MissingTool(reason) from failure
        jars.rename(target)


def _ivy_file(version: str, kind: str) -> str:
    """Ivy's input: the modules, each with all its run-time dependencies."""
    modules = (
        *(("org.apache.kafka", module, version) for module in _MODULES[kind]),
        ("org.slf4j", "slf4j-simple", "1.7.36"),
    )
    dependencies = "".join(
        f'<dependency org="{organisation}" name="{module}" rev="{revision}" conf="default->default"/>'
        for organisation, module, revision in modules
    )
    info = f'<info organisation="odradek" module="{kind}-{version}"/>'
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


def main(arguments: list[str]) -> int:
    """Print the directory with the jars, of the version named if one is; 2 if that is unknown or Kafka cannot be fetched."""
    if arguments not in ([], *([version] for version in VERSIONS)):
        print(f"usage: python -m benchmarks.kafka_jars [{'|'.join(VERSIONS)}]", file=sys.stderr)
        return 2
    try:
        print(cached(arguments[0]) if arguments else libraries())
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
