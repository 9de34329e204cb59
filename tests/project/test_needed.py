"""Tests whose program is missing are skipped on one line that says how to get it, or fail where none may be missing."""

import os
import re
import subprocess
import sys

from tests.broker_process import REPOSITORY, command_environment

KEYTOOLS = "tests/broker/security/tls/test_java_key_store.py"


def run_without_java(home, *arguments):
    """The exit status and the summary of a run of three tests that need Java's keytool."""
    options = ["-q", "-p", "no:cacheprovider", "-k", "keytool", f"--basetemp={home}/pytest"]
    command = [sys.executable, "-m", "pytest", *options, KEYTOOLS, *arguments]
    environment = command_environment() | {"JAVA_HOME": os.fspath(home)}
    run = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=50, check=False)
    return run.returncode, run.stdout


def test_they_are_skipped_on_one_line(tmp_path):
    status, told = run_without_java(tmp_path)
    assert status == 0
    assert re.findall("^SKIPPED.*", told, re.MULTILINE) == [
        "SKIPPED [3] tests: there is no Java, 17 or newer: sudo apt-get install -y --no-install-recommends default-jdk-headless"
    ]


def test_they_fail_where_nothing_may_be_missing(tmp_path):
    status, told = run_without_java(tmp_path, "--no-missing-tools")
    assert status == 1
    assert "3 failed" in told
