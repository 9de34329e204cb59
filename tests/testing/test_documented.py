"""The examples of docs/testing.md and docs/ci.md, run as their reader would."""

import subprocess
import sys

from tests.broker_process import command_environment
from tests.project.documents import DOCS, code_blocks


def test_the_examples_of_the_testing_page_pass(tmp_path):
    document = DOCS / "testing.md"
    examples = code_blocks(document, "python")
    tests = 0
    for number, example in enumerate(examples):
        # A script runs when pytest imports it.
        test = "" if "def test_" in example else "\n\ndef test_it_ran():\n    pass\n"
        tests += (example + test).count("def test_")
        (tmp_path / f"test_{number}.py").write_text(example + test)
    [ini] = code_blocks(document, "ini")
    (tmp_path / "pytest.ini").write_text(ini)
    plugins = ["-p", "odradek.testing.pytest_plugin", "-p", "pytest_asyncio.plugin"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, f"--basetemp={tmp_path}/pytest"]
    environment = command_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False, env=environment)
    assert f"\n{tests} passed" in done.stdout, done.stdout + done.stderr


def test_the_unittest_example_of_the_ci_page_passes(tmp_path):
    [example] = code_blocks(DOCS / "ci.md", "python")
    (tmp_path / "test_orders.py").write_text(example)
    command = [sys.executable, "-m", "unittest", "discover", "--start-directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=command_environment())
    assert "Ran 1 test in " in done.stderr
    assert done.stderr.endswith("OK\n")
