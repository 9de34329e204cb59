"""Requests to a broker that is no longer the coordinator: the error, in the shape of each response."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.in_process import join_request

MEMBERS = messages(ApiKey.LEAVE_GROUP)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (ApiKey.JOIN_GROUP, 3),
        (ApiKey.SYNC_GROUP, 3),
        (ApiKey.HEARTBEAT, 4),
        (ApiKey.LEAVE_GROUP, 2),
        (ApiKey.LEAVE_GROUP, 5),
        (ApiKey.END_TXN, 4),
        (ApiKey.END_TXN, 5),
        (ApiKey.DESCRIBE_TRANSACTIONS, 0),
    ],
)
async def test_a_coordinator_s_refusal_is_the_response(node, api_key, version):
    member_id, generation = await node.stable_member()
    producer_id, epoch = await node.producer("tx")
    node.unload_groups()
    node.unload_transactions()
    request = messages(api_key).request
    by_member = {"group_id": "g", "member_id": member_id, "generation_id": generation}
    asked = {
        ApiKey.JOIN_GROUP: join_request,
        ApiKey.SYNC_GROUP: lambda: request(**by_member),
        ApiKey.HEARTBEAT: lambda: request(**by_member),
        ApiKey.LEAVE_GROUP: lambda: request(group_id="g", members=[MEMBERS.MemberIdentity(member_id=member_id)]),
        ApiKey.END_TXN: lambda: request(transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, committed=True),
        ApiKey.DESCRIBE_TRANSACTIONS: lambda: request(transactional_ids=["tx"]),
    }[api_key]()
    answer = await node.ask(api_key, asked, version)
    if api_key == ApiKey.DESCRIBE_TRANSACTIONS:
        (answer,) = answer.transaction_states
        assert answer.transaction_state == ""
    assert (answer.error_code, list(getattr(answer, "members", ()))) == (ErrorCode.NOT_COORDINATOR, [])
