"""The checked-in message classes are those that kio's schemas give, and a type checker knows their fields."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from tests.cases import each_case

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "odradek/protocol/message_types"


@pytest.fixture(scope="module")
def generated():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return import_module("generate_messages").generate()
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_what_is_checked_in_is_what_kios_schemas_give(generated):
    checked_in = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py")}
    assert checked_in == generated, "run tools/generate_messages.py"


@each_case("api_key", ApiKey, ids=lambda api_key: api_key.name)
def test_every_class_has_a_default_for_every_field(api_key):
    for classes in messages(api_key).classes.values():
        for of in classes.values():
            assert set(of._field_defaults) == set(of._fields)


RIGHT = """
from odradek.protocol.message_types.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(services: object, context: object, request: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=0 if request.member_id else 25)
"""
WRONG = [
    ("request.member_id", "request.membr_id", '"HeartbeatRequest" has no attribute "membr_id"'),
    ("error_code=0", "eror_code=0", 'Unexpected keyword argument "eror_code" for "HeartbeatResponse"'),
    ("if request.member_id else 25", 'if request.member_id else "25"', 'expected "int"'),
    ("    return", "    request.member_id = ''\n    return", '"member_id" defined in "HeartbeatRequest" is read-only'),
]


def checked(sources, directory):
    """What mypy says of each file."""
    for name, source in sources.items():
        (directory / name).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(directory / "cache"), *sources]
    told = subprocess.run(command, cwd=directory, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert not told.stderr, told.stderr
    return {name: [line for line in told.stdout.splitlines() if line.startswith(f"{name}:")] for name in sources}


@pytest.mark.timeout(300)
def test_a_wrong_field_in_a_handler_is_an_error_of_the_type_checker(tmp_path):
    pytest.importorskip("mypy")
    sources = {"right.py": RIGHT}
    for number, (right, wrong, _) in enumerate(WRONG):
        assert right in RIGHT
        sources[f"wrong_{number}.py"] = RIGHT.replace(right, wrong)

    told = checked(sources, tmp_path)

    assert told["right.py"] == []
    for number, (_, _, error) in enumerate(WRONG):
        (line,) = told[f"wrong_{number}.py"]
        assert error in line
