"""The checks find what they are there to find, and set-up names what it misses."""

import importlib.util
import shutil
import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.cases import each_case


def tool(name):
    """A script under tools/, as a module."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function(lines):
    return "def f():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        (function(60), 0, ""),
        (function(61), 0, "note: {path}:1 f: 61 of 70 lines"),
        (function(71), 1, "too long: {path}:1 f: 71 lines, 70 at most"),
        ("async " + function(71), 1, "too long: {path}:1 f: 71 lines, 70 at most"),
        ("class C:\n    def g(self):\n" + "        pass\n" * 70, 1, "too long: {path}:2 g: 71 lines, 70 at most"),
        ("x = 1\n" * 450, 0, ""),
        ("x = 1\n" * 451, 0, "note: {path}: 451 of 500 lines"),
        ("x = 1\n" * 501, 1, "too long: {path}: 501 lines, 500 at most"),
    ],
)
def test_what_is_too_long_fails_and_what_is_nearly_so_is_noted(tmp_path, capsys, source, status, says):
    path = tmp_path / "module.py"
    path.write_text(source)
    assert tool("check_lengths").main([str(tmp_path)]) == status
    assert capsys.readouterr().out.strip() == says.format(path=path)


@pytest.mark.parametrize(
    "source",
    [
        "import time\n",
        "import os, time as t\n",
        "from time import monotonic\n",
        "from datetime import datetime\nx = datetime.now()\n",
        "import datetime\nx = datetime.datetime.now(datetime.UTC)\n",
        "from datetime import date\nx = date.today()\n",
        "def f(loop):\n    return loop.time()\n",
    ],
)
def test_a_reading_of_the_clock_fails_outside_the_timing_room_and_not_in_it(tmp_path, capsys, source):
    for room in ("timing", "broker"):
        (tmp_path / room).mkdir()
    (tmp_path / "timing" / "clock.py").write_text(source)
    check = tool("check_wall_clock")
    assert check.main(str(tmp_path)) == 0
    (tmp_path / "broker" / "server.py").write_text(source)
    assert check.main(str(tmp_path)) == 1
    assert "broker/server.py" in capsys.readouterr().out


def test_time_that_is_told_is_no_reading_of_the_clock(tmp_path):
    (tmp_path / "module.py").write_text("from datetime import timedelta\nx = clock.now_ms()\ny = at.time(3)\n")
    assert tool("check_wall_clock").main(str(tmp_path)) == 0


@pytest.mark.parametrize(
    ("comment", "status"),
    [("# True if it is so.", 0), ("# If it is so.", 0), ("# Whether it is so.", 1), ("# The thing\n# whether so, or\n# How.", 0)],
)
def test_a_comment_that_begins_with_a_clause_is_found(tmp_path, comment, status):
    (tmp_path / "module.py").write_text(f"{comment}\nx = 1\n")
    assert tool("check_prose").main(str(tmp_path), []) == status


@pytest.mark.parametrize(
    ("docstring", "document", "status"),
    [
        ("Return the offset.", "A sentence. " + "Another one, with `a name that counts as one word`. " * 40, 0),
        ("Whether it is so.", "", 1),
        ("Part of FileSystem.", "", 1),
        ("", "word " * 36, 1),
        ("", "```\n" + "word " * 36 + "\n```\n\n| " + "word " * 36 + "|\n", 0),
        ("", "- " + "word " * 20 + "\n- " + "word " * 20, 0),
        ("", "- " + "word " * 20 + "\n  " + "word " * 20, 1),
    ],
)
def test_prose_that_has_to_be_decoded_is_found(tmp_path, docstring, document, status):
    (tmp_path / "module.py").write_text(f'def f():\n    """{docstring}"""\n' if docstring else "")
    page = tmp_path / "page.md"
    page.write_text(document)
    assert tool("check_prose").main(str(tmp_path), [str(page)]) == status


@pytest.fixture
def machine(tmp_path):
    """A machine with a made-up path: put commands on it, then bootstrap there; (exit status, stderr)."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("bash", "cp", "dirname", "env", "head", "mkdir", "rm", "sed"):
        (path / name).symlink_to(shutil.which(name))

    class Machine:
        venv = tmp_path / "venv"

        def has(self, name, script):
            command = path / name
            command.write_text(f"#!/bin/sh\n{script}\n")
            command.chmod(0o755)

        def bootstrap(self, *arguments):
            command = [str(REPOSITORY / "tools" / "bootstrap.sh"), str(self.venv), *arguments]
            environment = {"PATH": str(path), "HOME": str(tmp_path)}
            process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=50, check=False)
            return process.returncode, process.stderr

    machine = Machine()
    machine.has("id", "echo 1000")
    return machine


