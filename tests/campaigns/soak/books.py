"""The records of the books, read line by line, and their invariants.

Only what is not yet settled is kept, so that a run may have millions of records. A transfer is settled when all its parts are
read:

    there are one debit, one credit and one receipt, of one attempt, which was not doomed,
    for the accounts and the amount of its order, which is at the place that the receipt names,

so that money is conserved. No part of a settled transfer may be read again. A transaction's markers reach its partitions one
after the other, so a transfer may have one part below the last stable offsets and another above. The missing part must follow.

What the makes have read of one partition, compared line by line: every make reads every line, and the same.

Each make reads on where it has stopped, so that a run may have millions of lines. Digests of all lines remain, and the last
reader, which begins at the first offset, must come to the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import (
    ACCOUNTS,
    OPENING,
    OPENING_BALANCE,
    ORDERS,
    Entry,
    Order,
    Partition,
    Receipt,
    decode,
    order_of,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.campaigns.soak.readers import Line


LINES_A_DIGEST = 1_000


class Digests:
    """A running checksum over a partition's offsets and values, and what it was after each thousand lines."""

    def __init__(self) -> None:
        self.lines = 0
        # (offset of the last line, checksum); the last one is not of a whole thousand.
        self.marks: list[tuple[int, int]] = [(-1, 0)]

    def add(self, line: Line) -> None:
        checksum = zlib.crc32(line.value, zlib.crc32(line.offset.to_bytes(8), self.marks[-1][1]))
        self.lines += 1
        if self.lines % LINES_A_DIGEST == 1:
            self.marks.append((line.offset, checksum))
        else:
            self.marks[-1] = line.offset, checksum

    def require_same(self, other: Digests, what: str) -> None:
        """Raises Violation that names the first thousand lines that differ."""
        for index, (mine, its) in enumerate(zip(self.marks, other.marks, strict=False)):
            since = self.marks[max(index - 1, 0)][0]
            require(mine == its, f"{what}: behind offset {since}, (last offset, checksum) are {mine} and {its}")
        require(self.lines == other.lines, f"{what}: {self.lines} lines and {other.lines}")


class Tape:
    """The lines of one partition that not all makes have read."""

    def __init__(self, makes: Sequence[str]) -> None:
        self.digests = Digests()
        # The next offset of each make, and the furthest that any make has read.
        self.positions = dict.fromkeys(makes, 0)
        self._frontier = 0
        self._lines: list[Line] = []
        self._next = dict.fromkeys(makes, 0)

    def take(self, make: str, line: Line) -> bool:
        """A line that ``make`` has read; whether it is the first to read it."""
        index = self._next[make]
        is_first = index == len(self._lines)
        if is_first:
            if line.offset < self._frontier:
                raise Violation(f"{make} reads a line that others did not: {line}")
            self._lines.append(line)
            self.digests.add(line)
        elif self._lines[index] != line:
            raise Violation(f"{make} reads {line}, and others have read {self._lines[index]}")
        self._next[make] = index + 1
        self.positions[make] = line.offset + 1
        return is_first

    def pass_by(self, make: str, end: int) -> None:
        """``make`` has read all that is below ``end``."""
        index = self._next[make]
        if index < len(self._lines) and self._lines[index].offset < end:
            raise Violation(f"{make} does not read a line that others have read: {self._lines[index]}")
        self.positions[make] = max(self.positions[make], end)
        self._frontier = max(self._frontier, self.positions[make])
        done = min(self._next.values())
        del self._lines[:done]
        for each in self._next:
            self._next[each] -= done


ENTRIES_A_TRANSFER = 2


