"""DescribeShareGroupOffsets: start offsets and lags."""

from odradek.protocol.errors import ErrorCode
from tests.broker.api.share_offsets import describe

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_offsets_and_lags_are_those_of_the_share_coordinators(shares):
    topic_id = await shares.stable()
    await shares.produce(values=[b"a", b"b", b"c"])
    assert await describe(shares) == {"t": [(0, NONE, -1, -1), (1, NONE, -1, -1)]}
    state = shares.states.states["g", topic_id, 0]
    shares.states.states["g", topic_id, 0] = state._replace(start_offset=1, delivery_complete_count=1)
    assert await describe(shares, {"t": [0, 7], "no": [0]}) == {
        "t": [(0, NONE, 1, 1), (7, NONE, -1, -1)],
        "no": [(0, NONE, -1, -1)],
    }
    assert await describe(shares, group_id="no") == {}
    shares.states.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await describe(shares, {"t": [0]}) == {"t": [(0, NONE, -1, -1)]}
