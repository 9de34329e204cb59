"""The responses of one connection: in the order of the requests, whoever is answered first."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.response_queue import ResponseQueue
from odradek.timing.reply import Reply
from tests.cases import each_case


def frame(body):
    return len(body).to_bytes(4, "big") + body


def pending(*, is_decided=True):
    reply = Reply()
    reply.is_decided = is_decided
    return reply


@given(st.data())
def test_responses_leave_in_the_order_of_their_requests(data):
    waits = data.draw(st.lists(st.booleans(), max_size=12))
    queue = ResponseQueue()
    replies = []
    taken = []
    for number, waiting in enumerate(waits):
        if waiting:
            replies.append((number, pending()))
            queue.wait_for(replies[-1][1])
        else:
            queue.answer([frame(b"%d" % number)])
        if data.draw(st.booleans()):
            taken += queue.take()
    for number, reply in data.draw(st.permutations(replies)):
        reply.complete([frame(b"%d" % number)])
        if data.draw(st.booleans()):
            taken += queue.take()
    taken += queue.take()
    assert taken == [frame(b"%d" % number) for number in range(len(waits))]
    assert not queue.places


def test_what_stands_behind_a_response_that_is_not_there_is_not_ready():
    queue = ResponseQueue()
    queue.answer([frame(b"1")])
    reply = pending()
    queue.wait_for(reply)
    queue.answer([frame(b"3")])
    assert queue.take() == [frame(b"1")]
    assert queue.places
    reply.complete([frame(b"2")])
    assert queue.take() == [frame(b"2"), frame(b"3")]


@each_case(("depth", "may_begin"), [(1, False), (2, False), (3, True), (128, True)])
def test_a_request_begins_behind_as_many_as_its_depth_says(depth, may_begin):
    queue = ResponseQueue()
    for _ in range(2):
        queue.wait_for(pending())
    assert queue.may_begin(depth) is may_begin


def test_nothing_begins_behind_a_request_that_is_not_decided():
    queue = ResponseQueue()
    queue.wait_for(pending())
    undecided = pending(is_decided=False)
    queue.wait_for(undecided)
    assert not queue.may_begin(128)
    undecided.complete([frame(b"2")])
    assert queue.may_begin(128)


def test_any_request_begins_once_all_before_it_are_answered():
    queue = ResponseQueue()
    reply = pending(is_decided=False)
    queue.wait_for(reply)
    assert not queue.may_begin(1)
    reply.complete([frame(b"1")])
    assert queue.may_begin(1)
    assert queue.take() == [frame(b"1")]


def test_a_request_that_is_due_no_response_keeps_no_place():
    queue = ResponseQueue()
    queue.wait_for(pending())
    queue.answer([])
    assert len(queue.places) == 1


def test_a_response_that_cannot_be_told_breaks_the_queue_behind_those_before_it():
    queue = ResponseQueue()
    first, second = pending(), pending()
    queue.wait_for(first)
    queue.wait_for(second)
    queue.answer([frame(b"3")])
    second.complete(None)
    assert queue.take() == []
    assert not queue.is_broken
    first.complete([frame(b"1")])
    assert queue.take() == [frame(b"1")]
    assert queue.is_broken
    assert not queue.may_begin(128)


@each_case(("size", "count", "full"), [(10, 512, False), (10, 513, True), (600_000, 1, False), (600_000, 2, True)])
def test_enough_is_ready_when_there_are_many_chunks_or_bytes(size, count, full):
    queue = ResponseQueue()
    body = frame(bytes(size))
    assert [queue.answer([body]) for _ in range(count)][-1] is full
    assert len(queue.take()) == count
    assert not queue.answer([body])
