"""What a machine without Java is told."""

import pytest

from tests.spark.session import require_java


def test_where_java_is_missing_the_failure_names_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=r"java does not run.*apt-get install .*default-jre-headless"):
        require_java()


def test_where_java_is_too_old_the_failure_says_how_old(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=r"is Java 11\. On Debian or Ubuntu install it with"):
        require_java()
