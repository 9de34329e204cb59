"""StreamsGroupHeartbeat: DESCRIBE on each topic of the topology, and CREATE on the internal topics that are missing."""

import asyncio

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.broker.api.streams_requests import TOPOLOGY
from tests.broker.security.acl.test_groups import Clients, clients

JOIN = StreamsGroupHeartbeatRequest(
    group_id="g", member_id="m", rebalance_timeout_ms=9, topology=TOPOLOGY, active_tasks=[], standby_tasks=[], warmup_tasks=[]
)


async def beat(node):
    answer = await node.alice(ApiKey.STREAMS_GROUP_HEARTBEAT, JOIN)
    await asyncio.sleep(0)
    return answer


async def test_internal_topics_are_made_only_for_a_client_that_may_create_them():
    async with clients() as broker:
        node = Clients(broker)
        await node.create(partition_count=2)
        node.allow("READ GROUP g", "DESCRIBE TOPIC t", "DESCRIBE TOPIC words")
        assert (await beat(node)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        node.allow("DESCRIBE TOPIC counts", "CREATE TOPIC words")
        topics = node.core.controller.image.topics
        details = [status.status_detail for status in (await beat(node)).status]
        missing = "Internal topics are missing: counts, words"
        assert f"{missing}; Unauthorized to CREATE on topics counts." in details
        assert topics.keys().isdisjoint({"counts", "words"})
        node.allow("CREATE TOPIC counts")
        assert missing in [status.status_detail for status in (await beat(node)).status]
        assert topics.keys() >= {"counts", "words"}
