from __future__ import annotations

import os
from pathlib import Path

import pytest

from .scenario import run

_SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", _SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_gives_what_its_file_says(path):
    expected = path.read_text(encoding="utf-8")
    actual = run(expected)
    if os.environ.get("UPDATE_SCENARIOS") and actual != expected:
        path.write_text(actual, encoding="utf-8")
        expected = actual
    assert actual == expected


def test_there_are_scenarios():
    assert len(_SCENARIOS) > 10
