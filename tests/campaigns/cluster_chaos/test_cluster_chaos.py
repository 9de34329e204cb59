"""A short run of the campaign on each kind of controller, and that its checks find what they are to find."""

from random import Random

import pytest

from tests.campaigns.cluster_chaos.administrator import check_topics
from tests.campaigns.cluster_chaos.chaos import Chaos
from tests.campaigns.cluster_chaos.clients import (
    PARTITIONS,
    Violation,
    check_hurried,
    check_ledger,
    check_orders,
    entries_of,
    order_partition,
)
from tests.campaigns.cluster_chaos.harms import HARMS, deck
from tests.campaigns.cluster_chaos.nodes import NODES
from tests.campaigns.cluster_chaos.views import PartitionView, are_in_sync

COUNT = 12
WHOLE = {("orders", 0): PartitionView(11, 4, NODES)}


def run(scratch, controller, *names, fault=None):
    chaos = Chaos(scratch, controller, 3, fault=fault, pace=0.3)
    try:
        return chaos.run(1, names)
    finally:
        chaos.close()


@pytest.mark.xdist_group("kafka-clusters")
@pytest.mark.timeout(400)
@pytest.mark.interpreted
@pytest.mark.parametrize(("controller", "harm"), [("odradek", "reset"), ("kafka", "cut controller")])
def test_nothing_is_lost_or_doubled_while_a_broker_is_in_trouble(tmp_path, controller, harm):
    assert f"harms: {{'{harm}': " in run(tmp_path, controller, harm)


@pytest.mark.xdist_group("kafka-clusters")
@pytest.mark.timeout(400)
@pytest.mark.interpreted
def test_a_broker_with_a_fault_is_found(tmp_path):
    with pytest.raises(Violation, match="given twice"):
        run(tmp_path, "odradek", "reset", fault="producer-ids-twice")


def test_every_harm_is_drawn_before_one_comes_again():
    drawn = deck(Random(1), tuple(HARMS))
    assert sorted(name for name, _ in drawn) == sorted(HARMS)
    assert {node_id for _, node_id in drawn} <= set(NODES)


@pytest.mark.parametrize(
    ("views", "found"),
    [
        ({11: WHOLE, 12: WHOLE}, True),
        ({11: WHOLE, 12: {("orders", 0): PartitionView(12, 5, NODES)}}, False),
        ({11: {("orders", 0): PartitionView(11, 4, NODES[:2])}}, False),
        ({11: {("orders", 0): PartitionView(-1, 4, NODES)}}, False),
    ],
)
def test_a_cluster_is_in_sync_when_all_brokers_say_so_of_all_replicas(views, found):
    assert are_in_sync(views, NODES) is found


def orders():
    read = {index: [] for index in range(PARTITIONS)}
    for number in range(COUNT):
        read[order_partition(number)].append(number)
    return read


def ledger():
    read = {index: [] for index in range(PARTITIONS)}
    for number in range(COUNT):
        for partition, value in entries_of(number):
            read[partition].append(value)
    return read


def test_what_is_as_it_must_be_is_no_violation():
    check_orders(orders(), range(COUNT - 2), COUNT)
    check_ledger(ledger(), range(COUNT))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda read: read[0].remove(3), "acknowledged orders are lost"),
        (lambda read: read[0].append(9), "twice"),
        (lambda read: read[0].insert(0, 6), "twice"),
        (lambda read: read[1].append(999), "not sent there"),
    ],
)
def test_orders_that_are_lost_doubled_or_disordered_are_found(change, told):
    read = orders()
    change(read)
    with pytest.raises(Violation, match=told):
        check_orders(read, range(COUNT), COUNT)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda read: read[2].pop(), "1 entries are missing"),
        (lambda read: read[1].append(read[1][0]), "twice"),
        (lambda read: read[0].append(b"999 debit"), "of no order"),
    ],
)
def test_half_a_transaction_or_one_that_is_there_twice_is_found(change, told):
    read = ledger()
    change(read)
    with pytest.raises(Violation, match=told):
        check_ledger(read, range(COUNT))


@pytest.mark.parametrize(
    ("read", "fates"),
    [
        ({0: [b"a"], 1: []}, {b"a": True}),
        ({0: [b"a", b"a"], 1: [b"a"]}, {b"a": True}),
        ({0: [b"a"], 1: [b"a"]}, {b"a": False}),
        ({0: [b"a"], 1: []}, {b"a": None}),
        ({0: [b"a"], 1: [b"a"]}, {}),
    ],
)
def test_a_hurried_transaction_that_is_torn_lost_or_doubled_is_found(read, fates):
    with pytest.raises(Violation):
        check_hurried(read, fates)


def test_a_hurried_transaction_of_an_unknown_fate_is_there_or_not():
    check_hurried({0: [b"a", b"c"], 1: [b"a", b"c"]}, {b"a": True, b"b": None, b"c": None, b"d": False})


def test_topics_that_were_asked_for_without_an_answer_may_be_there_or_not():
    check_topics({"orders", "made-1", "made-3"}, created={"made-1"}, deleted={"made-2"})


@pytest.mark.parametrize(
    ("created", "deleted", "told"), [({"made-2"}, set(), "are not there"), (set(), {"made-1"}, "were deleted are there")]
)
def test_a_topic_that_is_lost_or_comes_back_is_found(created, deleted, told):
    with pytest.raises(Violation, match=told):
        check_topics({"orders", "made-1"}, created, deleted)
