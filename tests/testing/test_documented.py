"""The examples of docs/testing.md, run as their reader would."""

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
    command = [sys.executable, "-m", "pytest", "-q", "-p", "odradek.testing.pytest_plugin", f"--basetemp={tmp_path}/pytest"]
    environment = command_environment() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False, env=environment)
    assert f"\n{tests} passed" in done.stdout, done.stdout + done.stderr
