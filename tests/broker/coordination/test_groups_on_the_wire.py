"""The classic group protocol over a raw socket: every version of every API, a group's life, restarts."""

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.raw_client import RawClient

SESSION_TIMEOUT_MS = 60_000
PROTOCOLS = [{"name": "range", "metadata": b"subscription"}]


def versions(api_key):
    return range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1)


@pytest.fixture
def connect(broker):
    """Opens connections, which are closed at the end."""
    connections = []

    def open_one():
        connections.append(RawClient(broker.host, broker.port))
        return connections[-1]

    yield open_one
    for connection in connections:
        connection.socket.close()


@pytest.fixture
def client(connect):
    return connect()


@pytest.fixture
def group(new_name):
    return new_name()


def _join_fields(group, version, member_id="", **fields):
    asked = {
        "group_id": group,
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": PROTOCOLS,
        **fields,
    }
    if version >= 1:
        asked["rebalance_timeout_ms"] = SESSION_TIMEOUT_MS
    return asked


def join(client, group, version=9, **fields):
    """Join, once more with a member id where that is asked for."""
    response = client.call(ApiKey.JOIN_GROUP, version, **_join_fields(group, version, **fields))
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        fields["member_id"] = response.member_id
        response = client.call(ApiKey.JOIN_GROUP, version, **_join_fields(group, version, **fields))
    return response


def sync(client, group, joined, version=5, assignments=(), generation=None):
    fields = {
        "group_id": group,
        "generation_id": joined.generation_id if generation is None else generation,
        "member_id": joined.member_id,
        "assignments": [{"member_id": member_id, "assignment": assignment} for member_id, assignment in assignments],
    }
    if version >= 5:
        fields |= {"protocol_type": "consumer", "protocol_name": "range"}
    return client.call(ApiKey.SYNC_GROUP, version, **fields)


def heartbeat(client, group, joined, version=4):
    fields = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    return client.call(ApiKey.HEARTBEAT, version, **fields).error_code


def leave(client, group, member_id, version=5):
    fields = {"members": [{"member_id": member_id}]} if version >= 3 else {"member_id": member_id}
    return client.call(ApiKey.LEAVE_GROUP, version, group_id=group, **fields)


def describe(client, group, version=6, **fields):
    (described,) = client.call(ApiKey.DESCRIBE_GROUPS, version, groups=[group], **fields).groups
    return described


def make_stable(client, group):
    joined = join(client, group)
    assert sync(client, group, joined, assignments=[(joined.member_id, b"mine")]).error_code == ErrorCode.NONE
    return joined


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins_in_every_version(client, group, version):
    joined = join(client, group, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.leader == joined.member_id
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, b"subscription")]


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_join_is_refused_in_every_version(client, group, version):
    refused = join(client, group, version, member_id="nobody")
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nobody")
    assert refused.protocol_name == (None if version >= 7 else "")


