"""Large requests through dispatch: in slices and pieces, within limits, and with the answer that a small one would get."""

from collections import deque

import pytest

from odradek.broker.context import CLOSE_CONNECTION, Reply, Session
from odradek.broker.handlers import SERVED
from odradek.broker.network import large_requests
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.broker.network.large_requests import LARGE_BYTES, LargeRequests, most_items
from odradek.broker.pieces import Pieces
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.timing.clock import VirtualClock
from odradek.timing.slices import SLICE_MS, Slices
from tests.campaigns.hostile_requests.frames import LargeArray, large_frame
from tests.raw_client import decode_response, encode_request

SESSION = Session("PLAINTEXT", ("10.0.0.1", 5))
FIND = ApiKey.FIND_COORDINATOR
PIECES = Pieces(("coordinator_keys",), ("coordinators",), 100)
KEYS = 5_000


class Setup:
    """A dispatcher whose handler echoes the keys of FindCoordinator; each reading of the clock moves it by ``step_ms``."""

    def __init__(self, step_ms=0.0, in_pieces=True, gate=None, large_answers=()):
        self.soon = deque()
        self.now_ms = 0.0
        self.step_ms = step_ms
        self.pieces = []
        self.answer = self.echo
        self.slices = Slices(self.read, self.soon.append)
        large = LargeRequests(self.slices, {FIND: PIECES} if in_pieces else {}, {ApiKey.PRODUCE}, (), large_answers)
        self.dispatcher = Dispatcher(None, VirtualClock(), SERVED, lambda api_key: self.handle, gate, large)

    def read(self):
        self.now_ms += self.step_ms
        return self.now_ms

    def handle(self, services, context, request):
        self.pieces.append(len(request.coordinator_keys))
        return self.answer(request)

    def echo(self, request):
        return FindCoordinatorResponse(coordinators=[Coordinator(key=key, host="h") for key in request.coordinator_keys])

    def turns(self):
        count = 0
        while self.soon:
            self.soon.popleft()()
            count += 1
        return count

    def dispatch(self, frame):
        return self.dispatcher.dispatch(frame[4:], SESSION, 0)


def find(keys=KEYS, **large):
    return large_frame(FIND, 4, LargeArray(("coordinator_keys",), keys, "k", True, **large))


def keys_told(chunks):
    _, response = decode_response(FIND, 4, b"".join(chunks)[4:])
    return [coordinator.key for coordinator in response.coordinators]


EXPECTED = [f"k{number:08d}" for number in range(KEYS)]


