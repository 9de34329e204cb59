"""The producers' records in each transaction, the acknowledged ones among them, and the requested and confirmed ends.

A value names its place: ``<transaction>:<number>``. Each record, and each offset, is sent in one transaction only.

requested   confirmed   a read_committed consumer reads commit      committed   all of it, once, in order commit      nothing
all of it or nothing, the same on all partitions and for offsets abort, or nothing       nothing
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.campaigns.simulation.transactions.witness import SeenOffsets

# A partition from its creation to its deletion: topic id and index.
Incarnation = tuple[UUID, int]

_FATE = "a transaction's fate is the one that its producer was told"
_WHOLE = "a transaction is read whole or not at all"
_ORDER = "transactions are read in the order in which they were made"


class SentTransaction:
    """A transaction as its producer knows it."""

    __slots__ = ("acknowledged", "asked", "number", "offsets", "producer", "sent_count", "told", "transactional_id")

    def __init__(self, number: int, transactional_id: str, producer: str) -> None:
        self.number = number
        self.transactional_id = transactional_id
        self.producer = producer
        self.sent_count = 0
        self.acknowledged: dict[Incarnation, list[bytes]] = defaultdict(list)
        self.offsets: list[int] = []
        # Whether a commit was requested; None before EndTxn.
        self.asked: bool | None = None
        self.told: bool | None = None

    def __str__(self) -> str:
        ends = {None: "nothing", True: "commit", False: "abort"}
        return f"transaction {self.number} of {self.producer}, asked to {ends[self.asked]} and told {ends[self.told]}"

    def next_value(self) -> bytes:
        """A value that was not sent before."""
        self.sent_count += 1
        return f"{self.number}:{self.sent_count}".encode()


class Ledger:
    """All transactions, by their numbers, and the numbers of offsets committed in them."""

    def __init__(self) -> None:
        self.transactions: dict[int, SentTransaction] = {}
        self.of_offset: dict[int, SentTransaction] = {}
        self._offsets = 0

    def begin(self, transactional_id: str, producer: str) -> SentTransaction:
        """A new one."""
        sent = SentTransaction(len(self.transactions) + 1, transactional_id, producer)
        self.transactions[sent.number] = sent
        return sent

    def next_offset(self, sent: SentTransaction | None) -> int:
        """An offset that was not committed before, in a transaction or outside."""
        self._offsets += 1
        if sent is not None:
            self.of_offset[self._offsets] = sent
        return self._offsets

    def check(
        self,
        read: dict[Incarnation, list[bytes]],
        offsets: Iterable[SeenOffsets],
        *,
        is_over: bool,
    ) -> None:
        """``read`` has the values read from each existing partition. ``is_over``: no transaction is open. Raises Violation."""
        found: dict[int, dict[Incarnation, list[bytes]]] = defaultdict(dict)
        for partition, values in read.items():
            self._check_order(partition, values)
            for value in values:
                found[int(value.partition(b":")[0])].setdefault(partition, []).append(value)
        committed: dict[int, set[int]] = defaultdict(set)
        taken_back: set[int] = set()
        for seen in offsets:
            taken_back |= seen.taken_back
            for offset, is_commit in seen.fates.items():
                if is_commit and offset in self.of_offset:
                    committed[self.of_offset[offset].number].add(offset)
        for sent in self.transactions.values():
            parts = found.get(sent.number, {})
            expected = {partition: values for partition, values in sent.acknowledged.items() if partition in read}
            _check_fate(sent, parts, committed[sent.number], may_be_committed=bool(sent.asked))
            if is_over and (sent.told or parts or committed[sent.number]):
                # A late repetition of a request may find its topic deleted and recreated, and write records there that are gone
                # elsewhere.
                gone = {value for partition, values in sent.acknowledged.items() if partition not in read for value in values}
                whole = {place: values for place, values in parts.items() if place in expected or not gone.issuperset(values)}
                _check_whole(sent, whole, expected, committed[sent.number] | taken_back)

    def _check_order(self, partition: Incarnation, values: list[bytes]) -> None:
        latest: dict[str, tuple[int, int]] = {}
        for value in values:
            transaction, _, number = value.partition(b":")
            place = int(transaction), int(number)
            name = self.transactions[place[0]].transactional_id
            if place <= latest.get(name, (0, 0)):
                raise Violation(_ORDER, f"{partition}: {value!r} of {name} comes after {latest[name]}")
            latest[name] = place


def _check_fate(
    sent: SentTransaction, parts: dict[Incarnation, list[bytes]], offsets: set[int], *, may_be_committed: bool
) -> None:
    if (parts or offsets) and (not may_be_committed or sent.told is False):
        raise Violation(_FATE, f"{sent}: {parts} is read, and offsets {offsets} are committed")


def _check_whole(
    sent: SentTransaction,
    parts: dict[Incarnation, list[bytes]],
    expected: dict[Incarnation, list[bytes]],
    offsets: set[int],
) -> None:
    """A producer commits only if every record was acknowledged, so all of them must be read."""
    expected = {partition: values for partition, values in expected.items() if values}
    if parts != expected:
        raise Violation(_WHOLE, f"{sent}: {parts} is read of {expected}")
    if not offsets.issuperset(sent.offsets):
        raise Violation(_WHOLE, f"{sent}: of the offsets {sent.offsets} {sorted(offsets & set(sent.offsets))} are committed")
