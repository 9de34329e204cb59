"""Who leads the quorum, and whom an observer asks next: values in, values out."""

from random import Random

import pytest

from odradek.controller.quorum.leader_discovery import (
    NO_LEADER,
    Election,
    InconsistentLeader,
    Leader,
    LeaderDiscovery,
    QuorumAnswer,
    QuorumNode,
)
from odradek.protocol.errors import ErrorCode

NODES = [QuorumNode(number, f"c{number}", 9093) for number in (1, 2, 3)]
ADDRESSES = {node.node_id: node.address for node in NODES}
BOOTSTRAP = [QuorumNode(None, node.host, node.port) for node in NODES]
FETCH_TIMEOUT_MS = 2000
BACKOFF_MS = 20
NONE = ErrorCode.NONE
NEVER_ELECTED = Election()
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED = ErrorCode.FENCED_LEADER_EPOCH


def discovery(election=NEVER_ELECTED, nodes=NODES, seed=1):
    return LeaderDiscovery(
        nodes, election, Random(seed), fetch_timeout_ms=FETCH_TIMEOUT_MS, retry_backoff_ms=BACKOFF_MS, now_ms=0
    )


def answer(error, epoch, leader_id=NO_LEADER, endpoints=None):
    return QuorumAnswer(error, Election(epoch, leader_id), ADDRESSES if endpoints is None else endpoints)


def leader(node_id, epoch):
    return Leader(node_id, *ADDRESSES[node_id], epoch)


def following(node_id=1, epoch=5):
    found = discovery()
    found.answered(ADDRESSES[2], answer(FENCED, epoch, node_id), 0)
    assert found.leader == leader(node_id, epoch)
    return found


def asked(found, now_ms, rounds=50):
    """The nodes that are asked at ``now_ms`` by an observer that asks often, and hears nothing new."""
    nodes = set()
    for _ in range(rounds):
        node = found.next_node(now_ms)
        if isinstance(node, tuple):
            nodes.add(node)
    return nodes


def test_without_a_leader_any_node_is_asked():
    assert asked(discovery(), 0) == set(ADDRESSES.values())


@pytest.mark.parametrize("error", [FENCED, NOT_LEADER])
def test_a_node_that_does_not_lead_tells_who_does(error):
    found = discovery()
    assert found.answered(ADDRESSES[2], answer(error, 5, 3), 0) is False
    assert (found.election, found.leader) == (Election(5, 3), leader(3, 5))
    assert asked(found, 0) == {ADDRESSES[3]}


def test_the_leader_is_found_by_its_own_answer_whose_content_counts():
    found = discovery(Election(5))
    assert found.answered(ADDRESSES[1], answer(NONE, 5, 1), 0) is True
    assert found.leader == leader(1, 5)


def test_a_leader_that_tells_no_address_is_where_it_answered_from():
    found = discovery(Election(5), BOOTSTRAP)
    assert found.answered(("other", 1), answer(NONE, 5, 9, {}), 0) is True
    assert found.leader == Leader(9, "other", 1, 5)


def test_the_configured_address_is_taken_where_none_is_told():
    found = discovery()
    found.answered(ADDRESSES[2], answer(NOT_LEADER, 5, 3, {}), 0)
    assert found.leader == leader(3, 5)


def test_a_leader_without_an_address_is_looked_for():
    found = discovery(nodes=BOOTSTRAP)
    found.answered(ADDRESSES[2], answer(NOT_LEADER, 5, 3, {}), 0)
    assert (found.election, found.leader) == (Election(5, 3), None)
    assert asked(found, 0) == {ADDRESSES[1], ADDRESSES[3]}


def test_the_leader_of_the_last_run_is_asked_first():
    assert asked(discovery(Election(5, 3)), 0) == {ADDRESSES[3]}


@pytest.fixture
def found():
    return following(1, 5)


def test_a_larger_epoch_without_a_leader_ends_the_leadership(found):
    assert found.answered(ADDRESSES[1], answer(NOT_LEADER, 6), 0) is False
    assert (found.election, found.leader) == (Election(6), None)
    # Who said so knows no more than that.
    assert asked(found, 0) == {ADDRESSES[2], ADDRESSES[3]}


