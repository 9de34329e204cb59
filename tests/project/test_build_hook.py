"""The compiled build: what goes into it, and that a module compiled is the module."""

import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.project.test_tools import tool

hook = tool("build_hook")


def test_every_module_named_is_there():
    missing = [
        f"{folder}/{name}.py"
        for folder, names in hook.COMPILED.items()
        for name in names.split()
        if not list(REPOSITORY.glob(f"{folder}/{name}.py"))
    ]
    assert missing == []


def test_what_runs_in_threads_is_not_compiled():
    modules = hook.compiled_modules(REPOSITORY)
    assert "odradek/storage/log.py" in modules
    assert "odradek/coordinator/group/classic/join.py" in modules
    assert not [name for name in modules if "cleaner" in name or "recovery" in name or "log_loader" in name or "pipeline" in name]


def test_nothing_is_done_unless_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("ODRADEK_COMPILE", raising=False)
    build_data = {"force_include": {}}
    a_hook = hook.CustomBuildHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    assert a_hook.dependencies() == []
    a_hook.initialize("standard", build_data)
    assert build_data == {"force_include": {}}


@pytest.mark.timeout(240)
def test_a_module_compiled_does_what_its_source_does(tmp_path):
    package = tmp_path / "project" / "odradek" / "timing"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "sums.py").write_text("def sum_up(numbers: list[int]) -> int:\n    return sum(number for number in numbers)\n")
    built = tmp_path / "built"
    extensions = hook.compile_modules(package.parent.parent, built, "0")
    assert {path.relative_to(built).as_posix().split(".")[0] for path in extensions} == {"odradek/timing/sums", "odradek__mypyc"}
    for folder in (built / "odradek", built / "odradek" / "timing"):
        (folder / "__init__.py").touch()
    script = (
        f"import sys; sys.path.insert(0, {str(built)!r}); from odradek.timing.sums import *; print(sum_up([1, 2])); sum_up(3)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (1, "3\n")
    assert "TypeError: list object expected; got int" in ran.stderr
