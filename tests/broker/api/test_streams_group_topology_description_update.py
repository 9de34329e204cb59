"""StreamsGroupTopologyDescriptionUpdate: refused, as by Kafka without a plugin, and never asked for."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from tests.broker.api.consumer_requests import ask
from tests.broker.api.in_process import new_broker
from tests.broker.api.streams_requests import StreamsNode

DESCRIPTION = TopologyDescription(
    subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[TopologyDescriptionNode(name="read")])]
)


async def update(node, **names):
    answer = await ask(node, ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, topology_description=DESCRIPTION, **names)
    return ErrorCode(answer.error_code), answer.error_message


async def test_a_description_is_refused_whoever_sends_it_and_is_not_stored(streams):
    joined = await streams.beat()
    before = await streams.describe(include_topology_description=True)
    reason = "The broker has no streams group topology description plugin configured."
    for group_id, member_id in (("g", "m"), ("g", "nobody"), ("none", "m"), ("", "")):
        assert await update(streams, group_id=group_id, member_id=member_id) == (ErrorCode.UNSUPPORTED_VERSION, reason)
    assert await streams.describe(include_topology_description=True) == before
    # Nothing is stored, and yet the next heartbeat does not ask for a description.
    answers = (joined, await streams.beat("m", joined.member_epoch))
    assert [answer.topology_description_required for answer in answers] == [False, False]


async def test_no_plugin_is_named_while_streams_groups_are_off():
    async with new_broker(group_coordinator_rebalance_protocols="classic,consumer") as broker:
        assert await update(StreamsNode(broker), group_id="g", member_id="m") == (ErrorCode.UNSUPPORTED_VERSION, None)
