"""Heartbeat: what a member is told, and what it is spared."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.heartbeat import HeartbeatRequest
from tests.broker.api.in_process import join_request
from tests.broker.api.offset_requests import commit


async def heartbeat(node, member, version=None):
    member_id, generation_id = member
    request = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation_id)
    return (await node.ask(ApiKey.HEARTBEAT, request, version)).error_code


async def test_a_member_learns_that_it_is_to_join_again(node):
    member_id, generation_id = await node.stable_member()
    node.broker.send(ApiKey.JOIN_GROUP, join_request(), 3)

    assert await heartbeat(node, (member_id, generation_id)) == ErrorCode.REBALANCE_IN_PROGRESS
    assert await heartbeat(node, (member_id, generation_id + 1)) == ErrorCode.ILLEGAL_GENERATION
    assert await heartbeat(node, ("nobody", generation_id)) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_is_not_sent_away_while_its_group_is_loaded(node):
    member = await node.stable_member()
    await node.restart()

    sent = node.broker.send(ApiKey.HEARTBEAT, HeartbeatRequest(group_id="g", member_id="nobody", generation_id=1), 4)
    assert sent.response.error_code == ErrorCode.NONE
    await node.broker.settle()
    assert await heartbeat(node, ("nobody", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await heartbeat(node, member) == ErrorCode.NONE


def test_a_group_without_a_name_has_no_members_though_it_may_have_offsets(client, topic):
    name, topic_id = topic
    assert commit(client, 8, [(name, topic_id, {0: 7})], "") == {(name, 0): ErrorCode.NONE}
    assert client.call(ApiKey.HEARTBEAT, 4, group_id="", member_id="nobody").error_code == ErrorCode.INVALID_GROUP_ID
