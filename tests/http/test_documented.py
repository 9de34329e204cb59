"""The examples of docs/control.md and docs/ci.md, run by a shell as their reader would."""

import json
import os
import re
import subprocess
import sys

import yaml

from benchmarks.ports import free_ports
from tests.broker_process import command_environment
from tests.needed import needed
from tests.project.documents import DOCS, code_blocks

_ENDS = """
trap 'kill $!' EXIT
"""


def test_the_examples_of_the_control_page_run():
    needed("curl")
    examples = code_blocks(DOCS / "control.md", "bash")
    script = _ENDS.join([examples[0], "\n".join(examples[1:])])
    for named, port in zip(("9092", "8080"), free_ports(2), strict=True):
        script = script.replace(named, str(port))
    script = script.replace("odradek serve", f"{sys.executable} -m odradek serve")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, check=False, env=_environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {json.loads(line)["level"] for line in done.stderr.splitlines()} == {"info"}
    # An answer for each request.
    assert done.stdout.count("\n{") >= script.count("\nask ")


def test_the_broker_of_the_ci_pages_job_gets_ready(tmp_path):
    needed("curl")
    job = yaml.safe_load(code_blocks(DOCS / "ci.md", "yaml")[1])["jobs"]["other"]
    steps = [step["run"] for step in job["steps"] if re.match("odradek|curl", step.get("run", ""))]
    assert len(steps) == 2
    script = _ENDS.join([steps[0], steps[1]]).replace("odradek serve", f"{sys.executable} -m odradek serve")
    for named, port in zip(("9092", "8080"), free_ports(2), strict=True):
        script = script.replace(named, str(port))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=_environment() | job["env"],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)


def _environment():
    return command_environment() | {"PATH": os.environ["PATH"]}
