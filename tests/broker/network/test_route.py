"""What is counted of requests on their way through dispatch, under a clock that moves when it is told to."""

import pytest

from odradek.broker.api import SERVED
from odradek.broker.network import route as route_module
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.messages import messages
from odradek.timing.clock import VirtualClock
from tests.raw_client import encode_request

_m = messages(ApiKey.DELETE_TOPICS)
SESSION = Session("PLAINTEXT", ("10.0.0.1", 5))


class Setup:
    """A dispatcher whose one handler takes ``takes_ms`` and returns ``answer``."""

    def __init__(self):
        self.clock = VirtualClock(monotonic_ms=1000)
        self.takes_ms = 0
        self.answer = _m.DeleteTopicsResponse()
        self.answered = []
        self.dispatcher = Dispatcher(None, self.clock, SERVED, lambda api_key: self._handle)

    def _handle(self, services, context, request):
        self.clock.advance(self.takes_ms)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def request(self, arrived_ms=None, version=6):
        frame = encode_request(ApiKey.DELETE_TOPICS, version)[4:]
        arrived_ms = self.clock.monotonic_ms() if arrived_ms is None else arrived_ms
        answer = self.dispatcher.dispatch(frame, SESSION, arrived_ms)
        if isinstance(answer, Reply):
            answer.when_done(self.answered.append)
        return answer

    @property
    def route(self):
        [route] = self.dispatcher.routes()
        return route

    def buckets(self):
        bounds = [*route_module.TOTAL_TIME_BOUNDS_MS, None]
        return {bound: count for bound, count in zip(bounds, self.route.buckets, strict=True) if count}


@pytest.fixture
def setup():
    return Setup()


def test_a_request_is_counted_under_its_api_and_version(setup):
    for version in (6, 5, 6):
        setup.request(version=version)
    assert {(route.api_key, route.version): route.requests for route in setup.dispatcher.routes()} == {
        (ApiKey.DELETE_TOPICS, 5): 1,
        (ApiKey.DELETE_TOPICS, 6): 2,
    }


def test_the_time_of_a_request_is_that_of_its_handler(setup):
    setup.takes_ms = 7
    setup.request()
    assert (setup.route.total_ms, setup.route.queue_ms, setup.route.remote_ms) == (7, 0, 0)
    assert setup.buckets() == {10: 1}


def test_a_time_on_a_bound_is_within_it_and_one_beyond_the_last_is_counted(setup):
    for setup.takes_ms in (10, 11, 30_000, 30_001):
        setup.request()
    assert setup.buckets() == {10: 1, 25: 1, 30_000: 1, None: 1}


def test_what_came_together_queues_behind_what_is_handled_first(setup):
    setup.takes_ms = 5
    for _ in range(3):
        setup.request(arrived_ms=1000)
    assert (setup.route.queue_ms, setup.route.total_ms) == (0 + 5 + 10, 5 + 10 + 15)


def test_a_request_that_waits_is_counted_when_it_is_answered(setup):
    setup.answer = reply = Reply()
    setup.takes_ms = 2
    assert not setup.request().done
    assert setup.route.requests == 0
    setup.clock.advance(40)
    reply.complete(_m.DeleteTopicsResponse())
    assert (setup.route.requests, setup.route.total_ms, setup.route.remote_ms) == (1, 42, 40)
    assert len(setup.answered) == 1


@pytest.mark.parametrize("answer", [CLOSE_CONNECTION, object()])
def test_who_completes_a_reply_that_cannot_be_sent_does_not_notice(setup, answer):
    setup.answer = reply = Reply()
    setup.request()
    reply.complete(answer)
    assert setup.answered == [None]


def test_a_reply_that_is_there_at_once_has_not_waited(setup):
    setup.answer = Reply()
    setup.answer.complete(_m.DeleteTopicsResponse())
    assert setup.request()
    assert (setup.route.requests, setup.route.remote_ms) == (1, 0)


def test_errors_are_counted_by_code(setup):
    codes = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_CONTROLLER)
    setup.answer = _m.DeleteTopicsResponse(responses=[_m.DeletableTopicResult(error_code=code) for code in codes])
    setup.request()
    setup.request()
    assert setup.route.errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 4, ErrorCode.NOT_CONTROLLER: 2}


def test_errors_of_a_response_that_waited_are_counted(setup):
    setup.answer = reply = Reply()
    setup.request()
    reply.complete(_m.DeleteTopicsResponse(responses=[_m.DeletableTopicResult(error_code=ErrorCode.REQUEST_TIMED_OUT)]))
    assert setup.route.errors == {ErrorCode.REQUEST_TIMED_OUT: 1}


def test_a_request_that_wants_no_answer_is_counted(setup):
    setup.answer = NO_RESPONSE
    assert setup.request() == []
    assert setup.route.requests == 1


def test_a_request_that_cannot_be_answered_is_not_counted(setup):
    setup.answer = CLOSE_CONNECTION
    with pytest.raises(CloseConnection):
        setup.request()
    with pytest.raises(MalformedMessage):
        setup.dispatcher.dispatch(encode_request(ApiKey.DELETE_TOPICS, 6)[4:-3], SESSION, 0)
    assert setup.route.requests == 0
