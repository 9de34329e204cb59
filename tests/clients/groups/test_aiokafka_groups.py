"""aiokafka's consumer groups and what its admin client says of groups, over real sockets.

aiokafka says its instance id when it joins and in no other request, so that of two members with one id the former is not fenced,
here as with Apache Kafka.
"""

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from tests.clients.groups.behaviour import GroupBehaviour, pytest_generate_tests  # noqa: F401  the hook is found here


class TestAiokafka(GroupBehaviour):
    make = "aiokafka"
    assignors = ("range", "roundrobin", "sticky")
    commits = ("sync", "auto")


async def test_a_group_is_listed_and_described_and_its_offsets_fetched(group):
    group.member("aiokafka", "a")
    group.settle("a")
    admin = AIOKafkaAdminClient(bootstrap_servers=group.broker.address)
    await admin.start()
    try:
        (described,) = await admin.describe_consumer_groups([group.group_id])
        listed = await admin.list_consumer_groups()
        offsets = await admin.list_consumer_group_offsets(group.group_id)
    finally:
        await admin.close()
    assert (group.group_id, "consumer") in {each[:2] for each in listed}
    ((error_code, group_id, state, *_),) = [each[:3] for each in described.groups]
    assert (error_code, group_id, state) == (0, group.group_id, "Stable")
    assert {place: each.offset for place, each in offsets.items()} == {
        TopicPartition(group.topic, partition): 1 for partition in range(4)
    }
