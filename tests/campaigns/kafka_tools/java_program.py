"""A small Java program that asks Apache Kafka's own classes, compiled and run."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks import kafka_jars

_TIMEOUT_S = 600.0
_JVM_FLAGS = ("-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")


def compiler() -> str | None:
    """The path of ``javac``; None without a JDK."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home, "bin", "javac")) if home else "javac")


def compiled(source: Path, scratch: Path) -> list[str]:
    """The command that runs the program of a source file, compiled into ``scratch``. Its class has the file's name.

    Skips the test without a JDK. Raises CalledProcessError.
    """
    javac = compiler()
    if javac is None:
        pytest.skip("there is no JDK")
    classpath = f"{kafka_jars.libraries()}/*"
    subprocess.run([javac, "-proc:none", "-cp", classpath, "-d", str(scratch), str(source)], check=True, timeout=_TIMEOUT_S)
    return [kafka_jars.java(), *_JVM_FLAGS, "-cp", f"{scratch}{os.pathsep}{classpath}", source.stem]


def answered_lines(source: Path, lines: Iterable[str], scratch: Path) -> list[str]:
    """Return the lines that the program of a source file prints for these lines. See ``compiled``."""
    given = "".join(f"{line}\n" for line in lines)
    command = compiled(source, scratch)
    ran = subprocess.run(command, input=given, capture_output=True, check=True, timeout=_TIMEOUT_S, encoding="utf-8")
    return ran.stdout.split("\n")[:-1]
