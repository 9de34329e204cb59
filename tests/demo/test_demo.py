"""What of the demo is in every run of the tests: who is in its life, and what it says of findings. Whole: ``make demo-test``."""

from demo.__main__ import compare
from demo.life import DURATION_S, PLANTED_HIGH, PLANTED_MEDIUM, script


def test_life_is_well_under_two_minutes():
    assert max(at_s for at_s, *_ in script()) == DURATION_S <= 60


def test_who_leaves_or_is_restarted_is_there_and_who_joins_is_not():
    there = set()
    for _, what, who in script():
        if what == "join":
            assert who not in there
            there.add(who)
        elif what == "leave":
            there.remove(who)
        elif what == "restart":
            assert who in there
    assert len(there) > 8


def test_what_was_planted_and_no_more_is_as_it_should_be():
    assert compare(PLANTED_HIGH, PLANTED_MEDIUM | {("uneven_assignment", "search")}) == []


def test_what_was_missed_and_what_was_not_planted_is_told():
    high = PLANTED_HIGH - {("stuck_partition", "billing")} | {("stuck_partition", "orders")}
    assert compare(high, PLANTED_MEDIUM - {("aborted_share", "refunds")}) == [
        "planted and not found: aborted_share of refunds",
        "planted and not found: stuck_partition of billing",
        "of severity high and not planted: stuck_partition of orders",
    ]
