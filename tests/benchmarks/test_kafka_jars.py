"""Kafka's jars are fetched into the project's own cache, once, however many ask for them."""

import os
import subprocess
import sys

import pytest

from benchmarks import kafka_jars
from tests.broker_process import command_environment

# Stands for Java: fails where another one runs, and puts a jar where Ivy would.
JAVA = """#!/bin/sh
echo "$@" >> "$LOG"
mkdir "$LOG.running" || exit 1
for word in "$@"; do target=$word; done
mkdir "$(dirname "$target")" && touch "$(dirname "$target")/kafka.jar"
rmdir "$LOG.running"
"""


@pytest.fixture
def environment(tmp_path):
    """One with an empty cache, and that Java."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    added = {"XDG_CACHE_HOME": tmp_path / "cache", "JAVA_HOME": tmp_path / "java", "LOG": tmp_path / "log"}
    environment = command_environment() | {name: os.fspath(value) for name, value in added.items()}
    environment.pop(kafka_jars.LIBS_VARIABLE, None)
    return environment


def test_several_that_ask_at_once_have_the_jars_fetched_once_into_the_projects_cache(environment, tmp_path):
    command = [sys.executable, "-m", "benchmarks.kafka_jars"]
    asking = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [process.communicate(timeout=50)[0] for process in asking]
    cache = tmp_path / "cache" / "odradek"
    assert told == [f"{cache / f'kafka-{kafka_jars.VERSION}'}\n"] * 4
    [run] = (tmp_path / "log").read_text().splitlines()
    assert f"-Divy.default.ivy.user.dir={cache / 'ivy'} " in run


def test_an_unknown_version_is_refused(capsys):
    assert kafka_jars.main(["3.9.0"]) == 2
    assert capsys.readouterr() == ("", "usage: python -m benchmarks.kafka_jars [4.4.0|4.3.1]\n")
