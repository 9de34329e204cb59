"""A controller authorises what its listener is asked, and what brokers forward, with the client's principal and address."""

import pytest

from odradek.broker.api.controller import SERVED
from odradek.common.context import OwnSession, RequestContext, Session
from odradek.controller.quorum.forwarding import serialized_principal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenRequest
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest
from odradek.protocol.message_types.envelope import EnvelopeRequest
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
from tests.broker.api.acl_requests import creation
from tests.broker.security.acl.bed import OPEN, codes_in
from tests.controller.cluster.nodes import LISTENER, NodeBed

CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
# What they need is CLUSTER_ACTION; the others need ALTER or DESCRIBE, or look at each item.
OF_BROKERS = {
    *(ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE, ApiKey.BROKER_REGISTRATION),
    *(ApiKey.BROKER_HEARTBEAT, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ASSIGN_REPLICAS_TO_DIRS),
}
BY_ITEM = {
    *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS),
    *(ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
    *(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
}
OF_TOKENS = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}


@pytest.fixture
def bed():
    return NodeBed(
        authorizer_class_name="StandardAuthorizer",
        super_users="User:broker",
        delegation_token_secret_key="a key",
        delegation_token_expiry_check_interval_ms="1000",
    )


def asked(bed, principal, api_key, request, session=Session):
    context = RequestContext(api_key, SERVED[api_key].max_version, 7, None, session(LISTENER, ("::1", 1), principal))
    response = bed.node.dispatcher.call(context, request)
    return response.response if isinstance(response, Reply) else response


def allow(bed, *texts):
    request = CreateAclsRequest([creation(f"allow User:alice {text}") for text in texts])
    assert [result.error_code for result in asked(bed, "User:broker", ApiKey.CREATE_ACLS, request).results] == [0] * len(texts)


def forwarded(bed, api_key, request, principal="User:alice", by="User:broker", *, by_token=False):
    """The answer to a client's request in a broker's envelope; the envelope's own error."""
    version = SERVED[api_key].max_version
    frame = b"".join(request_encoder(api_key, version)(7, "client", request))[4:]
    envelope = EnvelopeRequest(frame, serialized_principal(principal, by_token), bytes((10, 0, 0, 1)))
    response = asked(bed, by, ApiKey.ENVELOPE, envelope)
    return response.error_code or response_decoder(api_key, version)(response.response_data)


@pytest.mark.parametrize("api_key", sorted(SERVED.keys() - BY_ITEM - OF_TOKENS - OPEN))
def test_whoever_has_no_rights_is_refused(bed, api_key):
    fields = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    request = messages(api_key).request(**fields if api_key is ApiKey.DESCRIBE_ACLS else {})
    assert codes_in(api_key, asked(bed, "User:alice", api_key, request)) == {CLUSTER}
    allow(bed, "CLUSTER_ACTION CLUSTER kafka-cluster")
    if api_key is not ApiKey.FETCH_SNAPSHOT:
        is_refused = CLUSTER in codes_in(api_key, asked(bed, "User:alice", api_key, request))
        assert is_refused is (api_key not in OF_BROKERS)


def test_a_forwarded_request_has_the_rights_of_its_client(bed):
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
    assert codes_in(ApiKey.CREATE_TOPICS, forwarded(bed, ApiKey.CREATE_TOPICS, topics)) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    allow(bed, "CREATE TOPIC t 10.0.0.2")
    assert codes_in(ApiKey.CREATE_TOPICS, forwarded(bed, ApiKey.CREATE_TOPICS, topics)) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    allow(bed, "CREATE TOPIC t 10.0.0.1")
    # There are no brokers to place it on.
    assert codes_in(ApiKey.CREATE_TOPICS, forwarded(bed, ApiKey.CREATE_TOPICS, topics)) == {ErrorCode.INVALID_REPLICATION_FACTOR}


def test_an_envelope_needs_cluster_action(bed):
    topics = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
    assert forwarded(bed, ApiKey.CREATE_TOPICS, topics, by="User:alice") == CLUSTER


def test_entries_are_created_by_envelope_and_described_by_the_controller(bed):
    allow(bed, "ALTER CLUSTER kafka-cluster")
    request = CreateAclsRequest([creation("allow User:bob READ TOPIC t")])
    assert [result.error_code for result in forwarded(bed, ApiKey.CREATE_ACLS, request).results] == [0]
    bed.restart()
    described = asked(bed, "User:alice", ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(2, None, 1, None, None, 1, 1))
    assert [(resource.resource_name, resource.acls[0].principal) for resource in described.resources] == [("t", "User:bob")]


def test_a_broker_in_the_controllers_process_may_do_everything(bed):
    request = BrokerHeartbeatRequest(broker_id=1)
    answer = asked(bed, "User:ANONYMOUS", ApiKey.BROKER_HEARTBEAT, request, OwnSession)
    assert codes_in(ApiKey.BROKER_HEARTBEAT, answer) & {CLUSTER} == set()


CREATE, RENEW, EXPIRE = (ApiKey[f"{verb}_DELEGATION_TOKEN"] for verb in ("CREATE", "RENEW", "EXPIRE"))


def test_a_client_of_a_broker_has_a_token_until_it_is_over(bed):
    made = forwarded(bed, CREATE, CreateDelegationTokenRequest(max_lifetime_ms=1500))
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (ErrorCode.NONE, "alice", "alice")
    bed.restart()
    known = bed.node.controller.image.kept.delegation_tokens
    assert set(known) == {made.token_id}
    renewed = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1)
    assert forwarded(bed, RENEW, renewed, "User:bob").error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert forwarded(bed, RENEW, renewed).error_code == ErrorCode.NONE
    bed.clock.advance(1000)
    assert set(known) == {made.token_id}
    bed.clock.advance(1000)
    assert set(known) == set()


@pytest.mark.parametrize("api_key", [CREATE, RENEW, EXPIRE])
def test_no_token_is_had_by_a_token_nor_at_the_controller_without_a_name(bed, api_key):
    request = messages(api_key).request()
    refused = {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert codes_in(api_key, forwarded(bed, api_key, request, by_token=True)) == refused
    assert codes_in(api_key, asked(bed, "User:alice", api_key, request)) == refused
    assert codes_in(api_key, forwarded(bed, api_key, request)) != refused


def test_a_token_of_another_needs_the_clients_right(bed):
    request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1)
    assert forwarded(bed, CREATE, request).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    allow(bed, "CREATE_TOKENS USER User:bob")
    assert forwarded(bed, CREATE, request).principal_name == "bob"
