"""ShareGroupDescribe, and share groups in ListGroups."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.consumer_requests import ask

GONE = ErrorCode.UNSUPPORTED_VERSION


def partitions(response):
    return {each.topic_id: list(each.partitions) for each in response.assignment.topic_partitions}


async def test_groups_are_described_and_listed(shares):
    topic_id = await shares.stable()
    good, bad, empty = (await ask(shares, ApiKey.SHARE_GROUP_DESCRIBE, group_ids=["g", "no", ""])).groups
    assert (good.group_state, good.group_epoch, good.assignment_epoch, good.assignor_name) == ("Stable", 3, 3, "simple")
    (member,) = good.members
    (assigned,) = member.assignment.topic_partitions
    assert (member.member_id, assigned.topic_id, assigned.topic_name, list(assigned.partitions)) == ("m", topic_id, "t", [0, 1])
    assert (bad.error_code, bad.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group no not found.")
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    (listed,) = (await ask(shares, ApiKey.LIST_GROUPS, types_filter=["share"])).groups
    assert tuple(listed) == ("g", "share", "Stable", "share")
