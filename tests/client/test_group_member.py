"""The assignment that a leader of a classic group makes, the subscription of a member, and its consumer's end."""

import asyncio
from unittest.mock import AsyncMock, Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.group_consumer import GroupConsumer
from odradek.client.group_member import range_assignment
from odradek.protocol.coordinator_records.consumer_protocol import encode_subscription, read_subscription
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.cases import each_case

TOPICS = ("a", "b", "c")


@each_case(
    ("partitions", "expected"),
    [
        (3, {"m1": {"t": [0, 1]}, "m2": {"t": [2]}}),
        (4, {"m1": {"t": [0, 1]}, "m2": {"t": [2, 3]}}),
        (1, {"m1": {"t": [0]}, "m2": {}}),
        (0, {"m1": {}, "m2": {}}),
    ],
    ids=str,
)
def test_partitions_are_dealt_in_ranges(partitions, expected):
    assert range_assignment({"t": partitions}, {"m2": ["t"], "m1": ["t"]}) == expected


@given(
    st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9)),
    st.dictionaries(st.text(min_size=1), st.lists(st.sampled_from(TOPICS), unique=True), min_size=1, max_size=5),
)
def test_each_partition_has_one_member_that_is_subscribed(topics, members):
    assigned = range_assignment(topics, members)
    for topic, count in topics.items():
        takers = [member for member, subscribed in members.items() if topic in subscribed]
        dealt = sorted(index for topics_of in assigned.values() for index in topics_of.get(topic, []))
        assert dealt == (list(range(count)) if takers else [])
        sizes = [len(assigned[member].get(topic, [])) for member in takers]
        assert not sizes or max(sizes) - min(sizes) <= 1
    assert all(set(those) <= set(members[member]) for member, those in assigned.items())


def test_a_subscription_is_read_as_it_was_written():
    written = read_subscription(encode_subscription(["orders", "ärger"]))
    assert (written.version, written.topics, written.user_data, written.owned) == (0, ["orders", "ärger"], b"", [])


async def test_a_close_that_is_cancelled_tells_so():
    class Cluster:
        timer = Timer(VirtualClock())

        async def sleep(self, _):
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.Event().wait()

    member = AsyncMock()
    member.join.return_value, member.committed.return_value = [], {}
    consumer = GroupConsumer(Cluster(), Mock(), member, AsyncMock())
    await consumer.keep_up()
    await asyncio.sleep(0)
    closing = asyncio.create_task(consumer.close())
    for _ in range(3):
        await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    member.leave.assert_not_called()
