"""A fetch whose client is throttled leaves its session as it was."""

from random import Random

import pytest

from odradek.broker.replica.fetch_sessions import FetchSessions, ReadableSessions
from odradek.protocol.errors import ErrorCode

from .test_fetch_sessions import ORDERS, answer, begin, data, request


@pytest.fixture
def sessions():
    return FetchSessions(3, Random(4))


def results(context, **by_partition):
    return [(partition, by_partition.get(f"p{partition.partition}", data())) for partition in context.partitions]


def incremental(sessions, session_id, epoch):
    return sessions.open(request(session_id, epoch), True, 0)


def test_what_would_be_told_is_what_is_selected(sessions):
    context = incremental(sessions, begin(sessions), 1)
    found = results(context, p1=data(records=b"x"), p2=data(high_watermark=11))
    assert [partition.partition for partition, _ in context.told(found)] == [1, 2]
    assert [partition.partition for partition, _ in context.told(found)] == [1, 2]
    assert [partition.partition for partition, _ in context.select(found)] == [1, 2]
    assert [partition.partition for partition, _ in context.told(found)] == [1]


def test_a_throttled_fetch_is_answered_in_its_session_and_told_the_same_next_time(sessions):
    session_id = begin(sessions)
    context = incremental(sessions, session_id, 1)
    context.told(results(context, p1=data(high_watermark=11)))
    context.throttle()
    assert (context.session_id, context.error_code) == (session_id, ErrorCode.NONE)
    context = incremental(sessions, session_id, 2)
    assert answer(context, p1=data(high_watermark=11)) == [1]


def test_a_throttled_full_fetch_begins_no_session(sessions):
    context = sessions.open(request(topics=[(ORDERS, (0, 1))]), True, 0)
    assert len(context.told(results(context))) == 2
    context.throttle()
    assert context.session_id == 0
    assert len(sessions) == 0


def test_a_throttled_fetch_that_another_has_overtaken_is_told_an_epoch_error(sessions):
    session_id = begin(sessions)
    context = incremental(sessions, session_id, 1)
    incremental(sessions, session_id, 2)
    context.throttle()
    assert context.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_what_may_not_be_read_is_told_with_the_rest(sessions):
    session_id = begin(sessions)
    readable = ReadableSessions(
        sessions,
        lambda _, partitions: [partition for partition in partitions if partition.partition == 0],
        lambda _: data(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )
    context = incremental(readable, session_id, 1)
    told = context.told(results(context, p1=data(high_watermark=11)))
    assert [partition.partition for partition, _ in told] == [1, 0]
    context.throttle()
    assert (context.session_id, context.error_code) == (session_id, ErrorCode.NONE)
