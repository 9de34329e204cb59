"""The APIs of a controller's listener: which there are, and what each answers beyond what the controller decides."""

from importlib import import_module
from uuid import UUID

import pytest

from odradek.broker.api.controller import SERVED, module_of
from odradek.controller.metadata.client_quotas import Limit
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.quorum.forwarding import serialized_principal
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import add_raft_voter
from odradek.protocol.message_types.add_raft_voter import AddRaftVoterRequest
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.protocol.message_types.api_versions import ApiVersionsRequest
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.describe_cluster import DescribeClusterRequest
from odradek.protocol.message_types.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from odradek.protocol.message_types.envelope import EnvelopeRequest
from odradek.protocol.message_types.fetch import FetchRequest
from odradek.protocol.message_types.remove_raft_voter import RemoveRaftVoterRequest
from tests.cases import each_case
from tests.controller.cluster.nodes import LISTENER, NODE_ID, NodeBed
from tests.project.documents import DOCS

PRINCIPAL = serialized_principal("User:someone")
HOST = bytes([10, 0, 0, 1])


@pytest.fixture
def bed():
    return NodeBed()


def start_broker(bed, broker_id=1):
    """Register and unfence a broker; its epoch."""
    registration = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=bed.node.cluster_id,
        incarnation_id=UUID(int=4),
        listeners=[Listener("PLAINTEXT", "h", 9092, 0)],
        features=[Feature(name, *levels) for name, levels in SUPPORTED_FEATURES.items()],
        log_dirs=[UUID(int=1000)],
    )
    epoch = bed.ask(ApiKey.BROKER_REGISTRATION, registration).broker_epoch
    heartbeat = BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=bed.node.log.end_offset)
    assert not bed.ask(ApiKey.BROKER_HEARTBEAT, heartbeat).is_fenced
    return epoch


def frame_of(api_key, request, version=None):
    version = SERVED[api_key].max_version if version is None else version
    return b"".join(request_encoder(api_key, version)(11, "client", request))[4:]


def ask_in_envelope(bed, frame, principal=PRINCIPAL, host=HOST):
    return bed.ask(ApiKey.ENVELOPE, EnvelopeRequest(frame, principal, host))


@each_case("api_key", SERVED)
def test_every_api_has_its_file(api_key):
    assert callable(import_module(module_of(api_key)).handle)


def test_the_documents_name_what_is_served():
    text = " ".join((DOCS / "compatibility.md").read_text().split())
    for api_key, served in SERVED.items():
        name = "".join(word.capitalize() for word in api_key.name.split("_"))
        versions = f"{served.min_version}-{served.max_version}" if served.max_version else "0"
        assert f"{name} {versions}" in text


def test_api_versions_tells_what_is_served_and_the_features(bed):
    asked = ApiVersionsRequest(client_software_name="kafka", client_software_version="4.4.0")
    response = bed.ask(ApiKey.API_VERSIONS, asked)
    assert {(api.api_key, api.min_version, api.max_version) for api in response.api_keys} == {
        (api_key, served.min_version, served.max_version) for api_key, served in SERVED.items()
    }
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert finalized == bed.node.controller.image.features
    assert {feature.name for feature in response.supported_features} == set(SUPPORTED_FEATURES)
    assert response.finalized_features_epoch == bed.node.log.end_offset - 1
    older = bed.ask(ApiKey.API_VERSIONS, asked, 3)
    assert {feature.name for feature in older.supported_features} == {"metadata.version"}


def test_a_request_in_an_envelope_is_answered_with_its_header(bed):
    start_broker(bed)
    asked = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=1)], timeout_ms=1000)
    response = ask_in_envelope(bed, frame_of(ApiKey.CREATE_TOPICS, asked, 6))
    assert response.error_code == ErrorCode.NONE
    assert response.response_data[:4] == (11).to_bytes(4, "big")
    answer = response_decoder(ApiKey.CREATE_TOPICS, 6)(response.response_data)
    assert [(topic.name, topic.error_code, topic.num_partitions) for topic in answer.topics] == [("t", 0, 2)]
    assert bed.node.controller.image.topics["t"].partitions[0].replicas == (1,)


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b"", ErrorCode.UNSUPPORTED_VERSION),
        (b"\x7f\xff\0\0\0\0\0\0\xff\xff", ErrorCode.UNSUPPORTED_VERSION),
        (frame_of(ApiKey.CREATE_TOPICS, CreateTopicsRequest())[:9], ErrorCode.UNSUPPORTED_VERSION),
        (b"\0\x13\0\x63" + bytes(20), ErrorCode.UNSUPPORTED_VERSION),
        (frame_of(ApiKey.FETCH, FetchRequest()), ErrorCode.INVALID_REQUEST),
        (frame_of(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest()), ErrorCode.INVALID_REQUEST),
    ],
    ids=["empty", "unknown api", "cut off", "unknown version", "fetch", "heartbeat"],
)
def test_what_brokers_do_not_forward_is_refused(bed, frame, error):
    assert ask_in_envelope(bed, frame).error_code == error


