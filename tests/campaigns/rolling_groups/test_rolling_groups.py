"""Short forms of the campaign, and that it finds a lost record, a doubled one and a partition of two owners."""

import pytest

from tests.campaigns.rolling_groups.faults import SEEDED
from tests.campaigns.rolling_groups.members import COOPERATIVE, Books, classic
from tests.campaigns.rolling_groups.rolling import SETTINGS, Rolling, there_and_back

MEMBERS, PARTITIONS = 3, 6


@pytest.mark.parametrize("strategy", ["range", COOPERATIVE])
def test_a_group_rolls_over_and_back_and_every_record_is_processed_once(broker_process, strategy):
    with Rolling(broker_process(settings=SETTINGS).address, PARTITIONS) as rolling:
        assert there_and_back(rolling, MEMBERS, classic(strategy)) == []
        assert rolling.replaced == 2 * MEMBERS
        assert rolling.written > 4 * MEMBERS


@pytest.mark.interpreted
@pytest.mark.parametrize("name", SEEDED)
def test_a_fault_is_found(tmp_path, name):
    fault = SEEDED[name]
    with (
        fault.broker(tmp_path / "data", settings=SETTINGS) as broker,
        Rolling(broker.address, PARTITIONS, fault.make_member) as rolling,
    ):
        found = there_and_back(rolling, MEMBERS, classic("range"))
    assert [violation for violation in found if fault.complaint in violation]


@pytest.fixture
def books():
    books = Books()
    books.assigned("a", [0, 1])
    books.processed.update([0, 1])
    return books


def test_partitions_that_are_given_up_before_another_has_them_are_in_order(books):
    books.given_up("a", [0])
    books.assigned("b", [0])
    books.assigned("a", [1])
    assert books.violations(2) == []


@pytest.mark.parametrize(
    ("processed", "assigned", "violation"),
    [
        ([], [], "record 2 is lost"),
        ([2, 1], [], "record 1 is doubled"),
        ([2], [1], "partition 1 is b's, and a has not given it up"),
    ],
)
def test_what_must_not_be_is_told(books, processed, assigned, violation):
    books.processed.update(processed)
    books.assigned("b", assigned)
    assert books.violations(3) == [violation]
