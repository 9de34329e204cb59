"""A gate in front of the handlers: what it lets pass, answers, refuses, delays and changes. All of it without a connection."""

import pytest

from odradek.broker.api import SERVED
from odradek.broker.network.dispatch import CloseConnection, Dispatcher
from odradek.broker.start.server import Broker, BrokerOptions
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load
from odradek.common.context import ANONYMOUS, CLOSE_CONNECTION, NO_RESPONSE, Reply, RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.memory_filesystem import MemoryFileSystem
from tests.raw_client import decode_response, encode_request

_m = messages(ApiKey.HEARTBEAT)
SESSION = Session("PLAINTEXT", ("10.0.0.1", 5))


class Gate:
    """Admits with ``verdict``; releases ``released``, or what it is given."""

    def __init__(self):
        self.verdict = None
        self.released = None
        self.admitted = []

    def admit(self, context, request):
        self.admitted.append((context, request))
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def release(self, context, response):
        if isinstance(self.released, Exception):
            raise self.released
        return response if self.released is None else self.released


class Setup:
    def __init__(self):
        self.gate = Gate()
        self.services = object()
        self.handled = []
        self.answer = _m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        self.dispatcher = Dispatcher(self.services, VirtualClock(), SERVED, lambda api_key: self.handle, self.gate)

    def handle(self, services, context, request):
        assert services is self.services
        self.handled.append(request)
        return self.answer

    def ask(self):
        frame = encode_request(ApiKey.HEARTBEAT, 4, 7, group_id="g", member_id="m")[4:]
        return self.dispatcher.dispatch(frame, SESSION, 0.0)


def told(chunks):
    """The error code of the response in ``chunks``."""
    correlation_id, response = decode_response(ApiKey.HEARTBEAT, 4, b"".join(chunks)[4:])
    assert correlation_id == 7
    return response.error_code


def refusal():
    return _m.HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)


@pytest.fixture
def setup():
    return Setup()


def test_a_gate_sees_who_asks_and_what_for(setup):
    setup.ask()
    [(context, request)] = setup.gate.admitted
    assert (context.session.principal, context.session.listener_name) == (ANONYMOUS, "PLAINTEXT")
    assert (context.api_key, request.group_id) == (ApiKey.HEARTBEAT, "g")


def test_what_passes_is_answered_by_its_handler(setup):
    assert told(setup.ask()) == ErrorCode.REBALANCE_IN_PROGRESS


def test_what_a_gate_answers_no_handler_sees(setup):
    setup.gate.verdict = refusal()
    assert told(setup.ask()) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert setup.handled == []


def test_a_gate_may_close_the_connection_or_leave_a_request_without_an_answer(setup):
    setup.gate.verdict = NO_RESPONSE
    assert setup.ask() == []
    setup.gate.verdict = CLOSE_CONNECTION
    with pytest.raises(CloseConnection):
        setup.ask()
    assert setup.handled == []


def test_a_request_that_is_held_back_is_handled_when_it_is_let_pass(setup):
    setup.gate.verdict = verdict = Reply()
    answer = setup.ask()
    assert not answer.done
    assert not answer.is_decided
    assert setup.handled == []
    verdict.complete(None)
    assert told(answer.response) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_request_that_is_held_back_may_be_refused_in_the_end(setup):
    setup.gate.verdict = verdict = Reply()
    answer = setup.ask()
    verdict.complete(refusal())
    assert told(answer.response) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert setup.handled == []


def test_a_request_that_was_held_back_may_have_to_wait_for_its_handler_too(setup):
    setup.gate.verdict = verdict = Reply()
    setup.answer = later = Reply()
    answer = setup.ask()
    verdict.complete(None)
    assert not answer.done
    later.complete(_m.HeartbeatResponse())
    assert told(answer.response) == ErrorCode.NONE


def test_an_answer_may_be_changed_on_its_way_out(setup):
    setup.gate.released = refusal()
    assert told(setup.ask()) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert len(setup.handled) == 1


def test_an_answer_may_be_lost_after_its_request_was_handled(setup):
    setup.gate.released = CLOSE_CONNECTION
    with pytest.raises(CloseConnection):
        setup.ask()
    assert len(setup.handled) == 1


def test_an_answer_may_be_held_back(setup):
    setup.gate.released = released = Reply()
    answer = setup.ask()
    assert len(setup.handled) == 1
    assert not answer.done
    released.complete(refusal())
    assert told(answer.response) == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_an_answer_that_comes_later_is_released_too(setup):
    setup.answer = later = Reply()
    later.is_decided = True
    setup.gate.released = refusal()
    answer = setup.ask()
    assert answer.is_decided
    later.complete(_m.HeartbeatResponse())
    assert told(answer.response) == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_message_that_needs_no_decoding_goes_through_the_gate_too(setup):
    request = _m.HeartbeatRequest(group_id="g")
    context = RequestContext(ApiKey.HEARTBEAT, 4, 1, "client", SESSION)
    assert setup.dispatcher.call(context, request) is setup.answer
    assert setup.handled == [request]
    setup.gate.verdict = refused = refusal()
    assert setup.dispatcher.call(context, request) is refused
    assert setup.handled == [request]


def test_a_message_is_handled_without_a_gate(setup):
    dispatcher = Dispatcher(setup.services, VirtualClock(), SERVED, lambda api_key: setup.handle)
    context = RequestContext(ApiKey.HEARTBEAT, 4, 1, "client", SESSION)
    assert dispatcher.call(context, _m.HeartbeatRequest(group_id="g")) is setup.answer


