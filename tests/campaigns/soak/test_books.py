"""The books detect forbidden records."""

import pytest

from tests.campaigns.soak.bank import BOOKS, RECEIPTS, Order, Placed, opening, transfers
from tests.campaigns.soak.books import Books, Violation
from tests.campaigns.soak.readers import Line

ORDERS = {0: Order(0, 1, 2, 30), 1: Order(1, 2, 3, 5)}


class Log:
    """Numbers outputs as the partitions would."""

    def __init__(self):
        self._ends = dict.fromkeys(BOOKS, 0)

    def lines(self, outputs):
        lines = []
        for output in outputs:
            lines.append(Line(output.partition, self._ends[output.partition], output.value))
            self._ends[output.partition] += 1
        return lines

    @property
    def ends(self):
        return dict(self._ends)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def books(log):
    """Books in which the accounts are opened."""
    books = Books(ORDERS)
    books.add(log.lines(opening()))
    return books


def made(number, attempt="first", offset=0, *, is_doomed=False):
    return transfers([Placed("orders", 0, offset, ORDERS[number])], attempt, is_doomed=is_doomed)


def test_whole_transfers_leave_what_was_ordered_in_the_accounts(books, log):
    books.add(log.lines(made(0) + made(1, offset=1)))
    assert books.incomplete(books.begun(log.ends)) == set()
    balances = books.balances(books.begun(log.ends))
    assert [balances[account] for account in (0, 1, 2, 3)] == [1000, 970, 1025, 1005]


def test_a_transfer_of_which_a_part_is_below_the_ends_is_incomplete_until_the_rest_is_read(books, log):
    debit, *rest = made(0)
    books.add(log.lines([debit]))
    ends = log.ends
    assert books.incomplete(books.begun(ends)) == {0}
    books.add(log.lines(rest))
    assert books.incomplete(books.begun(ends)) == set()


def test_a_transfer_behind_the_ends_is_not_of_the_snapshot(books, log):
    ends = log.ends
    books.add(log.lines(made(0)))
    assert books.begun(ends) == set()


def test_an_order_below_the_committed_offsets_needs_a_receipt(books, log):
    books.add(log.lines(made(0, offset=0)))
    assert books.not_carried_out({("orders", 0): 1}) == {}
    assert books.not_carried_out({("orders", 0): 3}) == {("orders", 0): {1, 2}}


def test_an_aborted_record_is_a_violation(books, log):
    with pytest.raises(Violation, match="aborted record"):
        books.add(log.lines(made(0, is_doomed=True)))


def test_parts_of_two_attempts_are_a_violation(books, log):
    with pytest.raises(Violation, match="again by second"):
        books.add(log.lines(made(0, "first")[:1] + made(0, "second")[1:]))


@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_is_there_twice_is_a_violation(books, log, part):
    outputs = made(0)
    with pytest.raises(Violation, match=r"another entry|second time"):
        books.add(log.lines([*outputs, outputs[part]]))


def test_an_order_that_is_carried_out_under_two_numbers_is_a_violation(books, log):
    with pytest.raises(Violation, match="second time"):
        books.add(log.lines(made(0, offset=7) + made(1, offset=7)))


def test_entries_that_were_not_ordered_are_a_violation(log):
    books = Books({0: Order(0, 1, 2, 31)})
    books.add(log.lines(opening() + made(0)))
    with pytest.raises(Violation, match="the entries of"):
        books.balances(books.begun(log.ends))


def test_an_account_that_was_not_opened_is_a_violation(log):
    books = Books({})
    books.add(log.lines(opening()[1:]))
    with pytest.raises(Violation, match="accounts were opened"):
        books.balances(())


def test_offsets_that_go_back_are_a_violation(books):
    *_, first = made(0)
    *_, second = made(1, offset=1)
    with pytest.raises(Violation, match="comes after"):
        books.add([Line((RECEIPTS, 0), 8, first.value), Line((RECEIPTS, 0), 7, second.value)])
