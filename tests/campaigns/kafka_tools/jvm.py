"""Apache Kafka's own programs in a JVM that starts fast: without the optimizing compiler, and with an archive of its classes.

    python -m tests.campaigns.kafka_tools.jvm                  # writes the archive if there is none

A node that starts and ends writes the archive. A controller's start takes 1.7 s of processor time with it, and 3.4 s without.
Java takes no archive of other jars or of another Java: the program then starts as it does without one.
"""

import signal
import sys
import tempfile
from pathlib import Path

import platformdirs

from benchmarks import kafka_jars
from benchmarks.load_tool import MissingTool
from benchmarks.peers import Kafka, spawn
from tests.campaigns.kafka_tools.kafka_broker import accepts, end_process, until

# A node of a test has little to do.
_FLAGS = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def command(class_name: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    """Return the command line of a program; ``flags`` are further ones of the JVM. Raises MissingTool."""
    archive = _archive()
    if archive.exists():
        # An archive that Java does not take is a warning on standard output otherwise.
        flags = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", *flags)
    return [kafka_jars.java(), *_FLAGS, *flags, "-cp", f"{kafka_jars.libraries()}/*", class_name, *arguments]


def _archive() -> Path:
    return platformdirs.user_cache_path("odradek", appauthor=False) / f"{kafka_jars.libraries().name}.jsa"


def _write(archive: Path) -> None:
    """Have a node write the archive, and rename it when it is complete."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        template, node, written = (Path(scratch, name) for name in ("template", "node", "written.jsa"))
        template.mkdir()
        node.mkdir()
        kafka = Kafka(template)
        *_, properties = kafka.prepare(node, {})
        process = spawn(command("kafka.Kafka", properties, flags=(f"-XX:ArchiveClassesAtExit={written}",)), node)
        try:
            address = kafka.address(process, node)
            until(lambda: process.poll() is not None or accepts(address))
        finally:
            end_process(process, signal.SIGTERM)
        written.rename(archive)


def main() -> int:
    """Return the exit status: 2 without Kafka or Java."""
    try:
        archive = _archive()
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return 2
    if not archive.exists():
        _write(archive)
    return 0


if __name__ == "__main__":
    sys.exit(main())