@pytest.mark.parametrize("error", [NONE, NOT_LEADER, FENCED])
def test_a_smaller_epoch_changes_nothing(found, error):
    assert found.answered(ADDRESSES[2], answer(error, 4, 2), 0) is False
    assert (found.election, found.leader) == (Election(5, 1), leader(1, 5))


def test_a_node_that_does_not_know_the_epoch_yet_is_asked_again_after_the_backoff():
    found = discovery(Election(5))
    for node_id in (1, 2, 3):
        assert found.answered(ADDRESSES[node_id], answer(ErrorCode.UNKNOWN_LEADER_EPOCH, 4), 0) is False
    assert found.next_node(0) == BACKOFF_MS
    assert asked(found, BACKOFF_MS) == set(ADDRESSES.values())


def test_two_leaders_of_one_epoch_are_refused(found):
    with pytest.raises(InconsistentLeader, match="node 2 is reported as leader of epoch 5, but node 1 leads it"):
        found.answered(ADDRESSES[3], answer(NOT_LEADER, 5, 2), 0)


def test_an_answer_of_the_leader_counts():
    assert following(1, 5).answered(ADDRESSES[1], answer(NONE, 5, 1), 0) is True


@pytest.mark.parametrize("error", [ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_while_the_leader_fails_others_are_asked(found, error):
    assert found.answered(ADDRESSES[1], answer(error, 5, 1), 0) is False
    assert asked(found, 0) == {ADDRESSES[2], ADDRESSES[3]}


def test_a_leader_that_others_confirm_is_asked_again_after_its_backoff(found):
    found.failed(ADDRESSES[1], 100)
    assert asked(found, 100) == {ADDRESSES[2], ADDRESSES[3]}
    found.answered(ADDRESSES[2], answer(NOT_LEADER, 5, 1), 101)
    assert found.next_node(101) == BACKOFF_MS - 1
    assert asked(found, 100 + BACKOFF_MS) == {ADDRESSES[1]}


def test_a_leader_that_failed_is_asked_too_where_nobody_knows_better(found):
    found.failed(ADDRESSES[1], 0)
    for node_id in (2, 3):
        found.answered(ADDRESSES[node_id], answer(NOT_LEADER, 5), BACKOFF_MS)
    assert asked(found, BACKOFF_MS) == {ADDRESSES[1]}
    found.fetched(BACKOFF_MS)
    assert asked(found, 2 * BACKOFF_MS) == {ADDRESSES[1]}


def test_a_leader_that_is_silent_for_the_fetch_timeout_is_doubted(found):
    found.fetched(1000)
    assert asked(found, 1000 + FETCH_TIMEOUT_MS - 1) == {ADDRESSES[1]}
    assert asked(found, 1000 + FETCH_TIMEOUT_MS) == set(ADDRESSES.values())


def test_the_next_leader_is_followed_at_once(found):
    found.failed(ADDRESSES[1], 0)
    found.answered(ADDRESSES[2], answer(FENCED, 7, 2), 0)
    assert found.leader == leader(2, 7)
    assert asked(found, 0) == {ADDRESSES[2]}


def test_the_next_leader_is_asked_at_once_though_it_failed_before(found):
    found.failed(ADDRESSES[2], 0)
    found.answered(ADDRESSES[3], answer(FENCED, 6, 2), 1)
    assert asked(found, 1) == {ADDRESSES[2]}


def test_a_leader_that_resigned_without_a_successor_is_doubted(found):
    found.answered(ADDRESSES[1], answer(NOT_LEADER, 5), 0)
    assert asked(found, 0) == {ADDRESSES[2], ADDRESSES[3]}


def test_all_nodes_that_failed_are_left_alone_for_the_backoff():
    found = discovery()
    for time_ms, node_id in enumerate((1, 2, 3)):
        found.failed(ADDRESSES[node_id], time_ms)
    assert found.next_node(5) == BACKOFF_MS - 5
    assert asked(found, BACKOFF_MS) == {ADDRESSES[1]}


def test_of_more_nodes_none_is_preferred():
    asked_first = [discovery(seed=seed).next_node(0) for seed in range(60)]
    assert {asked_first.count(address) > 5 for address in ADDRESSES.values()} == {True}