class Violation(AssertionError):
    """A record was read that must not be readable, or one is missing."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


@dataclass(slots=True)
class Transfer:
    """A transfer of which parts have been read, at ``places``."""

    attempt: str
    entries: list[Entry] = field(default_factory=list)
    receipt: Receipt | None = None
    places: list[tuple[Partition, int]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return self.receipt is not None and len(self.entries) == ENTRIES_A_TRANSFER


class Offsets:
    """A set of offsets, of which all below ``frontier`` are members."""

    def __init__(self) -> None:
        self.frontier = 0
        self._beyond: set[int] = set()

    def add(self, offset: int) -> None:
        self._beyond.add(offset)
        while self.frontier in self._beyond:
            self._beyond.remove(self.frontier)
            self.frontier += 1

    def missing_below(self, end: int) -> set[int]:
        return set(range(self.frontier, end)) - self._beyond

    def from_offset(self, offset: int) -> set[int]:
        """Those at or behind ``offset``."""
        return {*range(offset, self.frontier), *(each for each in self._beyond if each >= offset)}

    def __contains__(self, offset: int) -> bool:
        return offset < self.frontier or offset in self._beyond


class Books:
    """Add all lines, then check."""

    def __init__(self) -> None:
        # Transfers of which a part is missing.
        self.begun: dict[int, Transfer] = {}
        self.settled = 0
        self.attempts: set[str] = set()
        # The offsets of the orders with a receipt.
        self.carried_out: dict[Partition, Offsets] = {partition: Offsets() for partition in ORDERS}
        self._is_settled = bytearray()
        self._balances: dict[int, int] = {}
        self._at: dict[Partition, Line] = {}

    def add(self, line: Line) -> None:
        before = self._at.get(line.partition)
        if before is not None and before.offset >= line.offset:
            raise Violation(f"{line} comes after {before}")
        self._at[line.partition] = line
        record = decode(line.partition[0], line.value)
        if record.is_doomed:
            raise Violation(f"an aborted record is read: {line}")
        if record.attempt == OPENING:
            self._open(record, line)
        else:
            self._add_part(record, line)

    def incomplete(self, ends: Mapping[Partition, int]) -> set[int]:
        """The transfers with a part below ``ends`` that lack another part."""
        return {
            number
            for number, transfer in self.begun.items()
            if any(offset < ends[partition] for partition, offset in transfer.places)
        }

    def not_carried_out(self, covered: Mapping[Partition, int]) -> dict[Partition, set[int]]:
        """The orders below committed offsets without a receipt."""
        missing = {partition: self.carried_out[partition].missing_below(end) for partition, end in covered.items()}
        return {partition: offsets for partition, offsets in missing.items() if offsets}

    def ahead(self, covered: Mapping[Partition, int]) -> dict[Partition, set[int]]:
        """The orders with a receipt at or behind committed offsets."""
        found = {partition: self.carried_out[partition].from_offset(end) for partition, end in covered.items()}
        return {partition: offsets for partition, offsets in found.items() if offsets}

    def balances(self) -> dict[int, int]:
        """The balance of each account after the settled transfers."""
        require(set(self._balances) == set(range(ACCOUNTS)), f"accounts were opened: {sorted(self._balances)}")
        total = sum(self._balances.values())
        require(total == ACCOUNTS * OPENING_BALANCE, f"there is {total} in the bank, not {ACCOUNTS * OPENING_BALANCE}")
        return dict(self._balances)

    def _open(self, entry: Entry | Receipt, line: Line) -> None:
        if not isinstance(entry, Entry) or entry.account in self._balances:
            raise Violation(f"the account is opened twice: {line}")
        self._balances[entry.account] = entry.amount

    def _add_part(self, record: Entry | Receipt, line: Line) -> None:
        number = record.order
        if number < len(self._is_settled) and self._is_settled[number]:
            raise Violation(f"a part is read of transfer {number}, which is complete: {line}")
        transfer = self.begun.get(number)
        if transfer is None:
            transfer = self.begun[number] = Transfer(record.attempt)
            self.attempts.add(record.attempt)
        if transfer.attempt != record.attempt:
            raise Violation(f"transfer {number} is made by {transfer.attempt} and again by {record.attempt}: {line}")
        transfer.places.append((line.partition, line.offset))
        if isinstance(record, Entry):
            if len(transfer.entries) == ENTRIES_A_TRANSFER:
                raise Violation(f"transfer {number} has another entry: {line}")
            transfer.entries.append(record)
        else:
            self._add_receipt(transfer, record, line)
        if transfer.is_complete:
            self._settle(number, transfer.entries)

    def _add_receipt(self, transfer: Transfer, receipt: Receipt, line: Line) -> None:
        place = (receipt.topic, receipt.partition), receipt.offset
        if transfer.receipt is not None or receipt.offset in self.carried_out[place[0]]:
            raise Violation(f"the order is carried out a second time: {line}")
        require(place == place_of(receipt.order), f"order {receipt.order} is at {place_of(receipt.order)}: {line}")
        transfer.receipt = receipt
        self.carried_out[place[0]].add(receipt.offset)

    def _settle(self, number: int, entries: Iterable[Entry]) -> None:
        order = order_of(number)
        found = sorted((entry.account, entry.amount) for entry in entries)
        require(found == sorted(effects(order)), f"the entries of {order} are {found}")
        for account, amount in found:
            self._balances[account] = self._balances.get(account, 0) + amount
        del self.begun[number]
        self._is_settled.extend(bytes(max(0, number + 1 - len(self._is_settled))))
        self._is_settled[number] = True
        self.settled += 1


def effects(order: Order) -> list[tuple[int, int]]:
    """What the order changes: (account, amount)."""
    return [(order.payer, -order.amount), (order.payee, order.amount)]
