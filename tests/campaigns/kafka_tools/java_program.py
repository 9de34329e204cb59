"""A small Java program that asks Apache Kafka's own classes, compiled and run."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from benchmarks import kafka_jars
from tests.needed import needed

_TIMEOUT_S = 600.0
_JVM_FLAGS = ("-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")


def compiled(source: Path, scratch: Path, log_level: str = "error") -> list[str]:
    """The command that runs the program of a source file, compiled into ``scratch``. Its class has the file's name.

    Raises MissingTool without a JDK, and CalledProcessError.
    """
    javac = needed("javac")
    classpath = f"{kafka_jars.libraries()}/*"
    subprocess.run([javac, "-proc:none", "-cp", classpath, "-d", str(scratch), str(source)], check=True, timeout=_TIMEOUT_S)
    flags = [*_JVM_FLAGS, f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"]
    return [kafka_jars.java(), *flags, "-cp", f"{scratch}{os.pathsep}{classpath}", source.stem]


def answered_lines(source: Path, lines: Iterable[str], scratch: Path) -> list[str]:
    """Return the lines that the program of a source file prints for these lines. See ``compiled``."""
    given = "".join(f"{line}\n" for line in lines)
    command = compiled(source, scratch)
    ran = subprocess.run(command, input=given, capture_output=True, check=True, timeout=_TIMEOUT_S, encoding="utf-8")
    return ran.stdout.split("\n")[:-1]
