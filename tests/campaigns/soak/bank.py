"""The bank: its topics, and the records of each transaction.

    orders-<make>   transfer orders, a topic for each make of client, read by a consumer group of that name
    ledger          two entries for each transfer, a debit and a credit, in the partitions of the two accounts
    receipts        one receipt for each transfer, with the place of its order

A transaction contains the entries and receipts of a few orders, and the offsets after these orders. Every record names the
attempt that wrote it, and whether that attempt was doomed, which means aborted on purpose. Values are JSON lists.

An order follows from its number, as does its place: a partition's orders have consecutive offsets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAKES = ("librdkafka", "kafka-python", "aiokafka")
LEDGER, RECEIPTS = "ledger", "receipts"
LEDGER_PARTITIONS, RECEIPT_PARTITIONS, ORDER_PARTITIONS = 4, 2, 4
ACCOUNTS = 40
OPENING_BALANCE = 1_000
# The attempt that opens the accounts.
OPENING = "opening"

Partition = tuple[str, int]
BOOKS: tuple[Partition, ...] = (
    *((LEDGER, index) for index in range(LEDGER_PARTITIONS)),
    *((RECEIPTS, index) for index in range(RECEIPT_PARTITIONS)),
)


def orders_of(make: str) -> str:
    """The topic of the orders that clients of ``make`` carry out; its consumer group has the same name."""
    return f"orders-{make}"


# Orders are put into these in turn.
ORDERS: tuple[Partition, ...] = tuple((orders_of(make), index) for make in MAKES for index in range(ORDER_PARTITIONS))


class Order(NamedTuple):
    """``number`` identifies the transfer, over all topics."""

    number: int
    payer: int
    payee: int
    amount: int


class Entry(NamedTuple):
    """The effect of a transfer, or of the opening, on one account."""

    order: int
    attempt: str
    is_doomed: bool
    account: int
    amount: int


class Receipt(NamedTuple):
    """The receipt of a transfer whose order is at ``offset`` of ``partition`` of ``topic``."""

    order: int
    attempt: str
    is_doomed: bool
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Placed:
    """An order and its place."""

    topic: str
    partition: int
    offset: int
    order: Order


@dataclass(frozen=True, slots=True)
class Output:
    """A record to write: (topic, partition) and value."""

    partition: Partition
    value: bytes


def order_of(number: int) -> Order:
    """The order of this number."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15 % (1 << 64) >> 16
    payer, step, amount = mixed % ACCOUNTS, mixed // ACCOUNTS % (ACCOUNTS - 1), mixed >> 20
    return Order(number, payer, (payer + 1 + step) % ACCOUNTS, 1 + amount % 99)


def place_of(number: int) -> tuple[Partition, int]:
    """The partition and offset of the order of this number."""
    return ORDERS[number % len(ORDERS)], number // len(ORDERS)


def encode(record: Order | Entry | Receipt) -> bytes:
    return json.dumps(record).encode()


def decode_order(value: bytes) -> Order:
    return Order(*json.loads(value))


def decode(topic: str, value: bytes) -> Entry | Receipt:
    """A record of the ledger or of the receipts."""
    fields = json.loads(value)
    return Entry(*fields) if topic == LEDGER else Receipt(*fields)


def ledger_partition(account: int) -> Partition:
    return LEDGER, account % LEDGER_PARTITIONS


def opening() -> list[Output]:
    """The first entry of every account."""
    return [
        Output(ledger_partition(account), encode(Entry(-1, OPENING, False, account, OPENING_BALANCE)))
        for account in range(ACCOUNTS)
    ]


def transfers(orders: Sequence[Placed], attempt: str, *, is_doomed: bool) -> list[Output]:
    """All records of one transaction."""
    outputs = []
    for placed in orders:
        order = placed.order
        for account, amount in ((order.payer, -order.amount), (order.payee, order.amount)):
            outputs.append(Output(ledger_partition(account), encode(Entry(order.number, attempt, is_doomed, account, amount))))
        receipt = Receipt(order.number, attempt, is_doomed, placed.topic, placed.partition, placed.offset)
        outputs.append(Output((RECEIPTS, order.number % RECEIPT_PARTITIONS), encode(receipt)))
    return outputs


def next_offsets(orders: Sequence[Placed]) -> dict[Partition, int]:
    """The offsets after these orders, to be committed with their transfers."""
    offsets: dict[Partition, int] = {}
    for placed in orders:
        partition = (placed.topic, placed.partition)
        offsets[partition] = max(offsets.get(partition, 0), placed.offset + 1)
    return offsets


def first_offsets(orders: Sequence[Placed]) -> dict[Partition, int]:
    """The first offsets of these orders, to read them again."""
    offsets: dict[Partition, int] = {}
    for placed in orders:
        partition = (placed.topic, placed.partition)
        offsets[partition] = min(offsets.get(partition, placed.offset), placed.offset)
    return offsets
