"""ReadShareGroupStateSummary: the state without its batches, also where there is none."""

from tests.broker.api.share_state_requests import INITIALIZE, SUMMARY, WRITE, ask, find


async def test_the_summary_needs_no_state_and_fences_nobody(node):
    await find(node)
    topic_id = await node.create()
    assert (await ask(node, SUMMARY, topic_id))[1:] == (0, None, 0, 0, -1, -1)
    await ask(node, INITIALIZE, topic_id, state_epoch=1, start_offset=5)
    assert (await ask(node, SUMMARY, topic_id, leader_epoch=9))[3:] == (1, 0, 5, 0)
    assert (await ask(node, WRITE, topic_id, state_epoch=1, leader_epoch=2, start_offset=8)).error_code == 0
    assert (await ask(node, SUMMARY, topic_id))[3:] == (1, 0, 8, -1)
