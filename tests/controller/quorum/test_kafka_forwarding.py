"""What clients ask the controller for reaches Apache Kafka's own, in every version, and is answered."""

import asyncio
from random import Random
from types import SimpleNamespace

import pytest
import pytest_asyncio

from odradek.broker.api import SERVED
from odradek.client.node_client import connect_to
from odradek.common.context import RequestContext, Session
from odradek.controller.quorum.controller_channel import ControllerChannel
from odradek.controller.quorum.forwarding import ForwardingGate, ProducerIdBlocks
from odradek.protocol.api_keys import FORWARDABLE, ApiKey
from odradek.protocol.error_codes_in import compile_error_scan
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import alter_client_quotas as quotas
from odradek.protocol.message_types import alter_configs, create_partitions, create_topics, delete_topics, update_features
from odradek.protocol.message_types import alter_user_scram_credentials as scram
from odradek.protocol.message_types import incremental_alter_configs as incremental
from odradek.protocol.message_types.add_raft_voter import AddRaftVoterRequest
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenRequest
from odradek.protocol.message_types.delete_acls import DeleteAclsRequest
from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from odradek.protocol.message_types.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.message_types.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.message_types.remove_raft_voter import RemoveRaftVoterRequest
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.message_types.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.message_types.unregister_controller import UnregisterControllerRequest
from tests.broker.api.acl_requests import creation as creation_of
from tests.broker.api.acl_requests import wanted
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.real_quorum import BROKER_ID, TIMEOUT_S, RealQuorum

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
SETTINGS = {
    "broker.session.timeout.ms": "600000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "a key of these tests",
}
TOPIC = 2


class Forwarding:
    """A gate in front of a quorum, and the epoch of the broker that it stands for."""

    def __init__(self, quorum, channel, epoch):
        self.quorum, self.channel = quorum, channel
        self.gate = ForwardingGate(channel)
        self.ids = ProducerIdBlocks(channel, BROKER_ID, lambda: epoch)

    async def ask(self, api_key, request, version=None, principal="User:ANONYMOUS"):
        version = SERVED[api_key].max_version if version is None else version
        context = RequestContext(api_key, version, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1), principal))
        return await until_done(self.gate.admit(context, request))


async def until_done(reply):
    done = asyncio.get_running_loop().create_future()
    reply.when_done(done.set_result)
    async with asyncio.timeout(TIMEOUT_S):
        response = await done
    if isinstance(response, Exception):
        raise response
    return response


def codes_in(api_key, response):
    codes = []
    compile_error_scan(api_key)(response, SimpleNamespace(note_error=codes.append))
    return codes


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def forwarding(tmp_path_factory):
    controllers = KafkaControllers(tmp_path_factory.mktemp("controllers"), 1, SETTINGS)
    try:
        controllers.start()
        quorum = RealQuorum(controllers)
        epoch = await quorum.register()
        channel = ControllerChannel("broker", lambda at: connect_to(*at), quorum.timer, Random(1))
        async with quorum.observing(tmp_path_factory.mktemp("observer")) as observed:
            await observed.until(lambda: observed.observer.leader is not None)
            channel.set_leader(observed.observer.leader)
            yield Forwarding(quorum, channel, epoch)
            channel.close()
        quorum.close()
    finally:
        controllers.close()


def creation(name):
    return create_topics.CreateTopicsRequest(
        topics=[create_topics.CreatableTopic(name=name, num_partitions=2, replication_factor=1)], timeout_ms=10_000
    )


def requests(name):
    """One that the controller accepts for each API, of a topic that there is; none that deletes it."""
    retention = alter_configs.AlterableConfig(name="retention.ms", value="1234")
    bytes_kept = incremental.AlterableConfig(name="retention.bytes", config_operation=0, value="99")
    cluster_metadata = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData(0)])
    return {
        ApiKey.CREATE_PARTITIONS: create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name=name, count=3, assignments=None)],
            timeout_ms=10_000,
            validate_only=True,
        ),
        ApiKey.CREATE_ACLS: CreateAclsRequest(creations=[creation_of(f"allow User:a READ TOPIC {name}")]),
        ApiKey.DELETE_ACLS: DeleteAclsRequest(filters=[wanted(name=name)]),
        ApiKey.ALTER_CONFIGS: alter_configs.AlterConfigsRequest(
            resources=[alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[retention])]
        ),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental.IncrementalAlterConfigsRequest(
            resources=[incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[bytes_kept])]
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name, [ReassignablePartition(partition_index=0, replicas=[BROKER_ID])])]
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsRequest(topics=None),
        ApiKey.ALTER_CLIENT_QUOTAS: quotas.AlterClientQuotasRequest(
            entries=[
                quotas.RequestEntryData([quotas.RequestEntityData("user", name)], [quotas.OpData("producer_byte_rate", 1.0)])
            ]
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: scram.AlterUserScramCredentialsRequest(
            upsertions=[scram.ScramCredentialUpsertion(name, 1, 4096, b"salt", b"salted")]
        ),
        ApiKey.UPDATE_FEATURES: update_features.UpdateFeaturesRequest(feature_updates=[]),
        ApiKey.DESCRIBE_QUORUM: DescribeQuorumRequest(topics=[cluster_metadata]),
    }


