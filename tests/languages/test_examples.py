"""The examples in other languages, each with its own tools."""

import shutil
import subprocess
import sys

import pytest

from benchmarks.load_tool import MissingTool
from tests.broker_process import REPOSITORY, command_environment
from tests.needed import needed

EXAMPLES = REPOSITORY / "examples"
# How each gets what it needs, and how it is run.
FETCHES = {
    "go": ["go", "mod", "download"],
    "typescript": ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"],
    "java": ["mvn", "--batch-mode", "--quiet", "dependency:go-offline"],
}
# The command that generates a client from examples/openapi.json, if the run does not do it.
GENERATES = {"go": ["go", "generate", "./..."]}
RUNS = {
    "go": ["go", "test", "./..."],
    "typescript": ["npm", "test"],
    "java": ["mvn", "--batch-mode", "--no-transfer-progress", "test"],
}
# Of what the tools write, that tests have run, and how many.
RAN = {"go": "ok  \todradek/examples/go", "typescript": "# pass 2\n", "java": "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", RUNS)
def test_an_example_passes(language, tmp_path):
    needed(RUNS[language][0])
    project = tmp_path / language
    shutil.copytree(EXAMPLES / language, project)
    shutil.copy(EXAMPLES / "openapi.json", tmp_path)
    # Go compiles franz-go once for all tests that build with the same flags: go_program.py.
    environment = command_environment() | {"ODRADEK": f"{sys.executable} -m odradek", "GOFLAGS": "-trimpath"}

    def run(command):
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)

    # A registry may fail once.
    fetched = run(FETCHES[language])
    if fetched.returncode:
        fetched = run(FETCHES[language])
    if fetched.returncode:
        reason = f"the example's packages cannot be had: {' '.join(fetched.stderr.split())[-500:]}"
        raise MissingTool(reason)
    generated = run(GENERATES.get(language, ["true"]))
    assert generated.returncode == 0, generated.stdout + generated.stderr
    done = run(RUNS[language])
    assert done.returncode == 0, done.stdout + done.stderr
    assert RAN[language] in done.stdout
