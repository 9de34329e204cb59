"""Requests about streams groups to a broker in this process."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.streams_group_heartbeat import KeyValue, Subtopology, TopicInfo, Topology
from tests.broker.api.consumer_requests import ask
from tests.broker.api.in_process import Node

COUNTS = TopicInfo(name="counts", topic_configs=[KeyValue(key="cleanup.policy", value="compact")])
TOPOLOGY = Topology(
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["t"], repartition_sink_topics=["words"]),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=[TopicInfo(name="words", partitions=3, replication_factor=1)],
            state_changelog_topics=[COUNTS],
        ),
    ]
)
NO_DELAY = {"group_streams_initial_rebalance_delay_ms": "0", "group_streams_assignment_interval_ms": "0"}


class StreamsNode(Node):
    async def beat(self, member_id="m", epoch=0, group_id="g", topology=TOPOLOGY, version=None, **fields):
        """A heartbeat; one that joins brings the topology."""
        if epoch == 0:
            tasks = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
            fields = {"rebalance_timeout_ms": 60_000, "topology": topology, "process_id": "p", **tasks, **fields}
        names = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch}
        answer = await ask(self, ApiKey.STREAMS_GROUP_HEARTBEAT, version, **names, **fields)
        # Internal topics are made in later turns of the loop.
        await self.broker.settle()
        return answer

    async def describe(self, group_id="g", **fields):
        (group,) = (await ask(self, ApiKey.STREAMS_GROUP_DESCRIBE, group_ids=[group_id], **fields)).groups
        return group
