"""Members of different makes in one group, which share the work where they have an assignor in common."""

from itertools import combinations

import pytest

from tests.clients.groups.behaviour import RECORDS, SHORT_SESSION_MS
from tests.clients.groups.members import MAKES


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize("makes", list(combinations(MAKES, 2)), ids=" and ".join)
def test_two_makes_share_the_partitions_and_process_every_record_once(group, makes, assignor):
    for make in makes:
        group.member(make, make, assignor=assignor)
    group.settle(*makes)
    group.fill(RECORDS)
    group.wait_until_processed()
    assert sorted(len(held.partitions) for held in group.journal.holdings.values()) == [2, 2]
    assert group.journal.repeated() == {}


@pytest.mark.parametrize("leaver", MAKES)
def test_any_make_takes_over_from_any_other(group, leaver):
    """Whoever leads: the leader of a group is the member that came first."""
    leaving = group.member(leaver, leaver)
    group.settle(leaver)
    others = [make for make in MAKES if make != leaver]
    for make in others:
        group.member(make, make)
    group.settle(leaver, *others)
    leaving.stop()
    group.fill(RECORDS)
    group.settle(*others)


def test_a_killed_leader_of_another_make_is_replaced(group):
    killed = group.process("aiokafka", "killed", session_timeout_ms=SHORT_SESSION_MS)
    group.settle("killed")
    group.member("kafka-python", "python")
    group.member("librdkafka", "rdkafka")
    group.settle("killed", "python", "rdkafka")
    killed.kill9()
    group.fill(RECORDS)
    group.settle("python", "rdkafka")


def test_a_mixed_group_goes_on_as_it_was_over_a_kill_of_the_broker(mortal_group):
    group = mortal_group
    for make in MAKES:
        group.member(make, make)
    group.settle(*MAKES)
    generation = group.generation()
    group.broker.kill9()
    group.broker.start()
    group.fill(RECORDS)
    group.wait_until_processed()
    assert group.generation() == generation


def test_a_member_without_an_assignor_in_common_is_turned_away_and_the_others_go_on(group):
    group.member("librdkafka", "ranging", assignor="range")
    group.settle("ranging")
    group.journal.expected_failures = {"sticky"}
    group.member("kafka-python", "sticky", assignor="sticky")
    group.journal.wait_for(lambda: "sticky" in group.journal.ended, "the stranger is turned away")
    assert "InconsistentGroupProtocol" in group.journal.failures["sticky"]
    generation = group.generation()
    group.fill(RECORDS)
    group.wait_until_processed()
    assert group.generation() == generation
