from pathlib import Path

import pytest

from tests.coordinator.group.consumer_scenario import ConsumerScenario
from tests.coordinator.group.migration_scenario import MigrationScenario
from tests.coordinator.scenario_files import check

_SCENARIOS = sorted((Path(__file__).parent / "consumer_scenarios").glob("*.txt"))
_MIGRATIONS = sorted((Path(__file__).parent / "migration_scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", _SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_of_a_consumer_group_gives_what_its_file_says(path, request):
    check(path, ConsumerScenario().run, request.config)


@pytest.mark.parametrize("path", _MIGRATIONS, ids=lambda path: path.stem)
def test_a_scenario_of_a_group_that_changes_its_protocol_gives_what_its_file_says(path, request):
    check(path, MigrationScenario().run, request.config)


def test_there_are_scenarios_of_consumer_groups():
    assert len(_SCENARIOS) > 3
    assert len(_MIGRATIONS) > 1
