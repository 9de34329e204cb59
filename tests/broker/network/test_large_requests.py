"""Large requests through dispatch: in slices and pieces, within limits, and with the answer that a small one would get."""

from collections import deque

import pytest

from odradek.broker.api import SERVED
from odradek.broker.large import NoRoom, Pieces, ResponseMemory
from odradek.broker.network import large_requests
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.broker.network.large_requests import LARGE_BYTES, LargeRequests, most_items
from odradek.common.context import CLOSE_CONNECTION, Reply, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.message_types.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.timing.clock import VirtualClock
from odradek.timing.slices import SLICE_MS, Slices
from odradek.timing.timer import Timer
from tests.campaigns.hostile_requests.frames import LargeArray, large_frame
from tests.raw_client import decode_response, encode_request

SESSION = Session("PLAINTEXT", ("10.0.0.1", 5))
FIND = ApiKey.FIND_COORDINATOR
PIECES = Pieces(("coordinator_keys",), ("coordinators",), 100)
KEYS = 5_000


class Setup:
    """A dispatcher whose handler echoes the keys of FindCoordinator; each reading of the clock moves it by ``step_ms``."""

    def __init__(self, step_ms=0.0, in_pieces=True, gate=None, large_answers=(), limit_bytes=-1):
        self.soon = deque()
        self.now_ms = 0.0
        self.step_ms = step_ms
        self.pieces = []
        self.answer = self.echo
        self.slices = Slices(self.read, self.soon.append)
        self.clock = VirtualClock()
        self.memory = ResponseMemory(limit_bytes, Timer(self.clock), self.clock.monotonic_ms, self.soon.append, lambda: None)
        pieces = {FIND: PIECES} if in_pieces else {}
        large = LargeRequests(self.slices, self.memory, pieces.get, {ApiKey.PRODUCE}, (), large_answers.__contains__)
        self.dispatcher = Dispatcher(None, self.clock, SERVED, lambda api_key: self.handle, gate, large)

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

    def dispatch(self, frame, session=SESSION):
        return self.dispatcher.dispatch(frame[4:], session, 0)


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


def large_answer():
    return FindCoordinatorResponse(coordinators=[Coordinator(key=key, host="h") for key in EXPECTED])


def small_find():
    return encode_request(FIND, 4, coordinator_keys=["k"])


def test_a_large_answer_to_a_small_request_is_encoded_in_slices():
    setup = Setup(step_ms=SLICE_MS, large_answers={FIND})
    setup.answer = lambda _: large_answer()
    outcome = setup.dispatch(small_find())
    assert not outcome.done
    assert setup.turns() >= KEYS // 256
    assert keys_told(outcome.response) == EXPECTED


def test_a_small_answer_of_such_an_api_is_encoded_at_once():
    setup = Setup(step_ms=SLICE_MS, large_answers={FIND})
    assert keys_told(setup.dispatch(small_find())) == ["k"]
    assert setup.slices.slices == 0


def test_an_answer_that_is_too_large_is_given_up_before_it_is_encoded(monkeypatch):
    monkeypatch.setattr(large_requests, "_RESPONSE_BYTES", 10_000)
    setup = Setup(large_answers={FIND})
    setup.answer = lambda _: large_answer()
    with pytest.raises(MalformedMessage, match="the response has more than 10000 bytes"):
        setup.dispatch(small_find())
    assert setup.memory.held_bytes == 0


def test_a_response_that_becomes_too_large_is_given_up_before_all_pieces_are_handled(monkeypatch):
    monkeypatch.setattr(large_requests, "_RESPONSE_BYTES", 10_000)
    monkeypatch.setattr(large_requests, "_TIMES_ITS_REQUEST", 0)
    setup = Setup()
    setup.answer = lambda _: FindCoordinatorResponse(coordinators=[Coordinator()] * 1_000)
    with pytest.raises(MalformedMessage, match="the response has more than 10000 bytes"):
        setup.dispatch(find())
    assert len(setup.pieces) == 3


class Client:
    """A connection, as far as its session goes."""

    def __init__(self):
        self.session = Session("PLAINTEXT", ("10.0.0.1", 5))
        self.session.connection = self

    def lose(self):
        self.session.connection = None
        if self.session.held_response is not None:
            self.session.held_response.release()


def test_a_large_answer_is_held_until_its_client_has_taken_it():
    setup = Setup(large_answers={FIND})
    setup.answer = lambda _: large_answer()
    client = Client()
    chunks = setup.dispatch(small_find(), client.session)
    assert setup.memory.held_bytes == pytest.approx(sum(map(len, chunks)), rel=0.01)
    client.session.held_response.release()
    assert setup.memory.held_bytes == 0
    assert client.session.held_response is None


def test_an_answer_in_process_is_held_no_longer_than_it_is_made():
    setup = Setup(large_answers={FIND})
    setup.answer = lambda _: large_answer()
    setup.dispatch(small_find())
    assert setup.memory.held_bytes == 0