def test_a_large_request_is_answered_as_one_by_a_handler_that_sees_pieces():
    setup = Setup()
    assert keys_told(setup.dispatch(find())) == EXPECTED
    assert setup.pieces == [PIECES.most_items] * (KEYS // PIECES.most_items)


def test_between_slices_the_loop_has_its_turns():
    setup = Setup(step_ms=SLICE_MS)
    reply = setup.dispatch(find())
    assert not reply.done
    # Decoding, handling and encoding: 256, 100 and 256 items at a time.
    assert setup.turns() >= KEYS // 256 + KEYS // 100 + KEYS // 256
    assert keys_told(reply.response) == EXPECTED


def test_an_api_without_pieces_is_handled_at_once():
    setup = Setup(in_pieces=False)
    assert keys_told(setup.dispatch(find())) == EXPECTED
    assert setup.pieces == [KEYS]


def test_a_small_request_is_not_sliced():
    setup = Setup(step_ms=SLICE_MS)
    frame = encode_request(FIND, 4, coordinator_keys=["k"] * 1000)
    assert len(frame) < LARGE_BYTES
    assert len(keys_told(setup.dispatch(frame))) == 1000
    assert setup.slices.slices == 0


def test_a_large_answer_to_a_small_request_that_had_to_wait_is_encoded_in_slices():
    setup = Setup(step_ms=SLICE_MS, large_answers={FIND})
    reply = Reply()
    setup.answer = lambda _: reply
    outcome = setup.dispatch(encode_request(FIND, 4, coordinator_keys=["k"]))
    reply.complete(FindCoordinatorResponse(coordinators=[Coordinator(key=key, host="h") for key in EXPECTED]))
    assert not outcome.done
    assert setup.turns() >= KEYS // 256
    assert keys_told(outcome.response) == EXPECTED


@pytest.mark.parametrize("in_pieces", [False, True])
def test_each_error_code_of_an_answer_is_counted_once(in_pieces):
    setup = Setup(in_pieces=in_pieces)
    unknown = Coordinator(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    setup.answer = lambda request: FindCoordinatorResponse(coordinators=[unknown] * len(request.coordinator_keys))
    setup.dispatch(find())
    (route,) = setup.dispatcher.routes()
    assert route.errors == {ErrorCode.COORDINATOR_NOT_AVAILABLE: KEYS}


def test_handlers_that_answer_later_are_waited_for_one_by_one():
    setup = Setup()
    replies = []

    def later(request):
        replies.append((Reply(), setup.echo(request)))
        return replies[-1][0]

    setup.answer = later
    outcome = setup.dispatch(find())
    for place in range(KEYS // PIECES.most_items):
        assert len(replies) == place + 1
        reply, response = replies[place]
        reply.complete(response)
        setup.turns()
    assert keys_told(outcome.response) == EXPECTED


class Gate:
    """Lets all pass, and notes what it sees."""

    def __init__(self):
        self.seen = []

    def admit(self, context, request):
        self.seen.append(len(request.coordinator_keys))

    def release(self, context, response):
        self.seen.append(len(response.coordinators))
        return response


def test_a_gate_is_asked_about_the_whole_request_once():
    gate = Gate()
    setup = Setup(gate=gate)
    reply = setup.dispatch(find())
    setup.turns()
    assert keys_told(reply.response) == EXPECTED
    assert gate.seen == [KEYS, KEYS]


@pytest.mark.parametrize(("in_pieces", "most"), [(True, 50_000), (False, 25_000)])
def test_more_items_than_allowed_are_refused_before_one_is_made(in_pieces, most):
    setup = Setup(in_pieces=in_pieces)
    keys = 100_000
    assert most_items(len(find(keys)), in_pieces=in_pieces) < keys
    assert most_items(len(find(keys)), in_pieces=in_pieces) >= most
    with pytest.raises(MalformedMessage, match="items"):
        setup.dispatch(find(keys))
    assert (setup.pieces, setup.slices.slices) == ([], 1)


def test_a_count_that_lies_is_refused():
    with pytest.raises(MalformedMessage, match="items"):
        Setup().dispatch(find(claimed=2**31 - 2))


def test_more_bytes_than_allowed_are_refused_unread(monkeypatch):
    monkeypatch.setattr(large_requests, "MOST_BYTES", 20_000)
    setup = Setup()
    with pytest.raises(MalformedMessage, match="allowed are 20000"):
        setup.dispatch(find())
    assert setup.slices.slices == 0


def test_more_bytes_than_allowed_are_refused_before_they_have_come(monkeypatch):
    monkeypatch.setattr(large_requests, "MOST_BYTES", 20_000)
    dispatcher = Setup().dispatcher
    dispatcher.ensure_allowed(FIND, 20_000)
    dispatcher.ensure_allowed(ApiKey.PRODUCE, 20_001)
    for key, name in ((FIND, "FIND_COORDINATOR"), (9_999, "API key 9999")):
        with pytest.raises(MalformedMessage, match=f"{name}: 20001 bytes: allowed are 20000"):
            dispatcher.ensure_allowed(key, 20_001)


def test_an_answer_many_times_as_large_as_its_request_is_not_given(monkeypatch):
    monkeypatch.setattr(large_requests, "_RESPONSE_BYTES", 10_000)
    setup = Setup()
    setup.answer = lambda request: FindCoordinatorResponse(coordinators=[Coordinator(host="h" * 1000)] * 100)
    with pytest.raises(MalformedMessage, match="a response of more than"):
        setup.dispatch(find())


def test_a_refusal_in_a_later_slice_is_the_outcome():
    setup = Setup(step_ms=SLICE_MS)
    reply = setup.dispatch(find()[:-4])
    setup.turns()
    assert isinstance(reply.response, MalformedMessage)


def test_the_first_error_of_a_whole_piece_is_the_answer():
    setup = Setup(in_pieces=True)
    answers = iter([ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])

    class Response(FindCoordinatorResponse):
        error_code = ErrorCode.NONE

    def answer(request):
        response = Response(*setup.echo(request))
        response.error_code = next(answers)
        return response

    setup.answer = answer
    assert keys_told(setup.dispatch(find())) == EXPECTED[100:200]


def test_a_handler_may_close_the_connection():
    setup = Setup()
    setup.answer = lambda request: CLOSE_CONNECTION
    with pytest.raises(CloseConnection):
        setup.dispatch(find())


def test_a_fault_of_a_handler_closes_the_connection_and_is_logged(capsys):
    setup = Setup()

    def fail(request):
        raise ZeroDivisionError

    setup.answer = fail
    with pytest.raises(CloseConnection):
        setup.dispatch(find())
    assert "a request failed" in capsys.readouterr().err
