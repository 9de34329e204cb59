"""The records that one reader has read from the books, and their invariants.

A snapshot has all records below the last stable offsets fetched before. A transaction's markers reach its partitions one after
the other, so a transfer may have one part below these offsets and another above. The missing part must follow, and completes
the snapshot. Of every transfer in it

    there are one debit, one credit and one receipt, of one attempt, which was not doomed,
    for the accounts and the amount of its order,

so that money is conserved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.campaigns.soak.bank import (
    ACCOUNTS,
    BOOKS,
    OPENING,
    OPENING_BALANCE,
    Entry,
    Order,
    Partition,
    Receipt,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.campaigns.soak.readers import Line

ENTRIES_A_TRANSFER = 2


class Violation(AssertionError):
    """A record was read that must not be readable."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise Violation(what)


class Books:
    """Add all lines, then check."""

    def __init__(self, orders: Mapping[int, Order]) -> None:
        self._orders = orders
        self.lines: dict[Partition, list[Line]] = {partition: [] for partition in BOOKS}
        self.entries: dict[int, list[Entry]] = {}
        self.receipts: dict[int, Receipt] = {}
        # The offsets of the orders carried out.
        self.carried_out: dict[Partition, set[int]] = {}
        self._opening: dict[int, int] = {}
        self._attempts: dict[int, str] = {}
        # The partition and offset of each part of a transfer.
        self._places: dict[int, list[tuple[Partition, int]]] = {}

    def add(self, lines: Iterable[Line]) -> None:
        for line in lines:
            before = self.lines[line.partition]
            if before and before[-1].offset >= line.offset:
                raise Violation(f"{line} comes after {before[-1]}")
            before.append(line)
            self._add_record(decode(line.partition[0], line.value), line)

    def begun(self, ends: Mapping[Partition, int]) -> set[int]:
        """The transfers with a part below ``ends``."""
        return {number for number, places in self._places.items() if any(offset < ends[at] for at, offset in places)}

    def incomplete(self, numbers: Iterable[int]) -> set[int]:
        """The transfers that lack a part."""
        return {
            number for number in numbers if number not in self.receipts or len(self.entries.get(number, ())) < ENTRIES_A_TRANSFER
        }

    def not_carried_out(self, covered: Mapping[Partition, int]) -> dict[Partition, set[int]]:
        """The orders below committed offsets without a receipt."""
        missing = {at: set(range(end)) - self.carried_out.get(at, set()) for at, end in covered.items()}
        return {at: offsets for at, offsets in missing.items() if offsets}

    def balances(self, numbers: Iterable[int]) -> dict[int, int]:
        """The balance of each account after these transfers; each must be complete, and as ordered."""
        balances = dict(self._opening)
        require(set(balances) == set(range(ACCOUNTS)), f"accounts were opened: {sorted(balances)}")
        for number in numbers:
            order = self._orders[number]
            found = sorted((entry.account, entry.amount) for entry in self.entries[number])
            ordered = sorted([(order.payer, -order.amount), (order.payee, order.amount)])
            require(found == ordered, f"the entries of {order} are {found}")
            for account, amount in found:
                balances[account] += amount
        total = sum(balances.values())
        require(total == ACCOUNTS * OPENING_BALANCE, f"there is {total} in the bank, not {ACCOUNTS * OPENING_BALANCE}")
        return balances

    def attempts(self) -> set[str]:
        return set(self._attempts.values())

    def _add_record(self, record: Entry | Receipt, line: Line) -> None:
        if record.is_doomed:
            raise Violation(f"an aborted record is read: {line}")
        if record.attempt == OPENING:
            self._add_opening(record, line)
            return
        number = record.order
        attempt = self._attempts.setdefault(number, record.attempt)
        if attempt != record.attempt:
            raise Violation(f"transfer {number} is made by {attempt} and again by {record.attempt}: {line}")
        self._places.setdefault(number, []).append((line.partition, line.offset))
        if isinstance(record, Entry):
            entries = self.entries.setdefault(number, [])
            if len(entries) == ENTRIES_A_TRANSFER:
                raise Violation(f"transfer {number} has another entry: {line}")
            entries.append(record)
        else:
            self._add_receipt(record, line)

    def _add_opening(self, entry: Entry, line: Line) -> None:
        if entry.account in self._opening:
            raise Violation(f"the account is opened twice: {line}")
        self._opening[entry.account] = entry.amount

    def _add_receipt(self, receipt: Receipt, line: Line) -> None:
        offsets = self.carried_out.setdefault((receipt.topic, receipt.partition), set())
        if receipt.order in self.receipts or receipt.offset in offsets:
            raise Violation(f"the order is carried out a second time: {line}")
        self.receipts[receipt.order] = receipt
        offsets.add(receipt.offset)
