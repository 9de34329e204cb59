"""Who leads a partition after a change, who is in sync, and who is eligible: a change of a partition by itself."""

from uuid import UUID

import pytest

from odradek.controller.cluster.partition_changes import RECOVERED, RECOVERING, Election, PartitionChange
from odradek.protocol.metadata_records import PartitionRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord

TOPIC_ID = UUID(int=5)
PLACES = {broker: UUID(int=1000 + broker) for broker in range(1, 6)}


def partition(**what):
    made = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 4, "partition_epoch": 7} | what
    directories = tuple(PLACES[each] for each in made["replicas"])
    return PartitionRecord(**{"partition_id": 0, "topic_id": TOPIC_ID, "directories": directories} | made)


def change(of, *, alive=(1, 2, 3, 4, 5), min_isr=1, has_elr=True, **what):
    """The record of a change of ``of``; only ``alive`` brokers can lead."""
    made = PartitionChange(
        of, is_acceptable=alive.__contains__, default_directory=PLACES.__getitem__, min_isr=min_isr, has_elr=has_elr
    )
    for name, value in what.items():
        setattr(made, name, value)
    return made.record()


def record(**what):
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **what)


def test_nothing_changes_where_nothing_is_to():
    assert change(partition()) is None


def test_a_leader_stays_while_it_is_in_sync_and_no_epoch_rises():
    assert change(partition(leader=2), isr=(1, 2)) == record(isr=(1, 2))


def test_the_first_replica_that_is_in_sync_and_alive_is_elected():
    assert change(partition(isr=(1, 3, 2)), isr=(3, 2), alive=(2, 3)) == record(isr=(3, 2), leader=2)
    assert change(partition(), isr=(2, 3), alive=(3,)) == record(isr=(2, 3), leader=3)


def test_the_preferred_replica_is_elected_over_a_leader_that_could_stay():
    assert change(partition(leader=2), election=Election.PREFERRED) == record(leader=1)
    assert change(partition(leader=2), election=Election.PREFERRED, alive=(2, 3)) is None
    assert change(partition(leader=2), election=Election.PREFERRED, alive=(3,)) == record(leader=3)


def test_without_eligible_replicas_the_last_one_in_sync_is_kept():
    last = partition(isr=(1,))
    assert change(last, isr=(), alive=(2, 3), has_elr=False) == record(leader=-1)
    assert change(partition(isr=(1,), leader=-1), alive=(1, 2), has_elr=False) == record(leader=1)


def test_who_leaves_while_too_few_are_in_sync_stays_eligible():
    assert change(partition(), isr=(1, 2), min_isr=2) == record(isr=(1, 2))
    assert change(partition(), isr=(1,), min_isr=2) == record(isr=(1,), eligible_leader_replicas=(2, 3))


def test_no_replica_is_eligible_when_enough_are_in_sync_again():
    before = partition(isr=(1,), eligible_leader_replicas=(2, 3))
    assert change(before, isr=(1, 2), min_isr=2) == record(isr=(1, 2), eligible_leader_replicas=())
    assert change(before, isr=(1, 2), min_isr=3) == record(isr=(1, 2), eligible_leader_replicas=(3,))


def test_an_eligible_replica_leads_alone_where_nobody_is_in_sync():
    before = partition(isr=(), leader=-1, eligible_leader_replicas=(2, 3), last_known_elr=(1,))
    elected = change(before, alive=(3,), min_isr=2)
    assert elected == record(isr=(3,), leader=3, eligible_leader_replicas=(2,), last_known_elr=())


def test_the_last_leader_is_noted_when_there_is_none():
    before = partition(isr=(1,), eligible_leader_replicas=(2,))
    assert change(before, isr=(), alive=(), min_isr=2) == record(
        isr=(), leader=-1, eligible_leader_replicas=(1, 2), last_known_elr=(1,)
    )


