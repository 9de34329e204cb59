"""AlterShareGroupOffsets."""

from odradek.protocol.errors import ErrorCode
from tests.broker.api.share_offsets import alter, answered

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_offsets_are_altered_only_without_members(shares):
    topic_id = await shares.stable()
    assert (await alter(shares, {"t": {0: 5}})).error_code == ErrorCode.NON_EMPTY_GROUP
    await shares.beat("m", -1)
    assert answered(await alter(shares, {"t": {0: 5, 9: 1}, "no": {0: 1}})) == {
        "t": [(0, NONE), (9, UNKNOWN)],
        "no": [(0, UNKNOWN)],
    }
    assert shares.states.states["g", topic_id, 0].start_offset == 5
    shares.states.failure = ErrorCode.FENCED_STATE_EPOCH
    assert answered(await alter(shares, {"t": {0: 6}})) == {"t": [(0, ErrorCode.FENCED_STATE_EPOCH)]}
    assert (await alter(shares, {}, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