# These have tests of their own.
TOKENS = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
VOTERS = {ApiKey.ADD_RAFT_VOTER: AddRaftVoterRequest, ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterRequest}
NODES = {ApiKey.UNREGISTER_BROKER, ApiKey.UNREGISTER_CONTROLLER}
APART = TOKENS | NODES | VOTERS.keys() | {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.ELECT_LEADERS}


@pytest.mark.parametrize("api_key", sorted(FORWARDABLE - APART))
async def test_each_request_is_carried_out_in_each_version(forwarding, api_key, new_name):
    name = new_name()
    await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name))
    served = SERVED[api_key]
    for version in range(served.min_version, served.max_version + 1):
        response = await forwarding.ask(api_key, requests(name)[api_key], version)
        assert codes_in(api_key, response) == []


async def test_a_node_that_was_never_registered_cannot_be_unregistered(forwarding):
    response = await forwarding.ask(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=BROKER_ID + 77))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    response = await forwarding.ask(ApiKey.UNREGISTER_CONTROLLER, UnregisterControllerRequest(controller_id=77))
    assert response.error_code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED


@pytest.mark.parametrize("api_key", VOTERS)
async def test_the_controllers_refuse_a_change_of_their_voters(forwarding, api_key):
    for version in range(SERVED[api_key].max_version + 1):
        response = await forwarding.ask(api_key, VOTERS[api_key](cluster_id="other"), version)
        assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


async def test_tokens_are_created_renewed_and_expired_in_each_version(forwarding):
    async def once_known(api_key, request, version):
        """The controller hears of its own records behind the answer to who has asked for them."""
        while True:
            answer = await forwarding.ask(api_key, request, version, "User:a")
            if answer.error_code != ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
                return answer

    create, renew, expire = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN
    for version in range(1, 4):
        created = await forwarding.ask(create, CreateDelegationTokenRequest(max_lifetime_ms=-1), version, "User:a")
        assert (created.error_code, created.principal_name, len(created.hmac)) == (ErrorCode.NONE, "a", 64)
        renewal = RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=60_000)
        renewed = await once_known(renew, renewal, min(version, 2))
        assert renewed.error_code == ErrorCode.NONE
        assert created.issue_timestamp_ms < renewed.expiry_timestamp_ms < created.expiry_timestamp_ms
        refused = await forwarding.ask(renew, renewal, principal="User:b")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        expiry = ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1)
        assert (await once_known(expire, expiry, min(version, 2))).error_code == ErrorCode.NONE


async def test_topics_are_created_and_deleted_in_each_version(forwarding, new_name):
    served = SERVED[ApiKey.CREATE_TOPICS]
    names = {version: new_name() for version in range(served.min_version, served.max_version + 1)}
    for version, name in names.items():
        response = await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name), version)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [(name, ErrorCode.NONE)]
        if version == served.max_version:
            assert (response.topics[0].num_partitions, response.topics[0].replication_factor) == (2, 1)
        again = await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name), version)
        assert [topic.error_code for topic in again.topics] == [ErrorCode.TOPIC_ALREADY_EXISTS]
    for version, name in zip(range(1, 7), names.values(), strict=True):
        state = delete_topics.DeleteTopicState(name=name)
        request = delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=10_000)
        response = await forwarding.ask(ApiKey.DELETE_TOPICS, request, version)
        assert [(topic.name, topic.error_code) for topic in response.responses] == [(name, ErrorCode.NONE)]


async def test_an_election_that_is_not_needed_is_told_so(forwarding, new_name):
    name = new_name()
    await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name))
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=name, partitions=[0])], timeout_ms=10_000)
    for version in range(3):
        response = await forwarding.ask(ApiKey.ELECT_LEADERS, request, version)
        assert codes_in(ApiKey.ELECT_LEADERS, response) == [ErrorCode.ELECTION_NOT_NEEDED]


async def test_the_controller_knows_whose_request_it_is(forwarding, new_name):
    name = new_name()
    refused = await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name), principal="User:alice")
    assert [topic.error_code for topic in refused.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    accepted = await forwarding.ask(ApiKey.CREATE_TOPICS, creation(name))
    assert [topic.error_code for topic in accepted.topics] == [ErrorCode.NONE]


async def test_blocks_of_producer_ids_follow_each_other(forwarding):
    first = await until_done(forwarding.ids.request())
    second = await until_done(forwarding.ids.request())
    assert len(first) == len(second) == 1000
    assert second.start >= first.stop
