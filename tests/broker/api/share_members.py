"""Members of share groups, as the tests of ShareFetch and ShareAcknowledge use them: requests to a broker in this process."""

import asyncio

from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import share_acknowledge, share_fetch
from odradek.protocol.record_batch import iter_batches

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


async def begin_group(node, topic_id, *partitions, group_id="g", start_offset=0):
    """Initialize the state of a share group's partitions, as its coordinator does."""
    for partition in partitions or (0,):
        outcome = await done(
            node.core.share_persister.initialize(SharePartitionKey(group_id, topic_id, partition), 0, start_offset)
        )
        assert outcome is None


async def done(reply):
    """The response of a Reply of the broker's."""
    for _ in range(1000):
        if reply.done:
            return reply.response
        await asyncio.sleep(0)
    raise AssertionError("no reply")


class Member:
    """A member, with the epoch of its share session."""

    def __init__(self, node, topic_id, name="m", group_id="g"):
        self.node = node
        self.topic_id = topic_id
        self.name = name
        self.group_id = group_id
        self.epoch = 0

    async def fetch(self, *partitions, acknowledge=(), epoch=None, forget=(), version=None, **fields):
        """The response to a fetch that names partitions. ``acknowledge`` has (partition, first offset, last offset, type...)."""
        named = {each: [] for each in partitions}
        for partition, first, last, *types in acknowledge:
            named.setdefault(partition, []).append(share_fetch.AcknowledgementBatch(first, last, types))
        topics = [share_fetch.FetchPartition(*each) for each in named.items()]
        request = share_fetch.ShareFetchRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.name,
                "share_session_epoch": self.epoch if epoch is None else epoch,
                "max_wait_ms": 0,
                "min_bytes": 1,
                "max_bytes": 2**20,
                "max_records": 500,
                "batch_size": 500,
                "topics": [share_fetch.FetchTopic(self.topic_id, topics)] if topics else [],
                "forgotten_topics_data": [share_fetch.ForgottenTopic(self.topic_id, forget)] if forget else [],
            }
            | fields
        )
        if epoch is None:
            self.epoch += 1
        return await self.node.ask(ApiKey.SHARE_FETCH, request, version)

    async def acknowledge(self, *batches, epoch=None, **fields):
        """The response to an acknowledgement of (partition, first offset, last offset, type...)."""
        named = {}
        for partition, first, last, *types in batches:
            named.setdefault(partition, []).append(share_acknowledge.AcknowledgementBatch(first, last, types))
        partitions = [share_acknowledge.AcknowledgePartition(*each) for each in named.items()]
        request = share_acknowledge.ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[share_acknowledge.AcknowledgeTopic(self.topic_id, partitions)] if partitions else [],
            **fields,
        )
        if epoch is None:
            self.epoch += 1
        return await self.node.ask(ApiKey.SHARE_ACKNOWLEDGE, request)


def told(response):
    """Return for each partition of a fetch response: the names of its errors, the records acquired, the offsets sent."""
    assert response.error_code == 0, response
    return {
        data.partition_index: (
            *(_name(code) for code in (data.error_code, data.acknowledge_error_code) if code),
            *(tuple(each) for each in data.acquired_records),
            *_offsets(data.records),
        )
        for topic in response.responses
        for data in topic.partitions
    }


def errors(response):
    """The error of each partition in a response to an acknowledgement."""
    assert response.error_code == 0, response
    return {
        data.partition_index: _name(data.error_code) if data.error_code else None
        for topic in response.responses
        for data in topic.partitions
    }


def _name(code):
    return ErrorCode(code).name


def _offsets(records):
    data = records if isinstance(records, bytes) else records.read()
    spans = [(header.base_offset, header.last_offset) for _, header in iter_batches(data)]
    return [f"{spans[0][0]}-{spans[-1][1]}"] if spans else []
