"""SyncGroup: the assignment, or the coordinator's refusal."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.api.in_process import join_request


def request(member, **fields):
    member_id, generation_id = member
    return SyncGroupRequest(group_id="g", member_id=member_id, generation_id=generation_id, **fields)


async def test_a_member_of_a_stable_group_fetches_its_assignment(node):
    member = await node.stable_member()

    synced = await node.ask(ApiKey.SYNC_GROUP, request(member), 3)

    assert (synced.error_code, synced.assignment, synced.protocol_name) == (ErrorCode.NONE, b"all", "range")


@pytest.mark.parametrize(("version", "error"), [(4, ErrorCode.NONE), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)])
async def test_since_version_5_a_member_names_its_protocol(node, version, error):
    member = await node.stable_member()

    assert (await node.ask(ApiKey.SYNC_GROUP, request(member), version)).error_code == error
    named = request(member, protocol_type="consumer", protocol_name="range")
    assert (await node.ask(ApiKey.SYNC_GROUP, named, version)).error_code == ErrorCode.NONE


async def test_the_answer_waits_for_the_leader_s_assignment(node):
    leader = await node.join()
    waiting = node.broker.send(ApiKey.JOIN_GROUP, join_request(), 3)
    leader = await node.join(member_id=leader.member_id)
    follower = await node.broker.wait(waiting)

    synced = node.broker.send(ApiKey.SYNC_GROUP, request((follower.member_id, follower.generation_id)), 3)
    assert not synced.done
    assignments = [SyncGroupRequestAssignment(member_id=follower.member_id, assignment=b"half")]
    await node.ask(ApiKey.SYNC_GROUP, request((leader.member_id, leader.generation_id), assignments=assignments), 3)

    assert (await node.broker.wait(synced)).assignment == b"half"
