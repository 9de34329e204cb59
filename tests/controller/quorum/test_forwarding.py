"""What becomes of forwarded requests whose answer is not the controller's."""

import asyncio
from types import SimpleNamespace

import pytest

from odradek.broker.api import SERVED
from odradek.client.api import RequestTimedOut, UnsupportedVersion
from odradek.common.context import OwnSession, RequestContext, Session
from odradek.controller.quorum.controller_channel import ControllerUnavailable
from odradek.controller.quorum.forwarding import ForwardingGate, ProducerIdBlocks
from odradek.protocol.api_keys import FORWARDABLE, ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.error_codes_in import compile_error_scan
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsResponse
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.message_types.envelope import EnvelopeResponse
from odradek.protocol.messages import messages
from tests.cases import each_case
from tests.client.net import settle

ITEMS = {
    ApiKey.CREATE_TOPICS: ("topics", "CreatableTopic", {"name": "t"}),
    ApiKey.DELETE_TOPICS: ("topics", "DeleteTopicState", {"name": "t"}),
    ApiKey.CREATE_PARTITIONS: ("topics", "CreatePartitionsTopic", {"name": "t", "count": 2, "assignments": None}),
    ApiKey.CREATE_ACLS: ("creations", "AclCreation", {"principal": "User:a"}),
    ApiKey.DELETE_ACLS: ("filters", "DeleteAclsFilter", {"principal_filter": "User:a"}),
    ApiKey.ALTER_CLIENT_QUOTAS: ("entries", "EntryData", {"entity": [], "ops": []}),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("upsertions", "ScramCredentialUpsertion", {"name": "u"}),
    ApiKey.ALTER_CONFIGS: ("resources", "AlterConfigsResource", {"resource_type": 2, "resource_name": "t"}),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("resources", "AlterConfigsResource", {"resource_type": 2, "resource_name": "t"}),
}


class Controller:
    """Part of ControllerChannel: returns or raises ``outcome``."""

    def __init__(self, outcome):
        self.outcome = outcome

    async def request(self, _api, request, timeout_ms):
        assert timeout_ms == 60_000
        self.asked = request
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def context_of(api_key, version, peer="127.0.0.1"):
    return RequestContext(api_key, version, 7, "client", Session("PLAINTEXT", (peer, 1)))


def request_of(api_key):
    """With one item, where a request has any."""
    classes = messages(api_key)
    if api_key not in ITEMS:
        return classes.request()
    field, name, values = ITEMS[api_key]
    return classes.request(**{field: [classes.classes["request"][name](**values)]})


async def answer(outcome, api_key=ApiKey.CREATE_TOPICS):
    gate = ForwardingGate(Controller(outcome))
    reply = gate.admit(context_of(api_key, SERVED[api_key].max_version), request_of(api_key))
    await settle()
    assert reply.done
    return gate.release(None, reply.response)


@each_case("api_key", sorted(FORWARDABLE))
@each_case(
    ("outcome", "code"),
    [
        (ControllerUnavailable("nobody"), ErrorCode.REQUEST_TIMED_OUT),
        (UnsupportedVersion("no envelopes", ApiKey.ENVELOPE, None), ErrorCode.UNSUPPORTED_VERSION),
        (RequestTimedOut("late"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_every_forwarded_request_is_answered_where_the_controller_does_not(api_key, outcome, code):
    response = await answer(outcome, api_key)
    codes = []
    compile_error_scan(api_key)(response, SimpleNamespace(note_error=codes.append))
    assert codes == [code]
    assert response_encoder(api_key, SERVED[api_key].max_version)(7, response)


async def test_the_envelope_names_principal_and_address():
    controller = Controller(ControllerUnavailable("nobody"))
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
    ForwardingGate(controller).forward(context_of(ApiKey.CREATE_TOPICS, 7, "fe80::1%eth0"), request)
    await settle()
    assert controller.asked.request_principal == b"\0\0\x05User\x0aANONYMOUS\0\0"
    assert controller.asked.client_host_address == bytes.fromhex("fe800000000000000000000000000001")
    assert controller.asked.request_data[:8] == bytes.fromhex("0013000700000007")


async def test_the_envelope_says_that_the_client_has_shown_a_token():
    controller = Controller(ControllerUnavailable("nobody"))
    context = context_of(ApiKey.CREATE_TOPICS, 7)
    context.session.token_authenticated = True
    ForwardingGate(controller).forward(context, CreateTopicsRequest())
    await settle()
    assert controller.asked.request_principal == b"\0\0\x05User\x0aANONYMOUS\1\0"


async def test_what_the_broker_is_to_refuse_itself_is_not_forwarded():
    gate = ForwardingGate(Controller(ControllerUnavailable("nobody")), lambda context: context.version == 1)
    request = request_of(ApiKey.RENEW_DELEGATION_TOKEN)
    assert gate.admit(context_of(ApiKey.RENEW_DELEGATION_TOKEN, 1), request) is None
    assert gate.admit(context_of(ApiKey.RENEW_DELEGATION_TOKEN, 2), request) is not None
    gate.close()


async def test_what_the_broker_itself_wants_is_asked_without_an_envelope():
    controller = Controller(CreateTopicsResponse())
    context = RequestContext(ApiKey.CREATE_TOPICS, 7, 7, "client", OwnSession("", ("127.0.0.1", 0)))
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
    reply = ForwardingGate(controller).forward(context, request)
    await settle()
    assert reply.response == CreateTopicsResponse()
    assert controller.asked is request


async def test_other_requests_are_not_forwarded():
    gate = ForwardingGate(Controller(ControllerUnavailable("nobody")))
    assert gate.admit(context_of(ApiKey.METADATA, 1), None) is None


async def test_an_answer_that_cannot_be_read_is_a_fault_that_dispatch_tells():
    assert isinstance(await answer(EnvelopeResponse(response_data=b"")), Exception)


async def test_a_closed_gate_answers_nothing():
    never = asyncio.get_running_loop().create_future()

    class Silent:
        async def request(self, *_):
            await never

    gate = ForwardingGate(Silent())
    reply = gate.admit(context_of(ApiKey.CREATE_TOPICS, 7), CreateTopicsRequest())
    await settle()
    gate.close()
    await settle()
    assert not reply.done


async def test_a_block_of_producer_ids_is_the_controllers():
    controller = Controller(AllocateProducerIdsResponse(producer_id_start=3000, producer_id_len=1000))
    reply = ProducerIdBlocks(controller, 7, lambda: 11).request()
    await settle()
    assert reply.response == range(3000, 4000)
    assert controller.asked == (7, 11)


@pytest.mark.parametrize(
    "outcome", [ControllerUnavailable("nobody"), AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]
)
async def test_without_a_block_of_producer_ids_clients_are_to_ask_again(outcome):
    reply = ProducerIdBlocks(Controller(outcome), 7, lambda: 11).request()
    await settle()
    assert isinstance(reply.response, KafkaError)
    assert reply.response.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
