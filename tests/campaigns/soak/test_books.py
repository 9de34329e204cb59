"""The books and the tape detect forbidden records."""

import pytest

from tests.campaigns.soak.bank import (
    ACCOUNTS,
    BOOKS,
    OPENING_BALANCE,
    ORDERS,
    RECEIPTS,
    Entry,
    Output,
    Placed,
    encode,
    ledger_partition,
    opening,
    order_of,
    place_of,
    transfers,
)
from tests.campaigns.soak.books import Books, Digests, Tape, Violation, effects
from tests.campaigns.soak.readers import Line


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


def add(books, lines):
    for line in lines:
        books.add(line)


def made(number, attempt="first", *, is_doomed=False, offset=None):
    (topic, index), place = place_of(number)
    return transfers([Placed(topic, index, place if offset is None else offset, order_of(number))], attempt, is_doomed=is_doomed)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def books(log):
    """Books in which the accounts are opened."""
    books = Books()
    add(books, log.lines(opening()))
    return books


def test_orders_move_money_between_two_accounts_and_have_places_of_their_own():
    orders = [order_of(number) for number in range(2_000)]
    assert all(order.payer != order.payee and order.amount > 0 for order in orders)
    assert {order.payer for order in orders} == {order.payee for order in orders} == set(range(ACCOUNTS))
    assert len({place_of(order.number) for order in orders}) == len(orders)


def test_whole_transfers_leave_what_was_ordered_in_the_accounts(books, log):
    add(books, log.lines(made(0) + made(1)))
    assert books.incomplete(log.ends) == set()
    expected = dict.fromkeys(range(ACCOUNTS), OPENING_BALANCE)
    for account, amount in effects(order_of(0)) + effects(order_of(1)):
        expected[account] += amount
    assert books.balances() == expected
    assert books.settled == 2


def test_a_transfer_of_which_a_part_is_below_the_ends_is_incomplete_until_the_rest_is_read(books, log):
    debit, *rest = made(0)
    add(books, log.lines([debit]))
    ends = log.ends
    assert books.incomplete(ends) == {0}
    add(books, log.lines(rest))
    assert books.incomplete(ends) == set()


def test_a_transfer_behind_the_ends_may_be_incomplete(books, log):
    ends = log.ends
    add(books, log.lines(made(0)[:1]))
    assert books.incomplete(ends) == set()
    assert list(books.begun) == [0]


def test_an_order_below_the_committed_offsets_needs_a_receipt(books, log):
    add(books, log.lines(made(0)))
    place, _ = place_of(0)
    assert books.not_carried_out({place: 1}) == {}
    assert books.not_carried_out({place: 3}) == {place: {1, 2}}


def test_an_order_with_a_receipt_is_to_be_below_the_committed_offset(books, log):
    add(books, log.lines(made(0) + made(2 * len(ORDERS))))
    place, _ = place_of(0)
    assert books.ahead({place: 3}) == {}
    assert books.ahead({place: 1}) == {place: {2}}
    assert books.ahead({place: 0}) == {place: {0, 2}}


def test_an_aborted_record_is_a_violation(books, log):
    with pytest.raises(Violation, match="aborted record"):
        add(books, log.lines(made(0, is_doomed=True)))


def test_parts_of_two_attempts_are_a_violation(books, log):
    with pytest.raises(Violation, match="again by second"):
        add(books, log.lines(made(0, "first")[:1] + made(0, "second")[1:]))


@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_is_there_twice_is_a_violation(books, log, part):
    outputs = made(0)
    with pytest.raises(Violation, match="a part is read of transfer 0"):
        add(books, log.lines([*outputs, outputs[part]]))


def test_a_third_entry_is_a_violation(books, log):
    debit, *_ = made(0)
    with pytest.raises(Violation, match="another entry"):
        add(books, log.lines([debit, debit, debit]))


def test_a_second_receipt_is_a_violation(books, log):
    *_, receipt = made(0)
    with pytest.raises(Violation, match="a second time"):
        add(books, log.lines([receipt, receipt]))


def test_an_order_that_is_not_where_its_receipt_says_is_a_violation(books, log):
    with pytest.raises(Violation, match="order 1 is at"):
        add(books, log.lines(made(1, offset=7)))


def test_entries_that_were_not_ordered_are_a_violation(books, log):
    *_, receipt = made(0)
    entries = [
        Output(ledger_partition(account), encode(Entry(0, "first", False, account, 2 * amount)))
        for account, amount in effects(order_of(0))
    ]
    with pytest.raises(Violation, match="the entries of"):
        add(books, log.lines([*entries, receipt]))


def test_an_account_that_was_not_opened_is_a_violation(log):
    books = Books()
    add(books, log.lines(opening()[1:]))
    with pytest.raises(Violation, match="accounts were opened"):
        books.balances()


def test_offsets_that_go_back_are_a_violation(books):
    *_, first = made(0)
    *_, second = made(len(ORDERS))
    with pytest.raises(Violation, match="comes after"):
        add(books, [Line((RECEIPTS, 0), 8, first.value), Line((RECEIPTS, 0), 7, second.value)])


def line(offset, value=b"x"):
    return Line((RECEIPTS, 0), offset, value)


def test_the_first_to_read_a_line_is_told_so_and_the_others_are_not():
    tape = Tape(["one", "other"])
    assert tape.take("one", line(3))
    assert not tape.take("other", line(3))
    tape.pass_by("one", 5)
    assert tape.positions == {"one": 5, "other": 4}


@pytest.mark.parametrize("second", [line(3, b"y"), line(4)])
def test_another_line_than_others_have_read_is_a_violation(second):
    tape = Tape(["one", "other"])
    tape.take("one", line(3))
    with pytest.raises(Violation, match="others have read"):
        tape.take("other", second)


def test_a_line_that_only_others_have_read_is_a_violation():
    tape = Tape(["one", "other"])
    tape.take("one", line(3))
    tape.pass_by("other", 3)
    with pytest.raises(Violation, match="other does not read"):
        tape.pass_by("other", 4)


def test_a_line_that_others_have_passed_by_is_a_violation():
    tape = Tape(["one", "other"])
    tape.pass_by("one", 4)
    with pytest.raises(Violation, match="others did not"):
        tape.take("other", line(3))


@pytest.mark.parametrize("changed", [{}, {1_500: b"y"}, {2_499: None}, {0: None}])
def test_digests_differ_where_a_line_is_missing_or_another(changed):
    before, after = Digests(), Digests()
    for offset in range(2_500):
        before.add(line(offset))
        if (value := changed.get(offset, b"x")) is not None:
            after.add(line(offset, value))
    if changed:
        with pytest.raises(Violation, match="the tape"):
            before.require_same(after, "the tape")
    else:
        before.require_same(after, "the tape")
