"""The checked-in message classes are those that Kafka's definitions give, and a type checker knows their fields."""

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from tests.cases import each_case
from tools.generate_messages import generate

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "odradek/protocol"


@pytest.mark.further
@pytest.mark.timeout(600)
def test_what_is_checked_in_is_what_kafkas_definitions_give():
    generated = generate()
    checked_in = {name: (PROTOCOL / name).read_text(encoding="utf-8") for name in generated}
    assert checked_in == generated, "run tools/generate_messages.py"
    assert {path.name for path in PROTOCOL.glob("message_types/*.py")} == {
        name.removeprefix("message_types/") for name in generated if name.startswith("message_types/")
    }


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
