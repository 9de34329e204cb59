"""The compiled build: what goes into it, and that a module compiled is the module."""

import subprocess
import sys

import pytest

from tests.broker_process import REPOSITORY
from tests.needed import needed_c_compiler
from tests.project.test_tools import tool

hook = tool("build_hook")
mend_generated = tool("mend_generated")

WALKS = """
from collections.abc import Iterator

def walk(items: list[object]) -> Iterator[object]:
    last = items.pop()
    yield "first"
    yield last
"""
# A destructor runs while a generator is freed, and begins another one of the same function.
BEGUN_BY_ONE_THAT_IS_FREED = """
from odradek.timing.walks import walk

begun = []

class Beginning:
    def __del__(self):
        begun.append(walk(["last"]))
        next(begun[0])

freed = walk([Beginning(), "not used"])
next(freed)
del freed
print(next(begun[0]))
"""


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
    assert "odradek/storage/log/log.py" in modules
    assert "odradek/coordinator/group/classic/join.py" in modules
    assert not [name for name in modules if "cleaner" in name or "recovery" in name or "log_loader" in name or "pipeline" in name]


def test_nothing_is_done_unless_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("ODRADEK_COMPILE", raising=False)
    build_data = {"force_include": {}}
    a_hook = hook.CustomBuildHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    assert a_hook.dependencies() == []
    a_hook.initialize("standard", build_data)
    assert build_data == {"force_include": {}}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Run a script on a build of two small modules."""
    needed_c_compiler()
    folder = tmp_path_factory.mktemp("compiled")
    package = folder / "project" / "odradek" / "timing"
    package.mkdir(parents=True)
    for path in (package.parent, package):
        (path / "__init__.py").touch()
    (package / "sums.py").write_text("def sum_up(numbers: list[int]) -> int:\n    return sum(number for number in numbers)\n")
    (package / "walks.py").write_text(WALKS)
    built = folder / "built"
    extensions = hook.compile_modules(package.parent.parent, built, "0")
    names = {path.relative_to(built).as_posix().split(".")[0] for path in extensions}
    assert names == {"odradek/timing/sums", "odradek/timing/walks", "odradek__mypyc"}
    for path in (built / "odradek", built / "odradek" / "timing"):
        (path / "__init__.py").touch()

    def run(script):
        program = f"import sys; sys.path.insert(0, {str(built)!r})\n{script}"
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.mark.further
@pytest.mark.timeout(240)
def test_a_module_compiled_does_what_its_source_does(compiled):
    ran = compiled("from odradek.timing.sums import *; print(sum_up([1, 2])); sum_up(3)")
    assert (ran.returncode, ran.stdout) == (1, "3\n")
    assert "TypeError: list object expected; got int" in ran.stderr


@pytest.mark.further
@pytest.mark.timeout(240)
def test_a_generator_that_begins_while_another_is_freed_keeps_its_variables(compiled):
    ran = compiled(BEGUN_BY_ONE_THAT_IS_FREED)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "last\n", "")


def test_generated_code_of_an_unknown_form_is_not_taken():
    known = "if (a_free_instance == NULL) {\na_free_instance = self;\nPy_CLEAR(self->x);\nreturn;\n}\n"
    assert mend_generated.clear_before_reuse(known) == (
        "if (a_free_instance == NULL) {\nPy_CLEAR(self->x);\n"
        "if (a_free_instance == NULL) {\na_free_instance = self;\nreturn;\n}\n}\n"
    )
    with pytest.raises(ValueError, match="not known"):
        mend_generated.clear_before_reuse(known.replace(" == NULL", " == 0"))