def test_while_others_have_the_memory_a_large_answer_waits_and_a_small_one_does_not():
    setup = Setup(large_answers={FIND}, limit_bytes=150_000)
    setup.answer = lambda _: large_answer()
    first, second, third = Client(), Client(), Client()
    setup.dispatch(small_find(), first.session)
    # One may pass the limit.
    setup.dispatch(small_find(), second.session)
    waiting = setup.dispatch(small_find(), third.session)
    setup.turns()
    assert not waiting.done
    setup.answer = setup.echo
    assert keys_told(setup.dispatch(small_find())) == ["k"]
    first.session.held_response.release()
    second.session.held_response.release()
    setup.turns()
    assert keys_told(waiting.response) == EXPECTED


def test_of_several_that_waited_for_memory_only_as_many_go_on_as_there_is_room_for():
    setup = Setup(step_ms=SLICE_MS, large_answers={FIND}, limit_bytes=10_000_000)
    # Few items, whose strings make it large: three megabytes.
    setup.answer = lambda _: FindCoordinatorResponse(coordinators=[Coordinator(host="h" * 10_000)] * 300)
    clients = [Client() for _ in range(20)]
    outcomes = [setup.dispatch(small_find(), client.session) for client in clients]
    most_bytes = 0
    while not all(outcome.done for outcome in outcomes):
        while setup.soon:
            setup.soon.popleft()()
            most_bytes = max(most_bytes, setup.memory.held_bytes)
        for client in clients:
            held = client.session.held_response
            if held is not None and held.since_ms is not None:
                held.release()
    assert 10_000_000 < most_bytes < 17_000_000


def test_who_finds_no_memory_for_half_a_minute_is_refused():
    setup = Setup(large_answers={FIND}, limit_bytes=150_000)
    setup.answer = lambda _: large_answer()
    clients = [Client(), Client(), Client()]
    *_, waiting = (setup.dispatch(small_find(), client.session) for client in clients)
    setup.clock.advance(29_999)
    assert not waiting.done
    setup.clock.advance(1)
    setup.turns()
    assert isinstance(waiting.response, MalformedMessage)
    assert "queued.max.response.bytes" in waiting.response.reason


def test_who_leaves_an_answer_untaken_while_others_wait_is_named():
    setup = Setup(large_answers={FIND}, limit_bytes=150_000)
    setup.answer = lambda _: large_answer()
    clients = [Client(), Client(), Client()]
    for client in clients[:2]:
        setup.dispatch(small_find(), client.session)
    setup.clock.advance(20_000)
    assert setup.memory.stalled() == frozenset()
    setup.dispatch(small_find(), clients[2].session)
    assert setup.memory.stalled() == {client.session for client in clients[:2]}


def test_an_answer_whose_client_is_gone_is_not_written_on():
    setup = Setup(step_ms=SLICE_MS, large_answers={FIND})
    setup.answer = lambda _: large_answer()
    client = Client()
    outcome = setup.dispatch(small_find(), client.session)
    while not setup.memory.held_bytes:
        setup.soon.popleft()()
    client.lose()
    assert setup.memory.held_bytes == 0
    setup.turns()
    assert outcome.response is None
    assert setup.memory.held_bytes == 0


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
    with pytest.raises(MalformedMessage, match="at most 20000 are allowed"):
        setup.dispatch(find())
    assert setup.slices.slices == 0


def test_more_bytes_than_allowed_are_refused_before_they_have_come(monkeypatch):
    monkeypatch.setattr(large_requests, "MOST_BYTES", 20_000)
    dispatcher = Setup().dispatcher
    dispatcher.ensure_allowed(FIND, 20_000)
    dispatcher.ensure_allowed(ApiKey.PRODUCE, 20_001)
    for key, name in ((FIND, "FIND_COORDINATOR"), (9_999, "API key 9999")):
        with pytest.raises(MalformedMessage, match=f"{name}: 20001 bytes: at most 20000 are allowed"):
            dispatcher.ensure_allowed(key, 20_001)


def test_an_answer_many_times_as_large_as_its_request_is_not_given(monkeypatch):
    monkeypatch.setattr(large_requests, "_RESPONSE_BYTES", 10_000)
    setup = Setup()
    setup.answer = lambda request: FindCoordinatorResponse(coordinators=[Coordinator(host="h" * 1000)] * 100)
    with pytest.raises(MalformedMessage, match="the response has more than"):
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


def test_an_answer_that_finds_no_room_while_it_is_made_closes_the_connection_with_one_line(capsys):
    setup = Setup(large_answers={FIND})
    made = Reply()
    setup.answer = lambda _: made
    outcome = setup.dispatch(small_find())
    made.complete(NoRoom())
    assert outcome.response is None
    line = capsys.readouterr().err
    assert "closing a connection" in line
    assert "FIND_COORDINATOR: responses to other clients use all of queued.max.response.bytes" in line
    assert "10.0.0.1:5" in line
    assert "Traceback" not in line


def test_free_memory_is_given_back_though_a_small_response_came_after_the_large_ones():
    clock, given_back = VirtualClock(), []
    timer = Timer(clock)
    memory = ResponseMemory(-1, timer, clock.monotonic_ms, lambda callback: None, lambda: given_back.append(clock.monotonic_ms()))
    large, small = Client(), Client()
    held = memory.begin(large.session)
    memory.grow(held, 100_000_000)
    memory.release(held)
    held = memory.begin(small.session)
    memory.grow(held, 100)
    clock.advance(1_000)
    assert not given_back
    memory.release(held)
    clock.advance(1_000)
    assert len(given_back) == 1
