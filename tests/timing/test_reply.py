"""A reply delivers one response, whenever somebody begins to wait for it."""

import pytest

from odradek.timing.reply import Reply, all_of, replied


def test_who_waits_is_called_when_the_response_comes():
    reply, got = Reply(), []
    reply.when_done(got.append)
    assert got == []
    reply.complete("response")
    assert got == ["response"]
    assert reply.done


def test_who_comes_later_is_called_immediately():
    reply, got = Reply(), []
    reply.complete("response")
    reply.when_done(got.append)
    assert got == ["response"]


def test_a_second_response_is_refused():
    reply = Reply()
    reply.complete(1)
    with pytest.raises(RuntimeError):
        reply.complete(2)


@pytest.mark.parametrize("is_done_before", [False, True])
def test_a_response_is_converted_before_it_is_delivered(is_done_before):
    reply, got = Reply(), []
    if is_done_before:
        reply.complete(1)
    converted = reply.then(str)
    converted.when_done(got.append)
    if not is_done_before:
        reply.complete(1)
    assert got == ["1"]
    assert converted.response == "1"


def test_a_response_is_converted_by_one_owner():
    reply = Reply()
    reply.then(str)
    with pytest.raises(RuntimeError):
        reply.then(int)


def test_what_a_conversion_raises_is_the_owners_and_not_who_completes_the_reply():
    reply, got = Reply(), []
    reply.then(int).when_done(got.append)
    reply.complete("no number")
    assert [type(outcome) for outcome in got] == [ValueError]
    assert reply.done


def test_a_reply_has_one_owner():
    reply = Reply()
    reply.when_done(print)
    with pytest.raises(RuntimeError):
        reply.when_done(print)


def test_all_of_them_are_complete_with_the_last_one():
    first, last = Reply(), Reply()
    whole = all_of([first, replied(2), last])
    last.complete(3)
    assert not whole.done
    first.complete(1)
    assert whole.response == [1, 2, 3]
    assert all_of([]).response == []
