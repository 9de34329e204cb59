"""Requests about the state of share partitions to a broker in this process."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

# The APIs, with the names of their topics' structs.
STATE_APIS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "InitializeStateData",
    ApiKey.READ_SHARE_GROUP_STATE: "ReadStateData",
    ApiKey.WRITE_SHARE_GROUP_STATE: "WriteStateData",
    ApiKey.DELETE_SHARE_GROUP_STATE: "DeleteStateData",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "ReadStateSummaryData",
}
INITIALIZE, READ, WRITE, DELETE, SUMMARY = STATE_APIS


async def find(node):
    """Have the topic created, as the sender of these requests does."""
    request = messages(ApiKey.FIND_COORDINATOR).request(key_type=2, coordinator_keys=("g:AQIDBAUGBwgJCgsMDQ4PEA:0",))
    response = await node.ask(ApiKey.FIND_COORDINATOR, request)
    assert response.coordinators[0].error_code == ErrorCode.NONE


async def ask_all(node, api_key, *topics, group_id="g", version=None):
    """The results as (topic id, item), for topics of (topic id, items of the request as dictionaries)."""
    classes = messages(api_key)
    struct = getattr(classes, STATE_APIS[api_key])
    asked = [struct(topic_id, [classes.PartitionData(**item) for item in items]) for topic_id, items in topics]
    response = await node.ask(api_key, classes.request(group_id=group_id, topics=asked), version)
    return [(topic.topic_id, item) for topic in response.results for item in topic.partitions]


async def ask(node, api_key, topic_id, version=None, **item):
    """The result for one partition; 0, if nothing else is said."""
    [(told_id, told)] = await ask_all(node, api_key, (topic_id, [{"partition": 0, **item}]), version=version)
    assert told_id == topic_id
    return told
