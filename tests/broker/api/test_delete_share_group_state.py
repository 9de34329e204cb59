"""DeleteShareGroupState: there is no state behind it, whether or not there was one."""

from odradek.protocol.errors import ErrorCode
from tests.broker.api.share_state_requests import DELETE, INITIALIZE, READ, ask, find


async def test_the_state_is_gone(node):
    await find(node)
    topic_id = await node.create()
    await ask(node, INITIALIZE, topic_id)
    for _ in range(2):
        assert (await ask(node, DELETE, topic_id)).error_code == ErrorCode.NONE
        assert (await ask(node, READ, topic_id)).error_code == ErrorCode.INVALID_REQUEST
    assert (await ask(node, DELETE, topic_id, partition=1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
