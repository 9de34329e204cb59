"""JoinGroup: the coordinator's decision in the words of the version."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.in_process import join_request


@pytest.mark.parametrize(("version", "error"), [(3, ErrorCode.NONE), (4, ErrorCode.MEMBER_ID_REQUIRED)])
async def test_since_version_4_a_member_joins_with_the_id_it_was_given(node, version, error):
    joined = await node.join(version=version)

    assert joined.error_code == error
    assert joined.member_id.startswith("client-")
    again = await node.join(member_id=joined.member_id, version=version)
    assert (again.error_code, again.generation_id, again.leader) == (ErrorCode.NONE, 1, joined.member_id)


async def test_a_member_is_known_by_its_client_and_its_address(node):
    joined = await node.ask(ApiKey.JOIN_GROUP, join_request(), 3, client_id="consumer-7")

    (member,) = node.core.groups.runtime.read("g", lambda shard, offset: shard.describe_group("g", 5, offset)).members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "consumer-7", "/127.0.0.1")


async def test_a_client_without_an_id_joins_under_an_empty_one(node):
    joined = await node.ask(ApiKey.JOIN_GROUP, join_request(), 3, client_id=None)

    assert joined.member_id.startswith("-")


async def test_the_answer_waits_for_the_other_members(node):
    first = await node.join()
    second = node.broker.send(ApiKey.JOIN_GROUP, join_request(), 3)

    assert not second.done
    again = await node.join(member_id=first.member_id)
    assert (await node.broker.wait(second)).generation_id == again.generation_id == 2


async def test_who_waits_is_sent_away_when_the_group_moves(node):
    await node.join()
    waiting = node.broker.send(ApiKey.JOIN_GROUP, join_request(), 3)
    node.unload_groups()

    assert (await node.broker.wait(waiting)).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [8, 9])
async def test_a_leader_that_comes_back_need_not_assign_again(node, version):
    """Since version 9 it is told so (KIP-814); before, it is not told that it leads."""
    old, generation = await node.stable_member(version=version, group_instance_id="i")

    back = await node.join(version=version, group_instance_id="i")

    assert (back.error_code, back.generation_id) == (ErrorCode.NONE, generation)
    assert back.leader == (back.member_id if version == 9 else old)
    assert back.skip_assignment == (version == 9)
