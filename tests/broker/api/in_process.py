"""A broker in this process, in memory and on a virtual clock, whose handlers are asked by messages."""

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.message_types.init_producer_id import InitProducerIdRequest
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.records import Record, build_batch
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock

CONFIGS = {
    "broker.rack": "r",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}


def new_broker(**configs):
    """``configs`` have ``_`` for dots."""
    overrides = {name.replace("_", "."): value for name, value in configs.items()}
    return SocketlessBroker(configs=CONFIGS | overrides, clock=VirtualClock(), seed=1)


class Ticking:
    """A clock each look at which takes a millisecond."""

    def __init__(self, clock):
        self._clock = clock
        self._looks = 0

    def monotonic_ms(self):
        self._looks += 1
        return self._clock.monotonic_ms() + self._looks

    def now_ms(self):
        return self._clock.now_ms()


class Node:
    """What tests ask of one broker. Every response is encoded in the version that was asked for."""

    def __init__(self, broker):
        self.broker = broker

    @property
    def core(self):
        return self.broker.core

    async def ask(self, api_key, request, version=None, **options):
        version = SERVED[api_key].max_version if version is None else version
        response = await self.broker.ask(api_key, request, version, **{"within_ms": 10_000} | options)
        if response is not None:
            assert response_encoder(api_key, version)(7, response)
        return response

    async def create(self, name="t", partition_count=1, **configs):
        """The id of a new topic."""
        asked = CreatableTopic(
            name=name,
            num_partitions=partition_count,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        (topic,) = (await self.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[asked]))).topics
        assert topic.error_code == ErrorCode.NONE
        return topic.topic_id

    async def produce(self, topic="t", index=0, values=(b"v",), timestamp=1, **fields):
        """The response of one partition, in a version that names topics."""
        batch = build_batch([Record(value=value, timestamp=timestamp) for value in values])
        request = ProduceRequest(**{"acks": -1, "timeout_ms": 1000, "topics": [(topic, [(index, batch)])]} | fields)
        response = await self.ask(ApiKey.PRODUCE, request, 12)
        return response.responses[0].partition_responses[0]

    async def join(self, group_id="g", member_id="", version=3, **fields):
        """The response to a JoinGroup: before version 4 a member needs no second one."""
        return await self.ask(ApiKey.JOIN_GROUP, join_request(group_id, member_id=member_id, **fields), version)

    async def stable_member(self, group_id="g", **fields):
        """(member id, generation) of the one member of a stable group."""
        joined = await self.join(group_id, **fields)
        assert joined.error_code == ErrorCode.NONE
        assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")]
        synced = await self.ask(
            ApiKey.SYNC_GROUP,
            SyncGroupRequest(
                group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
            ),
            3,
        )
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all")
        return joined.member_id, joined.generation_id

    async def producer(self, transactional_id="tx"):
        """(id, epoch) of a transactional producer."""
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        response = await self.ask(ApiKey.INIT_PRODUCER_ID, request, 5)
        assert response.error_code == ErrorCode.NONE
        return response.producer_id, response.producer_epoch

    def unload_groups(self):
        """Let go of all groups, as where another broker coordinates them."""
        self.core.groups.runtime.close()

    def unload_transactions(self):
        """Let go of all transactional ids, as where another broker coordinates them."""
        self.core.transactions.runtime.close()

    async def restart(self):
        """A new process on the same disk, which has not loaded anything yet."""
        await self.broker.stop()
        await self.broker.start()


def join_request(group_id="g", **fields):
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"m")]
    defaults = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer", "protocols": protocols}
    return JoinGroupRequest(group_id=group_id, **defaults | fields)
