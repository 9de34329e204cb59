"""What is small, what is not, and what is counted of the rest."""

import pytest

from odradek.broker.network.route import ResponseSize, is_small
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeResponse, DescribedGroup, Member
from odradek.protocol.message_types.describe_groups import DescribedGroup as ClassicGroup
from odradek.protocol.message_types.describe_groups import DescribedGroupMember, DescribeGroupsResponse
from odradek.protocol.message_types.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

pytestmark = pytest.mark.interpreted


def group(names, members=1):
    member = Member(subscribed_topic_names=[f"t{number}" for number in range(names)])
    return DescribedGroup(group_id="g", members=[member._replace(member_id=str(number)) for number in range(members)])


def producers(count, copies=1):
    partition = PartitionResponse(active_producers=[ProducerState()] * count)
    return DescribeProducersResponse(topics=[TopicResponse(name="t", partitions=[partition] * copies)])


def counted(response):
    size = ResponseSize()
    for _ in size.count(response):
        pass
    return size


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (ConsumerGroupDescribeResponse(groups=[]), True),
        (ConsumerGroupDescribeResponse(groups=[group(100)]), True),
        (ConsumerGroupDescribeResponse(groups=[group(100, members=20)]), False),
        (ConsumerGroupDescribeResponse(groups=[group(100)] * 20), False),
        (producers(990), True),
        (producers(1_000), False),
        (producers(50, copies=50), False),
    ],
)
def test_a_response_of_a_thousand_items_is_not_small(response, expected):
    assert is_small(response) is expected


def test_a_few_members_with_much_metadata_are_not_small():
    member = DescribedGroupMember(member_metadata=bytes(100_000))
    assert is_small(DescribeGroupsResponse(groups=[ClassicGroup(members=[member] * 2)]))
    assert not is_small(DescribeGroupsResponse(groups=[ClassicGroup(members=[member] * 3)]))


def test_items_count_each_time_and_objects_once():
    once, often = counted(producers(5_000)), counted(producers(5_000, copies=10))
    assert once.items == 5_002
    assert often.items == 10 * 5_001 + 1
    assert once.object_bytes <= often.object_bytes < 1.1 * once.object_bytes


def test_counting_can_be_left():
    assert len(list(ResponseSize().count(ConsumerGroupDescribeResponse(groups=[group(1, members=20_000)])))) >= 1
    assert len(list(ResponseSize().count(ConsumerGroupDescribeResponse(groups=[group(50)] * 20_000)))) >= 100


def test_counting_can_be_left_among_items_whose_arrays_are_empty():
    groups = [ClassicGroup(group_id=f"g{number}") for number in range(20_000)]
    assert len(list(ResponseSize().count(DescribeGroupsResponse(groups=groups)))) >= 20
