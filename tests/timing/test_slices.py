"""Long work in slices: when it is left, who goes first, and what becomes of its outcome."""

from collections import deque

import pytest

from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST, LIGHTEST, SLICE_MS, Slices


class Loop:
    """Turns of a loop, and a clock that each reading moves by ``step_ms``."""

    def __init__(self, step_ms: float) -> None:
        self._step_ms = step_ms
        self._now_ms = 0.0
        self._soon = deque()
        self.slices = Slices(self._read, self._soon.append)

    def _read(self):
        self._now_ms += self._step_ms
        return self._now_ms

    def turn(self):
        """One turn; False if nothing is due."""
        if self._soon:
            self._soon.popleft()()
            return True
        return False

    def turns(self) -> int:
        """Turns until nothing is due."""
        count = 0
        while self.turn():
            count += 1
        return count


def steps(count, notes=None, name=""):
    for step in range(count):
        if notes is not None:
            notes.append(f"{name}{step}")
        yield None
    return "done"


def test_work_is_done_at_once_where_the_clock_stands_still():
    loop = Loop(0)
    assert loop.slices.run(steps(10_000)).response == "done"
    assert loop.slices.slices == 1


def test_work_is_left_after_each_slice_and_others_have_a_turn():
    loop = Loop(SLICE_MS / 4)
    reply = loop.slices.run(steps(40))
    assert not reply.done
    assert loop.turns() == 10
    assert reply.response == "done"


def test_the_smallest_goes_first():
    loop = Loop(SLICE_MS)
    notes = []
    loop.slices.run(steps(4, notes, "large"), weight=9)
    loop.slices.run(steps(2, notes, "small"), weight=1)
    loop.turns()
    assert notes == ["large0", "small0", "small1", "large1", "large2", "large3"]


def test_of_equal_long_work_the_first_is_done_first():
    loop = Loop(SLICE_MS)
    notes = []
    names = ("first", "second", "third")
    for name in names:
        loop.slices.run(steps(9, notes, name))
    loop.turns()
    # New work has had a slice before that.
    assert notes[:3] == ["first0", "second0", "third0"]
    # Nor is it long in its next two slices.
    assert notes.index("third2") < notes.index("second3")
    assert notes.index("first8") < notes.index("second3")
    assert notes.index("second8") < notes.index("third3")


def test_new_work_is_done_before_long_work_goes_on_and_has_no_whole_slice_at_first():
    loop = Loop(SLICE_MS / 10)
    notes = []
    loop.slices.run(steps(50, notes, "long"))
    begun = len(notes)
    short = loop.slices.run(steps(1, notes, "short"))
    other = loop.slices.run(steps(50, notes, "other"))
    loop.turn()
    loop.turn()
    assert short.response == "done"
    assert not other.done
    assert [note for note in notes[begun:] if note.startswith("long")] == []
    assert 1 < sum(note.startswith("other") for note in notes) < begun


@pytest.mark.parametrize(("count", "most_ended"), [(7, 0), (100, 1)])
def test_work_of_some_slices_is_behind_one_long_work_at_most(count, most_ended):
    loop = Loop(SLICE_MS / 4)
    long = [loop.slices.run(steps(1_000)) for _ in range(count)]
    # By now each work that goes on has had so many slices that it is long.
    for _ in range(300):
        loop.turn()
    ended = sum(reply.done for reply in long)
    medium = loop.slices.run(steps(8))
    while not medium.done:
        loop.turn()
    assert sum(reply.done for reply in long) - ended <= most_ended
    loop.turns()
    assert all(reply.response == "done" for reply in long)


def test_of_much_long_work_little_is_half_done():
    loop = Loop(SLICE_MS)
    taken = [0] * 100

    def work(number):
        for _ in range(20):
            taken[number] += 1
            yield None
        taken[number] = 0

    for number in range(len(taken)):
        loop.slices.run(work(number))
    most = 0
    while loop.turn():
        most = max(most, sum(steps > 1 for steps in taken))
    assert taken == [0] * 100
    assert most <= 9


def test_large_requests_are_worked_on_one_after_the_other_from_their_second_slice_on():
    loop = Loop(SLICE_MS)
    notes = []
    loop.slices.run(steps(4, notes, "first"), weight=9)
    loop.slices.run(steps(4, notes, "second"), weight=9)
    loop.turns()
    assert notes[:2] == ["first0", "second0"]
    assert notes[2:] == ["first1", "first2", "first3", "second1", "second2", "second3"]


def test_the_end_of_work_goes_before_the_middle_of_other_work():
    loop = Loop(SLICE_MS)
    notes = []
    loop.slices.run(steps(3, notes, "middle"))
    loop.slices.run(steps(2, notes, "end"), LIGHTEST)
    loop.turns()
    assert notes == ["middle0", "end0", "end1", "middle1", "middle2"]


def test_work_waits_for_a_reply_without_taking_turns():
    loop = Loop(0)
    asked = Reply()

    def work():
        return (yield asked) + 1

    reply = loop.slices.run(work())
    assert not loop.turn()
    asked.complete(41)
    loop.turns()
    assert reply.response == 42


def test_a_reply_that_is_done_keeps_nobody_waiting():
    loop = Loop(0)
    asked = Reply()
    asked.complete(41)

    def work():
        return (yield asked) + 1

    assert loop.slices.run(work()).response == 42


def test_work_begun_within_work_takes_its_turn():
    loop = Loop(0)

    def work():
        return (yield loop.slices.run(steps(3)))

    reply = loop.slices.run(work())
    assert not reply.done
    loop.turns()
    assert reply.response == "done"


def test_an_exception_is_the_outcome_and_others_go_on():
    loop = Loop(SLICE_MS)

    def work():
        yield None
        raise ValueError("mine")

    reply = loop.slices.run(work())
    other = loop.slices.run(steps(2))
    loop.turns()
    assert isinstance(reply.response, ValueError)
    assert other.response == "done"


@pytest.mark.parametrize("when", ["before", "between"])
def test_no_slice_is_run_after_the_end(when):
    loop = Loop(SLICE_MS)
    notes = []
    loop.slices.run(steps(9, notes))
    if when == "between":
        loop.turn()
    loop.slices.close()
    loop.turns()
    assert len(notes) == (1 if when == "before" else 2)


def test_the_largest_is_not_left_waiting_for_ever():
    loop = Loop(SLICE_MS)
    large = loop.slices.run(steps(10), weight=9)

    def small_ones():
        while not large.done:
            loop.slices.run(steps(2), weight=1)
            yield

    for _ in small_ones():
        assert loop.slices.slices < 100
        loop.turn()
        loop.turn()
    assert large.response == "done"


def test_what_takes_minutes_leaves_most_slices_to_requests():
    loop = Loop(SLICE_MS)
    slow = loop.slices.run(steps(1_000), HEAVIEST)
    request = loop.slices.run(steps(9), weight=100_000_000)
    before = loop.slices.slices
    while not request.done:
        loop.turn()
    assert loop.slices.slices - before <= 9 * 4 / 3 + 2
    assert not slow.done
