"""What docs/telemetry.md shows is so."""

import pytest

from odradek.broker.config.table_group import CLIENT_METRICS_DEFINITIONS
from tests.project.documents import DOCS, code_blocks, table

PAGE = DOCS / "telemetry.md"


@pytest.mark.parametrize("source", code_blocks(PAGE, "python"))
def test_an_example_passes(source):
    scope = {}
    exec(compile(source, PAGE, "exec"), scope)
    tests = [each for name, each in scope.items() if name.startswith("test_")]
    assert tests
    for each in tests:
        each()


def test_the_configs_are_those_that_there_are():
    told = [row["config"].strip("`") for row in table(PAGE, "config", "default", "what it says")]
    assert told == [row.name for row in CLIENT_METRICS_DEFINITIONS]
