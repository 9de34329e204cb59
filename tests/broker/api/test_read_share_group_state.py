"""ReadShareGroupState: the batches, and the fence that a read puts up."""

from odradek.protocol.errors import ErrorCode
from tests.broker.api.share_state_requests import INITIALIZE, READ, ask, find


async def test_a_read_fences_the_leaders_before(node):
    await find(node)
    topic_id = await node.create()
    told = await ask(node, READ, topic_id)
    assert (told.error_code, told.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )
    await ask(node, INITIALIZE, topic_id, state_epoch=1, start_offset=7)
    told = await ask(node, READ, topic_id, leader_epoch=5)
    assert (told.error_code, told.error_message, told.state_epoch, told.start_offset) == (ErrorCode.NONE, None, 1, 7)
    assert list(told.state_batches) == []
    assert (await ask(node, READ, topic_id, leader_epoch=4)).error_code == ErrorCode.FENCED_LEADER_EPOCH
