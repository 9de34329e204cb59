"""What must be in the topics at the end, whoever was killed.

    orders    a number each; a partition has every third one, in order, each once
    ledger    for each order a debit and a credit, in two partitions, written in one transaction with the order's offset
    hurried   for each transaction of its producers the same record in every partition

Pure: what was read comes in as lists.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

PARTITIONS = 3
DEBIT, CREDIT = "debit", "credit"


class Violation(Exception):
    """What must not be."""


def order_partition(number: int) -> int:
    """Where an order is."""
    return number % PARTITIONS


def entries_of(number: int) -> list[tuple[int, bytes]]:
    """(partition, value) of an order's entries in the ledger: in two partitions."""
    return [
        (number % PARTITIONS, f"{number} {DEBIT}".encode()),
        ((number + 1) % PARTITIONS, f"{number} {CREDIT}".encode()),
    ]


def check_orders(read: Mapping[int, Sequence[int]], acknowledged: Iterable[int], sent: int) -> None:
    """``read`` has the numbers in each partition by offset. Raises Violation."""
    for partition, numbers in read.items():
        if list(numbers) != sorted(set(numbers)):
            raise Violation(f"orders-{partition} has orders twice, or in another order than they were sent")
        strangers = [number for number in numbers if order_partition(number) != partition or number >= sent]
        if strangers:
            raise Violation(f"orders-{partition} has what was not sent there: {strangers[:5]}")
    there = {number for numbers in read.values() for number in numbers}
    lost = sorted(set(acknowledged) - there)
    if lost:
        raise Violation(f"{len(lost)} acknowledged orders are lost: {lost[:5]}")


def check_ledger(read: Mapping[int, Sequence[bytes]], orders: Iterable[int]) -> None:
    """``read`` has the committed entries of each partition. Raises Violation."""
    found = Counter((partition, value) for partition, values in read.items() for value in values)
    wanted = Counter(entry for number in orders for entry in entries_of(number))
    missing, surplus = wanted - found, found - wanted
    if missing:
        raise Violation(f"{missing.total()} entries are missing: {sorted(missing)[:5]}")
    if surplus:
        raise Violation(f"{surplus.total()} entries are there twice, or of no order: {sorted(surplus)[:5]}")


def check_hurried(read: Mapping[int, Sequence[bytes]], fates: Mapping[bytes, bool | None]) -> None:
    """``read`` has the committed records of each partition, ``fates`` whether each was committed. Raises Violation."""
    found = {partition: Counter(values) for partition, values in read.items()}
    strangers = {value for values in found.values() for value in values} - fates.keys()
    if strangers:
        raise Violation(f"records that nobody has written: {sorted(strangers)[:5]}")
    for value, is_committed in fates.items():
        counts = {values[value] for values in found.values()}
        wanted = ({1}, {0}) if is_committed is None else ({int(is_committed)},)
        if counts not in wanted:
            told = {True: "committed", False: "aborted", None: "of an unknown fate"}[is_committed]
            raise Violation(f"transaction {value.decode()}, {told}, is torn, lost, or there twice: {sorted(counts)}")
