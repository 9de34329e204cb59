"""What the handlers of group requests make of a coordinator that refuses, or is late."""

from types import SimpleNamespace

import pytest

from odradek.broker.context import Reply, RequestContext, Session
from odradek.broker.handlers import SERVED, load_handler
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

pytestmark = pytest.mark.interpreted

JOIN = messages(ApiKey.JOIN_GROUP)
SYNC = messages(ApiKey.SYNC_GROUP)
LEAVE = messages(ApiKey.LEAVE_GROUP)
DELETE = messages(ApiKey.DELETE_GROUPS)
FETCH = messages(ApiKey.OFFSET_FETCH)


class Runtime:
    """Keeps what it is handed, for the test to decide when and how it ends."""

    def __init__(self):
        self.writes = []

    def partitions(self):
        return [0, 1]

    def write(self, target, operation, reply=None):
        reply = Reply() if reply is None else reply
        self.writes.append((target, operation, reply.complete))
        return reply

    def read(self, target, operation):
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.fixture
def runtime():
    return Runtime()


@pytest.fixture
def ask(runtime):
    """Calls a handler; its response, which may be a Reply."""

    def call(api_key, request, version=None):
        version = SERVED[api_key].max_version if version is None else version
        context = RequestContext(api_key, version, 1, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
        return load_handler(api_key)(SimpleNamespace(groups=SimpleNamespace(runtime=runtime)), context, request)

    return call


def answer(reply):
    """The response in a reply that is complete."""
    assert type(reply) is Reply
    assert reply.done
    responses = []
    reply.when_done(responses.append)
    return responses[0]


class Shard:
    """Holds back what waits."""

    def join_group(self, context, request, reply):
        self.reply = reply

    sync_group = join_group


def hold(runtime, index=0):
    """Let a write that waits reach its shard; the way to answer it."""
    shard = Shard()
    runtime.writes[index][1](shard)
    return shard.reply.complete


@pytest.mark.parametrize("api_key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.LEAVE_GROUP])
def test_a_coordinator_s_refusal_is_the_response(ask, runtime, api_key):
    reply = ask(api_key, messages(api_key).request(group_id="g"))
    runtime.writes[0][2](KafkaError(ErrorCode.NOT_COORDINATOR))
    assert answer(reply).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("api_key", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
def test_a_request_that_waits_is_answered_by_its_shard(ask, runtime, api_key):
    reply = ask(api_key, messages(api_key).request(group_id="g"))
    respond = hold(runtime)
    assert not reply.done
    response = messages(api_key).response(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    respond(response)
    assert answer(reply) is response


@pytest.mark.parametrize(("version", "protocol_name"), [(6, ""), (7, None)])
def test_no_protocol_is_null_since_version_7(ask, runtime, version, protocol_name):
    reply = ask(ApiKey.JOIN_GROUP, JOIN.JoinGroupRequest(group_id="g"), version)
    hold(runtime)(JOIN.JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    assert answer(reply).protocol_name == protocol_name


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE), (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)],
)
def test_a_member_is_not_sent_away_while_its_group_is_loaded(ask, runtime, outcome, error):
    reply = ask(ApiKey.HEARTBEAT, messages(ApiKey.HEARTBEAT).HeartbeatRequest(group_id="g"))
    runtime.writes[0][2](KafkaError(outcome))
    assert answer(reply).error_code == error


def test_before_version_3_a_member_s_error_is_the_response_s(ask, runtime):
    reply = ask(ApiKey.LEAVE_GROUP, LEAVE.LeaveGroupRequest(group_id="g"), 2)
    runtime.writes[0][2](LEAVE.LeaveGroupResponse(members=[LEAVE.MemberResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)]))
    assert answer(reply) == LEAVE.LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)


def test_each_group_s_own_error_is_told_when_all_shards_have_answered(ask, runtime):
    reply = ask(ApiKey.DELETE_GROUPS, DELETE.DeleteGroupsRequest(groups_names=["a", "b", "a"]))
    assert [target for target, _, _ in runtime.writes] == ["a", "b"]
    runtime.writes[1][2](KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert not reply.done
    runtime.writes[0][2](DELETE.DeletableGroupResult(group_id="a"))
    assert answer(reply).results == [
        DELETE.DeletableGroupResult(group_id="a"),
        DELETE.DeletableGroupResult(group_id="b", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ]


def test_a_group_whose_shard_is_loading_is_described_by_that(ask):
    response = ask(ApiKey.DESCRIBE_GROUPS, messages(ApiKey.DESCRIBE_GROUPS).DescribeGroupsRequest(groups=["g"]))
    assert [(group.group_id, group.error_code) for group in response.groups] == [("g", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]


def test_groups_are_not_listed_while_some_are_loading(ask):
    response = ask(ApiKey.LIST_GROUPS, messages(ApiKey.LIST_GROUPS).ListGroupsRequest())
    assert (response.error_code, list(response.groups)) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


def test_groups_of_shards_that_are_elsewhere_are_not_listed(ask, runtime, monkeypatch):
    def read(partition, operation):
        if partition == 0:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return ["of partition 1"]

    monkeypatch.setattr(runtime, "read", read)
    response = ask(ApiKey.LIST_GROUPS, messages(ApiKey.LIST_GROUPS).ListGroupsRequest())
    assert (response.error_code, response.groups) == (ErrorCode.NONE, ["of partition 1"])


@pytest.mark.parametrize(
    ("version", "in_group", "in_partitions"), [(1, False, True), (2, True, True), (7, True, True), (8, True, False)]
)
def test_offsets_of_a_group_that_is_loading_are_refused_where_clients_look_for_it(ask, version, in_group, in_partitions):
    """aiokafka fetches with version 3 and looks at the partitions only: without an error there it begins anew."""
    topics = [FETCH.OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1))]
    asked = FETCH.OffsetFetchRequest(groups=[FETCH.OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = ask(ApiKey.OFFSET_FETCH, asked, version).groups
    loading, none = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE
    assert group.error_code == (loading if in_group else none)
    told = [(partition.committed_offset, partition.error_code) for topic in group.topics for partition in topic.partitions]
    assert told == ([(-1, loading)] * 2 if in_partitions else [])