# A Python that is as new as it should be, or misses its venv module, and installs nothing.
WHOLE_PYTHON = f"""
case "$*" in
    *pip*) exit 0 ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *) exec {sys.executable} "$@" ;;
esac"""
PYTHON_WITHOUT_VENV = f"""
case "$*" in
    *ensurepip*) exit 1 ;;
    *) exec {sys.executable} "$@" ;;
esac"""


def java(version):
    return f"""echo 'openjdk version "{version}" 2024-01-16' >&2"""


def test_a_missing_python_is_named_with_the_command_that_installs_it(machine):
    status, stderr = machine.bootstrap()
    assert status != 0
    assert "Python 3.11 or newer is missing" in stderr
    assert "apt-get install -y --no-install-recommends python3 python3-venv" in stderr


def test_a_missing_venv_module_is_named_with_the_command_that_installs_it(machine):
    machine.has("python3", PYTHON_WITHOUT_VENV)
    status, stderr = machine.bootstrap()
    assert status != 0
    assert "Python's venv module is missing" in stderr
    assert f"python{sys.version_info.major}.{sys.version_info.minor}-venv" in stderr


@each_case("version", ["1.8.0_392", "11.0.21", "17.0.15", "21", "24.0.1"])
def test_a_jdk_is_installed_where_java_is_older_than_17(machine, version):
    machine.has("id", "echo 0")
    machine.has("apt-get", 'case "$*" in *install*default-jdk-headless*) echo called >&2 ;; esac')
    machine.has("python3", WHOLE_PYTHON)
    machine.has("java", java(version))
    machine.has("javac", "")
    status, stderr = machine.bootstrap("test", "--optional", "--install-missing")
    assert (status, "called" in stderr) == (0, version in {"1.8.0_392", "11.0.21"})


def test_for_root_on_debian_python_is_installed_when_asked_to(machine):
    installed = machine.venv.with_name("bin") / "python3"
    machine.has("python3.packaged", WHOLE_PYTHON)
    machine.has("id", "echo 0")
    machine.has("apt-get", f'case "$*" in *install*python3-venv*) cp {installed}.packaged {installed} ;; esac')
    status, stderr = machine.bootstrap("test", "--install-missing")
    assert status == 0
    assert "installing it" in stderr


def test_nothing_is_installed_for_root_unasked(machine):
    machine.has("id", "echo 0")
    machine.has("apt-get", "echo called >&2")
    status, stderr = machine.bootstrap("test", "--optional")
    assert status != 0
    assert "called" not in stderr


@pytest.mark.parametrize("package", ["chromium", "debootstrap", "default-jdk-headless"])
@pytest.mark.parametrize(("uid", "calls"), [(0, True), (1000, False)])
def test_what_few_tests_need_is_installed_where_that_can_be_and_done_without_where_it_cannot(machine, uid, calls, package):
    machine.has("id", f"echo {uid}")
    machine.has("apt-get", f'case "$*" in *install*{package}*) echo called >&2; exit 100 ;; esac')
    machine.has("python3", WHOLE_PYTHON)
    status, stderr = machine.bootstrap("test", "--optional", "--install-missing")
    assert (status, "called" in stderr, "will be skipped" in stderr) == (0, calls, calls)


@pytest.mark.parametrize(
    ("sources", "circle"),
    [
        ({"a": "from p import b", "b": "from p import c", "c": ""}, None),
        ({"a": "from p.b import x", "b": "from p.c import x", "c": "import p.a"}, "p.a, p.b, p.c"),
        ({"a": "def f():\n    from p import b", "b": "from p import a"}, "p.a, p.b"),
        ({"a": "if TYPE_CHECKING:\n    from p.b import B", "b": "from p.a import A"}, "p.a, p.b"),
        ({"__init__": "from p import a", "a": "from p import b", "b": ""}, None),
    ],
)
def test_modules_that_import_each_other_are_named(tmp_path, capsys, sources, circle):
    package = tmp_path / "p"
    package.mkdir()
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    assert tool("check_circles").main([str(package)]) == (circle is not None)
    assert capsys.readouterr().out.strip() == ("" if circle is None else f"import circle: {circle}")
