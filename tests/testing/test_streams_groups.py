"""Streams groups in the test kit: tasks, their members, and the lag of all topics that the topology reads."""

from odradek.testing import Broker
from tests.broker.api.consumer_requests import commit
from tests.broker.api.streams_requests import NO_DELAY, StreamsNode

CONFIGS = {name.replace("_", "."): value for name, value in NO_DELAY.items()}


async def test_a_streams_group_has_its_tasks_and_the_lag_of_its_input_topics():
    async with Broker(topics={"t": 2}, configs=CONFIGS) as broker:
        node = StreamsNode(broker)
        await node.beat()
        await node.beat("m", 2)
        await broker.produce("t", ["a", "b"], partition=0)
        await broker.produce("words", ["c"], partition=2)
        assert await commit(node, 3) == 0
        group = (await broker.groups)["g"]
        assert (group.group_type, group.protocol, group.topics) == ("streams", "sticky", ("t", "words"))
        assert {str(task): (task.active, task.standby, task.moves_to) for task in group.tasks} == dict.fromkeys(
            ("0_0", "0_1", "1_0", "1_1", "1_2"), ("m", (), None)
        )
        [member] = group.members
        assert member.partitions == (("t", 0), ("t", 1), ("words", 0), ("words", 1), ("words", 2))
        # The commit is past the end of the partition.
        assert (group.offsets, group.lag["t", 0], group.lag["words", 2]) == ({("t", 0): 7}, 0, 1)
        await node.beat("n", process_id="q")
        await node.beat("m", 3)
        group = (await broker.groups)["g"]
        assert [(task.active, task.moves_to) for task in group.tasks if task.moves_to] == [(None, "n")] * 2
        assert "; task 1_2 nobody, moves to n" in str(group)
