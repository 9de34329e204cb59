"""Requests about share groups to a broker in this process, and share coordinators in memory."""

import asyncio

from odradek.coordinator.share.state import StateSummary
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.timing.reply import Reply
from tests.broker.api.consumer_requests import ask
from tests.broker.api.in_process import Node, new_broker


class MemoryStates:
    """Share coordinators that answer at once. ``failure`` is what they answer everything with."""

    def __init__(self):
        self.states = {}
        self.failure = None

    def initialize(self, key, state_epoch, start_offset):
        return self._answer(lambda: self.states.update({key: StateSummary(state_epoch, 0, start_offset, 0)}))

    def delete(self, key):
        return self._answer(lambda: self.states.pop(key, None) and None)

    def read_summary(self, key, leader_epoch):
        missing = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no state")
        return self._answer(lambda: self.states.get(key, missing))

    def read(self, _key, _leader_epoch):
        return self._answer(lambda: KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "no state"))

    def _answer(self, act):
        reply = Reply()
        reply.complete(act() if self.failure is None else KafkaError(self.failure, "told to"))
        return reply


class ShareNode(Node):
    """A broker with share groups."""

    def __init__(self, broker):
        super().__init__(broker)
        self.states = broker.core.share_persister = MemoryStates()

    async def turn_on(self):
        """Serve share groups, if that is not the default."""
        if not self.core.controller.image.features.get("share.version"):
            await self._set_level(1, 1)

    async def turn_off(self):
        if self.core.controller.image.features.get("share.version"):
            await self._set_level(0, 2)

    async def _set_level(self, level, upgrade_type):
        update = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=upgrade_type)
        response = await self.ask(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]))
        assert response.error_code == ErrorCode.NONE

    async def beat(self, member_id="m", epoch=0, group_id="g", **fields):
        """A heartbeat; one that joins subscribes to ``t``."""
        if epoch == 0:
            fields = {"subscribed_topic_names": ["t"], **fields}
        names = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch}
        return await ask(self, ApiKey.SHARE_GROUP_HEARTBEAT, **names, **fields)

    async def stable(self, partition_count=2):
        """The id of a new topic ``t``, all partitions of which the member ``m`` reads, in epoch 3."""
        topic_id = await self.create(partition_count=partition_count)
        await self.beat()
        await self.settle()
        response = await self.beat("m", 2)
        assert (response.member_epoch, response.error_code) == (3, ErrorCode.NONE)
        return topic_id

    async def settle(self):
        """Let the share coordinators be asked, and the outcome be noted."""
        for _ in range(3):
            await asyncio.sleep(0)


def new_share_broker(**configs):
    return new_broker(**{"group_share_assignment_interval_ms": "0"} | configs)
