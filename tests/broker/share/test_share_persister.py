"""The order of a share partition's requests to its coordinator, whatever is repeated."""

from random import Random
from types import SimpleNamespace

from odradek.broker.share.share_persister import SharePersister
from odradek.coordinator.share.requests import ReadState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.broker.cluster.images import image_of
from tests.coordinator.share.bed import KEY

LOADING = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Setup:
    """A persister, and a coordinator that answers when the test says so. ``asked`` has "read", or a write's start offset."""

    def __init__(self):
        self.clock = VirtualClock()
        self.asked = []
        self.replies = []
        controller = SimpleNamespace(image=image_of({"__share_group_state": [1] * 3}))
        self.persister = SharePersister(controller, self.ask, Timer(self.clock), Random(1), node_id=1)

    def ask(self, request):
        self.asked.append("read" if isinstance(request, ReadState) else request.start_offset)
        self.replies.append(Reply())
        return self.replies[-1]

    def write(self, number):
        return self.persister.write(KEY, 0, 0, number, 0, ())

    def answer(self, *outcomes):
        """Answer what is asked first."""
        for outcome in outcomes:
            self.replies.pop(0).complete(outcome)


def test_writes_do_not_wait_for_each_other_and_a_read_waits_for_all_of_them():
    setup = Setup()
    first, second, read = setup.write(1), setup.write(2), setup.persister.read(KEY, 0)
    late = setup.write(3)
    assert setup.asked == [1, 2]
    setup.answer(None)
    assert first.done
    assert setup.asked == [1, 2]
    setup.answer(None)
    assert second.done
    assert setup.asked == [1, 2, "read", 3]
    setup.answer("state", None)
    assert (read.response, late.response) == ("state", None)


def test_what_comes_after_a_write_that_is_repeated_waits_for_it():
    setup = Setup()
    first = setup.write(1)
    setup.answer(LOADING)
    later = [setup.write(2), setup.persister.read(KEY, 0), setup.write(3)]
    other = setup.persister.write(KEY._replace(partition=1), 0, 0, 9, 0, ())
    assert setup.asked == [1, 9]
    setup.answer(None)
    assert other.done
    setup.clock.advance(2_000)
    assert setup.asked == [1, 9, 1]
    setup.answer(None)
    assert first.done
    assert setup.asked == [1, 9, 1, 2]
    setup.answer(None)
    assert setup.asked == [1, 9, 1, 2, "read", 3]
    setup.answer("state", None)
    assert all(each.done for each in later)


def test_what_has_waited_for_a_write_that_was_given_up_is_asked_once():
    setup = Setup()
    first = setup.write(0)
    setup.answer(LOADING)
    later = [setup.write(number) for number in (1, 2)]
    for _ in range(5):
        setup.clock.advance(40_000)
        setup.answer(LOADING)
    assert first.response == LOADING
    setup.answer(LOADING, None)
    assert [each.response for each in later] == [LOADING, None]
    assert setup.asked == [0] * 6 + [1, 2]


def test_thousands_that_have_waited_are_asked_without_recursion():
    setup = Setup()
    first = setup.write(0)
    setup.answer(LOADING)
    waiting = [setup.write(number) for number in range(1, 3_000)]
    setup.ask = None
    answered = Reply()
    answered.complete(None)
    setup.persister._ask_here = lambda _: answered
    setup.clock.advance(2_000)
    assert first.done
    assert all(each.done for each in waiting)


def test_nothing_is_kept_of_what_has_ended():
    setup = Setup()
    setup.write(1)
    setup.answer(None)
    assert not setup.persister._under_way
