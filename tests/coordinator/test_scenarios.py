"""Answers of coordinators, beside those in scenario files."""

from pathlib import Path

import pytest

from tests.coordinator.group.consumer_scenario import ConsumerScenario
from tests.coordinator.group.migration_scenario import MigrationScenario
from tests.coordinator.group.scenario import Scenario as GroupScenario
from tests.coordinator.scenario_files import check
from tests.coordinator.transaction.scenario import Scenario as TransactionScenario

_KINDS = {
    "group/scenarios": GroupScenario,
    "group/consumer_scenarios": ConsumerScenario,
    "group/migration_scenarios": MigrationScenario,
    "transaction/scenarios": TransactionScenario,
}
_FILES = {kind: sorted((Path(__file__).parent / folder).glob("*.txt")) for folder, kind in _KINDS.items()}


_EACH = [pytest.param(kind, path, id=f"{path.parent.name} {path.stem}") for kind, paths in _FILES.items() for path in paths]


@pytest.mark.parametrize(("kind", "path"), _EACH)
def test_a_scenario_gives_what_its_file_says(kind, path, request):
    check(path, kind().run, request.config)


def test_there_are_scenarios():
    assert [len(paths) > least for paths, least in zip(_FILES.values(), (10, 3, 1, 10), strict=True)] == [True] * 4