def test_in_version_0_the_session_timeout_is_the_rebalance_timeout_too(client, group, connect):
    joined = join(client, group, 0)
    sync(client, group, joined, 0)
    follower = connect()
    follower.send(ApiKey.JOIN_GROUP, 0, **_join_fields(group, 0))
    while describe(client, group).group_state != "PreparingRebalance":
        pass
    assert heartbeat(client, group, joined) == ErrorCode.REBALANCE_IN_PROGRESS
    again = join(client, group, 0, member_id=joined.member_id)
    assert (len(again.members), follower.receive(ApiKey.JOIN_GROUP, 0).generation_id) == (2, 2)


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_a_leader_s_assignment_is_given_out_in_every_version(client, group, version):
    joined = join(client, group)
    synced = sync(client, group, joined, version, [(joined.member_id, b"mine")])
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"mine")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_a_sync_is_refused_in_every_version(client, group, version):
    joined = join(client, group)
    assert sync(client, group, joined, version, generation=7).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_heartbeats_are_answered_in_every_version(client, group, version):
    joined = make_stable(client, group)
    assert heartbeat(client, group, joined, version) == ErrorCode.NONE
    leave(client, group, joined.member_id)
    assert heartbeat(client, group, joined, version) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_a_member_leaves_in_every_version(client, group, version):
    joined = make_stable(client, group)
    left = leave(client, group, joined.member_id, version)
    assert left.error_code == ErrorCode.NONE
    if version >= 3:
        assert [(member.member_id, member.error_code) for member in left.members] == [(joined.member_id, ErrorCode.NONE)]
    assert describe(client, group).group_state == "Empty"


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_who_is_not_there_cannot_leave_in_any_version(client, group, version):
    make_stable(client, group)
    left = leave(client, group, "nobody", version)
    error_codes = [member.error_code for member in left.members] if version >= 3 else [left.error_code]
    assert error_codes == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_a_group_is_described_in_every_version(client, group, version):
    joined = make_stable(client, group)
    described = describe(client, group, version)
    assert (described.error_code, described.group_state) == (ErrorCode.NONE, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"subscription", b"mine")


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_a_group_is_listed_in_every_version(client, group, version):
    make_stable(client, group)
    listed = client.call(ApiKey.LIST_GROUPS, version)
    assert listed.error_code == ErrorCode.NONE
    (found,) = [listing for listing in listed.groups if listing.group_id == group]
    assert found.protocol_type == "consumer"
    if version >= 4:
        assert found.group_state == "Stable"
    if version >= 5:
        assert found.group_type == "classic"


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted_in_every_version(client, group, version):
    joined = make_stable(client, group)
    missing = f"{group}-missing"

    def delete():
        results = client.call(ApiKey.DELETE_GROUPS, version, groups_names=[group, missing, group]).results
        return {result.group_id: result.error_code for result in results}

    assert delete() == {group: ErrorCode.NON_EMPTY_GROUP, missing: ErrorCode.GROUP_ID_NOT_FOUND}
    leave(client, group, joined.member_id)
    assert delete() == {group: ErrorCode.NONE, missing: ErrorCode.GROUP_ID_NOT_FOUND}
    assert describe(client, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_two_rebalances_when_one_of_them_leaves(client, connect, group):
    leader = make_stable(client, group)
    other = connect()
    pending = other.call(ApiKey.JOIN_GROUP, 9, **_join_fields(group, 9))
    other.send(ApiKey.JOIN_GROUP, 9, **_join_fields(group, 9, member_id=pending.member_id))
    while heartbeat(client, group, leader) != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    leader = join(client, group, member_id=leader.member_id)
    follower = other.receive(ApiKey.JOIN_GROUP, 9)
    assert (leader.generation_id, follower.generation_id, len(follower.members)) == (2, 2, 0)
    assignments = [(leader.member_id, b"a"), (follower.member_id, b"b")]
    assert sync(client, group, leader, assignments=assignments).assignment == b"a"
    assert sync(other, group, follower).assignment == b"b"
    leave(other, group, follower.member_id)
    assert heartbeat(client, group, leader) == ErrorCode.REBALANCE_IN_PROGRESS
    assert len(join(client, group, member_id=leader.member_id).members) == 1


def test_a_killed_broker_has_its_groups_back(broker_process):
    broker = broker_process(settings={"offsets.topic.num.partitions": 3})
    with RawClient(broker.host, broker.port) as client:
        joined = make_stable(client, "g")
    broker.kill9()
    broker.start()
    with RawClient(broker.host, broker.port) as client:
        assert heartbeat(client, "g", joined) == ErrorCode.NONE
        while (described := describe(client, "g")).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert (described.group_state, described.members[0].member_assignment) == ("Stable", b"mine")
        assert sync(client, "g", joined).assignment == b"mine"
        assert heartbeat(client, "g", joined) == ErrorCode.NONE


def test_a_broker_that_stops_tells_who_waits_to_look_elsewhere(broker_process):
    broker = broker_process(settings={"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 60_000})
    with RawClient(broker.host, broker.port) as client, RawClient(broker.host, broker.port) as other:
        pending = client.call(ApiKey.JOIN_GROUP, 9, **_join_fields("g", 9))
        client.send(ApiKey.JOIN_GROUP, 9, **_join_fields("g", 9, member_id=pending.member_id))
        while describe(other, "g").group_state != "PreparingRebalance":
            pass
        broker.stop()
        assert client.receive(ApiKey.JOIN_GROUP, 9).error_code == ErrorCode.NOT_COORDINATOR
