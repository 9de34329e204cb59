"""A reply delivers one response, whenever somebody begins to wait for it."""

import pytest

from odradek.timing.reply import Reply


def test_who_waits_is_called_when_the_response_comes():
    reply, got = Reply(), []
    reply.when_done(got.append)
    assert got == []
    reply.complete("response")
    assert got == ["response"]
    assert reply.done


def test_who_comes_later_is_called_at_once():
    reply, got = Reply(), []
    reply.complete("response")
    reply.when_done(got.append)
    assert got == ["response"]


def test_a_second_response_is_refused():
    reply = Reply()
    reply.complete(1)
    with pytest.raises(RuntimeError):
        reply.complete(2)
