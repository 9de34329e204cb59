"""The example of docs/sasl.md with TLS, SCRAM and ACLs, from the certificates to the first record."""

import re
import shlex
import subprocess
import sys

import pytest

from benchmarks.ports import free_ports
from tests.broker_process import BrokerProcess, command_environment
from tests.project.documents import DOCS, block_with

PAGE = DOCS / "sasl.md"


@pytest.mark.timeout(120)
def test_the_pages_example_runs_from_the_certificates_to_the_first_record(tmp_path):
    [port] = free_ports(1)
    certs, format_line, serve = block_with(PAGE, "console", "--add-scram-file").splitlines()

    def placed(text):
        return text.replace(":9094", f":{port}")

    def type_in(line):
        words = shlex.split(placed(line).removeprefix("$ "))
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, env=command_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = {
        "server.properties": block_with(PAGE, "properties", "super.users=User:admin\n"),
        "users": block_with(PAGE, "text", "name=alice"),
        "admin.properties": block_with(PAGE, "properties", 'username="admin"'),
    }
    for name, text in files.items():
        # BrokerProcess starts elsewhere.
        (tmp_path / name).write_text(placed(text).replace("certs/", f"{tmp_path}/certs/"))
    type_in(certs)
    type_in(format_line)
    assert serve.endswith("serve --config server.properties --data-dir ./data")
    broker = BrokerProcess(tmp_path / "data", arguments=("--config", str(tmp_path / "server.properties")))
    # The option goes before the file's listeners.
    broker.port = port
    with broker:
        for line in re.sub(r"\\\n\s*", "", block_with(PAGE, "console", "topics create orders")).splitlines():
            type_in(line)
        code = placed(block_with(PAGE, "python", "alice = {"))
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
