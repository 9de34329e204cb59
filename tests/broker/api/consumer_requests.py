"""What the tests of consumer groups ask of a broker in this process."""

from odradek.common.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

COMMIT = messages(ApiKey.OFFSET_COMMIT)
FETCH = messages(ApiKey.OFFSET_FETCH)
ALTER = messages(ApiKey.INCREMENTAL_ALTER_CONFIGS)


async def ask(node, api_key, version=None, **fields):
    return await node.ask(api_key, messages(api_key).request(**fields), version)


async def beat(node, member_id="m", epoch=0, group_id="g", **fields):
    """A heartbeat; one that joins is full."""
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": (), **fields}
    else:
        fields = {"topic_partitions": None, **fields}
    names = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch}
    return await ask(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, **names, **fields)


async def commit(node, epoch, member_id="m", version=9):
    """The error of a commit for partition 0 of ``t``."""
    partition = COMMIT.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    (topic,) = (
        await ask(
            node,
            ApiKey.OFFSET_COMMIT,
            version,
            group_id="g",
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[COMMIT.OffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
    ).topics
    return ErrorCode(topic.partitions[0].error_code)


async def fetch(node, member_id, epoch):
    """The error of a fetch of all offsets."""
    group = FETCH.OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
    (answer,) = (await ask(node, ApiKey.OFFSET_FETCH, 9, groups=[group])).groups
    return ErrorCode(answer.error_code)


async def set_configs(node, group, **configs):
    """(error, message) of setting configs of a group, whose names have ``_`` for dots."""
    values = [
        ALTER.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=str(value))
        for name, value in configs.items()
    ]
    resource = ALTER.AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=group, configs=values)
    (answer,) = (await ask(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource])).responses
    return ErrorCode(answer.error_code), answer.error_message