@pytest.mark.parametrize("step", ["verdict", "released"])
def test_a_gate_that_fails_is_a_fault_of_the_server(setup, step, capsys):
    setattr(setup.gate, step, ZeroDivisionError())
    assert told(setup.ask()) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("waits", [False, True])
def test_the_answer_to_a_request_whose_handler_raised_is_released_by_every_gate(setup, waits, capsys):
    seen = []
    setup.dispatcher.add_gate(Recorder("last", seen))
    setup.dispatcher.add_gate(Recorder("first", seen), first=True)
    setup.handle = lambda *_: 1 / 0
    if waits:
        setup.gate.verdict = verdict = Reply()
        answer = setup.ask()
        verdict.complete(None)
        chunks = answer.response
    else:
        chunks = setup.ask()
    assert told(chunks) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert seen == ["first admits", "last admits", "last releases", "first releases"]
    assert capsys.readouterr().err.count("a request failed") == 1


def test_a_gate_releases_the_answer_to_a_handler_that_failed_later(setup, capsys):
    seen = []
    setup.dispatcher.add_gate(Recorder("only", seen))
    setup.gate.release = lambda _, response: response._replace(throttle_time_ms=5)
    setup.answer = later = Reply()
    answer = setup.ask()
    later.complete(ZeroDivisionError())
    assert told(answer.response) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert seen == ["only admits", "only releases"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_gate_that_fails_later_is_a_fault_of_the_server(setup, capsys):
    setup.answer = later = Reply()
    setup.gate.released = ZeroDivisionError()
    answer = setup.ask()
    later.complete(_m.HeartbeatResponse())
    assert told(answer.response) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_produce_that_is_held_back_keeps_its_records_when_its_frame_is_overwritten():
    gate = Gate()
    gate.verdict = verdict = Reply()
    seen = []

    def handle(services, context, request):
        seen.extend(bytes(records) for _, batches in request.topics for _, records in batches)
        return NO_RESPONSE

    dispatcher = Dispatcher(None, VirtualClock(), SERVED, lambda api_key: handle, gate)
    records = bytes(range(1, 200))
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    buffer = bytearray(encode_request(ApiKey.PRODUCE, 9, acks=1, timeout_ms=1, topic_data=topics)[4:])
    dispatcher.dispatch(memoryview(buffer), SESSION, 0.0)
    buffer[:] = bytes(len(buffer))
    verdict.complete(None)
    assert seen == [records]


async def test_a_broker_is_started_with_its_gates():
    gate = Gate()
    gate.verdict = refused = refusal()
    config = load(overrides={"log.dirs": "/data"})
    disk = MemoryFileSystem()
    shared = SharedServer(config, clock=VirtualClock(), file_system=disk, background=InlineBackground())
    broker = Broker.start(shared, BrokerOptions(gates=[gate]))
    context = RequestContext(ApiKey.HEARTBEAT, 4, 1, "client", SESSION)
    assert broker.dispatcher.call(context, _m.HeartbeatRequest(group_id="g")) is refused


class Recorder(Gate):
    """A gate that notes in ``seen`` when it is asked."""

    def __init__(self, name, seen):
        super().__init__()
        self.name = name
        self.seen = seen

    def admit(self, context, request):
        self.seen.append(f"{self.name} admits")
        return super().admit(context, request)

    def release(self, context, response):
        self.seen.append(f"{self.name} releases")
        return super().release(context, response)


def test_a_request_passes_the_gates_in_order_and_its_answer_in_the_other(setup):
    seen = []
    setup.dispatcher.add_gate(Recorder("last", seen))
    setup.dispatcher.add_gate(Recorder("first", seen), first=True)
    setup.ask()
    assert seen == ["first admits", "last admits", "last releases", "first releases"]
    assert len(setup.gate.admitted) == 1


def test_what_one_gate_answers_the_gates_behind_it_do_not_see(setup):
    behind = Gate()
    setup.dispatcher.add_gate(behind)
    setup.gate.verdict = refusal()
    assert told(setup.ask()) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert behind.admitted == []


def test_a_gate_that_is_removed_is_not_asked(setup):
    setup.gate.verdict = refusal()
    setup.dispatcher.remove_gate(setup.gate)
    assert told(setup.ask()) == ErrorCode.REBALANCE_IN_PROGRESS
    setup.dispatcher.add_gate(setup.gate)
    assert told(setup.ask()) == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_request_that_one_gate_held_back_may_be_held_back_by_the_next_when_its_frame_is_gone():
    first, second = Gate(), Gate()
    first.verdict, second.verdict = Reply(), Reply()
    seen = []

    def handle(services, context, request):
        seen.extend(bytes(records) for _, batches in request.topics for _, records in batches)
        return NO_RESPONSE

    dispatcher = Dispatcher(None, VirtualClock(), SERVED, lambda api_key: handle, first)
    dispatcher.add_gate(second)
    records = bytes(range(1, 200))
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
    buffer = bytearray(encode_request(ApiKey.PRODUCE, 9, acks=1, timeout_ms=1, topic_data=topics)[4:])
    dispatcher.dispatch(memoryview(buffer), SESSION, 0.0)
    buffer[:] = bytes(len(buffer))
    first.verdict.complete(None)
    second.verdict.complete(None)
    assert seen == [records]


def test_a_fault_in_an_answer_that_comes_later_is_told_as_one_that_comes_at_once(setup, capsys):
    setup.answer = later = Reply().then(lambda _: 1 / 0)
    answer = setup.ask()
    later.complete(None)
    assert told(answer.response) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert capsys.readouterr().err.count("ZeroDivisionError") == 1