def test_the_last_known_leader_leads_where_nobody_is_eligible_and_may_lack_records():
    before = partition(isr=(), leader=-1, last_known_elr=(2,))
    assert change(before, alive=(1, 3)) is None
    assert change(before, alive=(1, 2)) == record(isr=(2,), leader=2, leader_recovery_state=RECOVERING, last_known_elr=())
    without = partition(isr=(), leader=-1, last_known_elr=(2,))
    assert change(without, alive=(1, 2), has_elr=False) is None


def test_who_has_shut_down_uncleanly_is_not_eligible():
    assert change(partition(isr=(1, 2)), isr=(1,), unclean_brokers=(2,), min_isr=2) == record(isr=(1,))


@pytest.mark.parametrize("election", [Election.ONLINE, Election.PREFERRED])
def test_a_replica_that_is_not_in_sync_is_not_elected(election):
    assert change(partition(isr=(1,)), isr=(), alive=(2,), has_elr=False, election=election) == record(leader=-1)


def test_an_unclean_election_takes_any_replica_that_is_alive_if_none_is_in_sync():
    elected = change(partition(isr=(1,)), isr=(), alive=(2, 3), has_elr=False, election=Election.UNCLEAN)
    assert elected == record(isr=(2,), leader=2, leader_recovery_state=RECOVERING)
    clean = change(partition(isr=(1, 3)), isr=(3,), alive=(2, 3), election=Election.UNCLEAN)
    assert clean == record(isr=(3,), leader=3)


def test_a_leader_that_has_recovered_says_so():
    before = partition(isr=(1,), leader_recovery_state=RECOVERING)
    assert change(before, recovery_state=RECOVERED) == record(leader_recovery_state=RECOVERED)


def test_a_reassignment_is_completed_when_all_that_stay_are_in_sync():
    moving = partition(replicas=(4, 2, 1), isr=(1, 2), removing_replicas=(1,), adding_replicas=(4,))
    assert change(moving, isr=(1,)) == record(isr=(1,))
    assert change(moving, isr=(1, 2, 4)) == record(
        isr=(2, 4), leader=4, replicas=(4, 2), removing_replicas=(), adding_replicas=(), directories=(PLACES[4], PLACES[2])
    )


def test_a_leader_that_stays_begins_an_epoch_when_a_replica_is_removed():
    moving = partition(replicas=(1, 2, 3), isr=(1, 2), removing_replicas=(3,))
    assert change(moving) == record(leader=1, replicas=(1, 2), removing_replicas=(), directories=(PLACES[1], PLACES[2]))


def test_a_new_replica_is_in_the_directory_that_its_broker_has():
    grown = change(partition(), replicas=(1, 2, 3, 4), adding=(4,))
    assert grown == record(replicas=(1, 2, 3, 4), adding_replicas=(4,), directories=tuple(PLACES[each] for each in (1, 2, 3, 4)))


def test_who_has_been_a_replica_all_along_need_not_be_in_sync_for_a_move_to_end():
    moving = partition(replicas=(4, 2, 1), isr=(1,), removing_replicas=(1,), adding_replicas=(4,))
    assert change(moving, isr=(1, 4)).replicas == (4, 2)
    fewer = partition(replicas=(4, 2, 1, 3), isr=(1,), removing_replicas=(1, 3), adding_replicas=(4,))
    assert change(fewer, isr=(1, 4)) == record(isr=(1, 4))
    assert change(fewer, isr=(1, 2, 4)).replicas == (4, 2)


def test_a_replica_that_one_move_adds_and_the_next_removes_does_not_keep_it_from_ending():
    moving = partition(replicas=(2, 4, 3, 1), isr=(1, 2, 3, 4), removing_replicas=(1,), adding_replicas=(1,))
    assert change(moving, isr=(2, 3, 1)).replicas is None
    ended = change(moving, isr=(1, 2, 3, 4))
    assert (ended.replicas, ended.removing_replicas, ended.adding_replicas) == ((2, 4, 3), (), ())
