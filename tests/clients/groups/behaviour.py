"""What any client library's group members do, whatever the library: test modules inherit it and say which make it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

SHORT_SESSION_MS = 1_500
RECORDS = 25


class GroupBehaviour:
    """Inherit and set ``make``, and what the library has of assignors and of ways to commit."""

    make: str
    assignors: tuple[str, ...]
    commits: tuple[str, ...] = ("sync", "async", "auto")

    def test_members_share_the_partitions_and_process_every_record_once(self, group, assignor):
        for name in "ab":
            group.member(self.make, name, assignor=assignor)
        group.settle("a", "b")
        group.fill(RECORDS)
        group.wait_until_processed()
        assert sorted(len(held.partitions) for held in group.journal.holdings.values()) == [2, 2]
        assert group.journal.repeated() == {}

    def test_partitions_move_to_a_member_that_comes_and_back_from_one_that_leaves(self, group, assignor):
        group.member(self.make, "a", assignor=assignor)
        group.settle("a")
        b = group.member(self.make, "b", assignor=assignor)
        group.fill(RECORDS)
        group.settle("a", "b")
        b.stop()
        group.fill(RECORDS)
        group.settle("a")
        assert group.journal.grants["b"] > 0

    def test_a_group_resumes_from_what_it_committed(self, group, commit):
        group.fill(RECORDS)
        first = group.member(self.make, "first", commit=commit)
        group.journal.wait_for(lambda: group.journal.missing(group.ends) == {}, "all processed")
        group.wait_until_committed({(group.topic, partition): RECORDS for partition in range(4)})
        first.stop()
        group.fill(RECORDS)
        group.member(self.make, "second", commit=commit)
        group.journal.wait_for(lambda: group.journal.missing(group.ends) == {}, "the rest processed")
        assert group.journal.processed_by == {"first": 4 * RECORDS, "second": 4 * RECORDS}

    def test_what_a_killed_member_had_goes_to_the_others_when_its_session_ends(self, group):
        group.member(self.make, "stays")
        killed = group.process(self.make, "killed", session_timeout_ms=SHORT_SESSION_MS)
        group.settle("stays", "killed")
        killed.kill9()
        group.fill(RECORDS)
        group.settle("stays")
        assert "session_expired" in group.causes()

    def test_a_member_that_was_frozen_over_its_sessions_end_comes_back_as_a_new_one(self, group):
        group.member(self.make, "stays")
        frozen = group.process(self.make, "frozen", session_timeout_ms=SHORT_SESSION_MS)
        group.settle("stays", "frozen")
        former_id = group.journal.member_id("frozen")
        frozen.freeze()
        group.observer.wait_until_members(group.group_id, 1)
        group.fill(RECORDS)
        frozen.thaw()
        group.wait_until_member_id_is_not("frozen", former_id)
        group.settle("stays", "frozen")

    def test_a_member_that_stalls_past_its_poll_interval_leaves_and_comes_back(self, group):
        group.member(self.make, "stays")
        stalls = group.member(self.make, "stalls", session_timeout_ms=SHORT_SESSION_MS, max_poll_interval_ms=SHORT_SESSION_MS)
        group.settle("stays", "stalls")
        stalls.stall()
        group.observer.wait_until_members(group.group_id, 1)
        group.fill(RECORDS)
        group.wait_until_processed_by("stays")
        stalls.resume()
        group.settle("stays", "stalls")
        assert "session_expired" not in group.causes()

    def test_a_static_member_that_bounces_has_its_partitions_back_without_a_rebalance(self, group):
        group.member(self.make, "a", instance_id="static-a")
        bouncing = group.member(self.make, "b", instance_id="static-b")
        group.settle("a", "b")
        generation, before = group.generation(), group.journal.holdings["b"]
        bouncing.stop()
        group.fill(RECORDS)
        group.member(self.make, "b", instance_id="static-b")
        group.wait_until_processed()
        after = group.journal.holdings["b"]
        assert (after.generation, after.partitions) == (before.generation, before.partitions)
        assert after.member_id != before.member_id
        assert group.generation() == generation

    def test_members_go_on_as_they_were_over_a_kill_of_the_broker(self, mortal_group):
        group = mortal_group
        for name in "ab":
            group.member(self.make, name)
        group.settle("a", "b")
        generation = group.generation()
        members = group.observer.member_ids(group.group_id)
        group.broker.kill9()
        group.broker.start()
        group.fill(RECORDS)
        group.wait_until_processed()
        assert group.observer.member_ids(group.group_id) == members
        assert group.generation() == generation

    def test_a_rebalance_that_a_kill_of_the_broker_interrupts_is_gone_through_again(self, mortal_group):
        group = mortal_group
        slow = group.member(self.make, "slow")
        group.member(self.make, "quick")
        group.settle("slow", "quick")
        members = group.observer.member_ids(group.group_id)
        slow.stall()
        group.member(self.make, "new")
        group.observer.wait_until_state(group.group_id, "PreparingRebalance")
        group.broker.kill9()
        group.broker.start()
        slow.resume()
        group.fill(RECORDS)
        group.settle("slow", "quick", "new")
        assert members < group.observer.member_ids(group.group_id)
        assert "session_expired" not in group.causes()


class FencedBehaviour:
    """Of libraries that say their instance id in every request."""

    make: str

    def test_the_former_holder_of_an_instance_id_is_fenced(self, group):
        group.member(self.make, "former", instance_id="static")
        group.settle("former")
        group.journal.assignments.clear()
        group.journal.expected_failures = {"former"}
        group.member(self.make, "present", instance_id="static")
        group.journal.wait_for(lambda: "present" in group.journal.holdings, "the present holder has an assignment")
        # kafka-python says that it is fenced when it has something to commit.
        group.fill(1)
        group.journal.wait_for(lambda: "former" in group.journal.ended, "the former holder is fenced")
        group.settle("present")
        assert "fenced" in group.journal.failures["former"].lower()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each way that the make has: modules import this hook beside the class."""
    for fixture, values in (("assignor", "assignors"), ("commit", "commits")):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, getattr(metafunc.cls, values))
