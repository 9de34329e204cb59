"""Elections that are asked for, and those that the controller holds by itself."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.controller.cluster.clusters import Cluster
from tests.controller.metadata.doubles import done

PREFERRED, UNCLEAN = 0, 1
CHECK_S = 300


@pytest.fixture
def cluster():
    made = Cluster()
    made.start(1, 2, 3)
    return made


def elect(cluster, election_type, *partitions):
    """The error of each partition, by topic and number."""
    asked = [TopicPartitions(topic, [index]) for topic, index in partitions] if partitions else None
    response = done(cluster.controller.elect_leaders(ElectLeadersRequest(election_type, asked)))
    told = {
        (topic.topic, each.partition_id): each.error_code
        for topic in response.replica_election_results
        for each in topic.partition_result
    }
    return told if not response.error_code else (response.error_code, told)


def restart(cluster, broker_id):
    """A broker's session ends, and a new incarnation is unfenced."""
    cluster.expire(broker_id)
    cluster.start(broker_id, previous_broker_epoch=cluster.epoch(broker_id))


def test_the_preferred_leader_leads_again_when_it_is_in_sync(cluster):
    cluster.create("t", (1, 2))
    restart(cluster, 1)
    assert elect(cluster, PREFERRED, ("t", 0)) == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.propose([2, 1])
    assert elect(cluster, PREFERRED, ("t", 0)) == {("t", 0): ErrorCode.NONE}
    assert cluster.state() == (1, 2, (2, 1), (), 3)
    assert elect(cluster, PREFERRED, ("t", 0)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_all_partitions_are_asked_for_and_those_that_need_none_are_not_told(cluster):
    cluster.create("t", (1, 2), (2, 1))
    cluster.create("other", (3,))
    restart(cluster, 1)
    cluster.propose([2, 1])
    assert elect(cluster, PREFERRED) == {("t", 0): ErrorCode.NONE}


def test_what_is_not_there_cannot_have_a_leader(cluster):
    cluster.create("t", (1,))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(cluster, PREFERRED, ("t", 1), ("nobody", 0)) == {("t", 1): unknown, ("nobody", 0): unknown}


def test_an_unknown_kind_of_election_is_refused(cluster):
    cluster.create("t", (1,))
    error, told = elect(cluster, 7, ("t", 0))
    assert (error, told) == (ErrorCode.INVALID_REQUEST, {("t", 0): ErrorCode.INVALID_REQUEST})


def leave_behind(cluster, **configs):
    """Partition t-0 has no leader: broker 1 alone was in sync, and is gone; broker 2 lives, and lacks records."""
    cluster.create("t", (1, 2), **configs)
    cluster.propose([1])
    cluster.expire(1)


def test_an_unclean_election_is_held_where_it_is_asked_for(cluster):
    leave_behind(cluster)
    assert cluster.state() == (-1, 1, (), (1,), 2)
    assert elect(cluster, PREFERRED, ("t", 0)) == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert elect(cluster, UNCLEAN, ("t", 0)) == {("t", 0): ErrorCode.NONE}
    assert cluster.state() == (2, 2, (2,), (), 3)
    assert cluster.partition().leader_recovery_state == 1
    assert elect(cluster, UNCLEAN, ("t", 0)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_an_unclean_election_needs_a_replica_that_lives(cluster):
    leave_behind(cluster)
    cluster.expire(2)
    assert elect(cluster, UNCLEAN, ("t", 0)) == {("t", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_a_topic_that_allows_it_gets_an_unclean_leader_by_itself(cluster):
    leave_behind(cluster, unclean_leader_election_enable="true")
    assert cluster.state() == (2, 1, (2,), (), 2)
    assert cluster.partition().leader_recovery_state == 1


@pytest.mark.parametrize("resource", ["", "100"])
def test_all_brokers_or_the_controller_may_allow_it_for_topics_that_do_not_say(cluster, resource):
    done(cluster.controller.alter_configs([(4, resource, "unclean.leader.election.enable", "true")]))
    leave_behind(cluster)
    assert cluster.state()[0] == 2
    cluster.create("never", (3, 2), unclean_leader_election_enable="false")
    cluster.propose([3], "never")
    cluster.expire(3)
    assert cluster.state("never")[0] == -1


def test_what_is_allowed_later_is_looked_for_from_time_to_time(cluster):
    leave_behind(cluster)
    done(cluster.controller.alter_configs([(2, "t", "unclean.leader.election.enable", "true")]))
    assert cluster.state()[0] == -1
    cluster.live(CHECK_S * 1000, 2, 3)
    assert cluster.state()[:3] == (2, 2, (2,))


def test_preferred_leaders_lead_again_by_themselves(cluster):
    cluster.create("t", (1, 2))
    restart(cluster, 1)
    cluster.propose([2, 1])
    cluster.live(CHECK_S * 1000, 1, 2, 3)
    assert cluster.state()[0] == 1


def test_they_do_not_where_that_is_switched_off():
    cluster = Cluster({"auto.leader.rebalance.enable": "false"})
    cluster.start(1, 2)
    cluster.create("t", (1, 2))
    restart(cluster, 1)
    cluster.propose([2, 1])
    cluster.live(CHECK_S * 1000, 1, 2)
    assert cluster.state()[0] == 2


def test_more_elections_than_are_held_at_once_go_on_soon(monkeypatch):
    monkeypatch.setattr("odradek.controller.cluster.reassignments.MAX_ELECTIONS", 2)
    monkeypatch.setattr("odradek.controller.cluster.cluster_controller.MAX_ELECTIONS", 2)
    cluster = Cluster()
    cluster.start(1, 2)
    cluster.create("t", *[(1, 2)] * 5)
    restart(cluster, 1)
    for index in range(5):
        cluster.propose([2, 1], index=index)
    batches = len(cluster.log.batches)
    cluster.live(CHECK_S * 1000, 1, 2)
    assert [cluster.state(index=index)[0] for index in range(5)] == [1] * 5
    assert len(cluster.log.batches) == batches + 3
