"""What a machine without Java is told."""

import pytest

from benchmarks.load_tool import MissingTool
from tests.spark.session import require_java


def test_where_java_is_missing_the_line_names_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match=r"there is no Java, 17 or newer: .*apt-get install .*default-jdk-headless"):
        require_java()


def test_where_java_is_too_old_the_line_says_how_old(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingTool, match=r"needs Java 17 or newer, and \S+ is Java 11: .*apt-get install"):
        require_java()