@pytest.mark.parametrize("principal", [b"", b"\0\0", b"\0\0\x05Us", b"\0\0\x03\xff\xff\x02x"])
def test_a_principal_that_cannot_be_read_is_refused(bed, principal):
    frame = frame_of(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest())
    assert ask_in_envelope(bed, frame, principal).error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


def test_an_address_that_is_none_is_refused(bed):
    frame = frame_of(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest())
    assert ask_in_envelope(bed, frame, host=b"\1\2\3").error_code == ErrorCode.INVALID_REQUEST


def test_the_principal_and_the_address_of_the_client_come_along(bed):
    seen = []

    class Watch:
        def admit(self, context, request):
            if context.api_key is ApiKey.DESCRIBE_QUORUM:
                seen.append((context.session.principal, context.peer[0], context.client_id))

        def release(self, context, response):
            return response

    bed.node.dispatcher.add_gate(Watch())
    ask_in_envelope(bed, frame_of(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest()))
    assert seen == [("User:someone", "10.0.0.1", "client")]


def test_the_quorum_is_told_with_its_observers(bed):
    end_offset = bed.node.log.end_offset
    bed.fetch(end_offset - 1, 1)
    bed.clock.advance(100)
    bed.fetch(end_offset, 1)
    bed.clock.advance(200)
    topic = RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])
    response = bed.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest([topic]))
    [partition] = response.topics[0].partitions
    [voter], [observer] = partition.current_voters, partition.observers
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (NODE_ID, 1, end_offset)
    assert (voter.replica_id, voter.log_end_offset) == (NODE_ID, end_offset)
    assert (observer.replica_id, observer.replica_directory_id, observer.log_end_offset) == (9, UUID(int=77), end_offset)
    now_ms = bed.clock.now_ms()
    assert (observer.last_fetch_timestamp, observer.last_caught_up_timestamp) == (now_ms - 200, now_ms - 200)
    assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [(NODE_ID, 9093)]
    bed.clock.advance(300_000)
    response = bed.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest([topic]))
    assert not response.topics[0].partitions[0].observers


def test_no_other_partition_has_a_quorum(bed):
    topic = RequestTopicData("t", [RequestPartitionData(1)])
    response = bed.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest([topic]))
    [partition] = response.topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize(
    ("kraft_version", "voter_id", "added", "removed"),
    [
        (0, NODE_ID, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
        (1, NODE_ID, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND),
        (1, NODE_ID + 1, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_the_controller_stays_the_only_voter(kraft_version, voter_id, added, removed):
    bed = NodeBed(**{"controller_quorum_bootstrap_servers": "localhost:9093"} if kraft_version else {})
    assert bed.node.controller.kraft_version == kraft_version
    listeners = [add_raft_voter.Listener(LISTENER, "h", 9093)]
    voter = {"voter_id": voter_id, "voter_directory_id": bed.node.leader.directory_id}
    assert bed.ask(ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(listeners=listeners, **voter)).error_code == added
    assert bed.ask(ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(**voter)).error_code == removed
    others = [add_raft_voter.Listener("PLAINTEXT", "h", 9093)]
    invalid = bed.ask(ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(listeners=others, **voter))
    assert invalid.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(1, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (2, ErrorCode.NONE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_controllers_are_described(bed, endpoint_type, error):
    response = bed.ask(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=endpoint_type))
    assert response.error_code == error
    assert [(node.broker_id, node.host, node.port) for node in response.brokers] == [(NODE_ID, "127.0.0.1", 9093)] * (not error)


def test_what_a_broker_asks_reaches_the_controller_that_decides(bed):
    epoch = start_broker(bed)
    block = bed.ask(ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
    assert (block.error_code, block.producer_id_len) == (0, 1000)
    stale = bed.ask(ApiKey.ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch - 1))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_registers_itself_with_each_start(bed):
    def registered():
        return next(
            each for each in bed.node.controller.image.kept.records() if type(each).__name__ == "RegisterControllerRecord"
        )

    first = registered()
    assert (first.controller_id, [(each.name, each.port) for each in first.end_points]) == (NODE_ID, [("CONTROLLER", 9093)])
    bed.restart()
    assert registered().incarnation_id != first.incarnation_id


def test_quotas_are_there_after_a_restart(bed):
    entity = [RequestEntityData("user", "u")]
    entries = [RequestEntryData(entity, [OpData("producer_byte_rate", 5.0)]), RequestEntryData(entity[:0])]
    response = bed.ask(ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(entries))
    assert [result.error_code for result in response.entries] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    bed.restart()
    assert bed.node.controller.image.quotas.limit("producer_byte_rate", "u", "c") == Limit(5.0, "u", "")
