"""A short run of the campaign, and that its checks find what they are to find."""

import pytest

from tests.campaigns.cluster_chaos.accounts import PARTITIONS, Violation, check_ledger, check_orders, entries_of, order_partition
from tests.campaigns.cluster_chaos.chaos import Chaos

COUNT = 12


@pytest.mark.xdist_group("kafka-tools")
@pytest.mark.timeout(400)
@pytest.mark.interpreted
def test_nothing_is_lost_or_doubled_while_one_broker_after_the_other_is_harmed(tmp_path):
    chaos = Chaos(tmp_path, seed=3)
    try:
        print(chaos.run(8))
    finally:
        chaos.close()


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
