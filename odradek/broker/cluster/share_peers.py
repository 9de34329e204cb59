"""The requests of share groups to other brokers: for the state of share partitions (KIP-932), and dead letters (KIP-1191).

    InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState, DeleteShareGroupState, ReadShareGroupStateSummary

All requests for states of one turn of the event loop for one API, group and broker go into one request. Each broker has one
connection: a write waits for replication there, so many requests may be in flight. Kafka's class is PersisterStateManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.client.api import Api, ClientError
from odradek.client.apis import PRODUCE
from odradek.coordinator.share.requests import DeleteState, InitializeState, ReadState, ReadStateSummary, WriteState
from odradek.coordinator.share.state import PartitionState, StateBatch, StateSummary
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_of
from odradek.protocol.message_types import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from odradek.protocol.produce_request import ProduceRequest
from odradek.timing.driver import OwnTasks
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.broker.cluster.broker_clients import BrokerClients
    from odradek.client.node_client import NodeClient
    from odradek.coordinator.share.requests import ShareStateRequest


class _Rpc(NamedTuple):
    """One API: its messages, and the conversion of an item of the request and of a successful item of the response."""

    api: Api[Any, Any]
    request: type[Any]
    topic: type[Any]
    item: Callable[[Any], Any]
    outcome: Callable[[Any, Any], Any]


def _nothing(_asked: object, _result: object) -> None:
    """Return the outcome of a request that only succeeds or fails."""


def _state(asked: ReadState, result: read_share_group_state.PartitionResult) -> PartitionState:
    batches = tuple(StateBatch(*batch) for batch in result.state_batches)
    return PartitionState.counted(result.state_epoch, asked.leader_epoch, result.start_offset, batches)


def _summary(_asked: object, result: read_share_group_state_summary.PartitionResult) -> StateSummary:
    return StateSummary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)


def _written(asked: WriteState) -> write_share_group_state.PartitionData:
    key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches = asked
    return write_share_group_state.PartitionData(
        partition=key.partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=[write_share_group_state.StateBatch(*batch) for batch in batches],
    )


_RPCS: Final[dict[type[Any], _Rpc]] = {
    InitializeState: _Rpc(
        Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE),
        initialize_share_group_state.InitializeShareGroupStateRequest,
        initialize_share_group_state.InitializeStateData,
        lambda asked: initialize_share_group_state.PartitionData(asked.key.partition, asked.state_epoch, asked.start_offset),
        _nothing,
    ),
    ReadState: _Rpc(
        Api(ApiKey.READ_SHARE_GROUP_STATE),
        read_share_group_state.ReadShareGroupStateRequest,
        read_share_group_state.ReadStateData,
        lambda asked: read_share_group_state.PartitionData(asked.key.partition, asked.leader_epoch),
        _state,
    ),
    WriteState: _Rpc(
        Api(ApiKey.WRITE_SHARE_GROUP_STATE),
        write_share_group_state.WriteShareGroupStateRequest,
        write_share_group_state.WriteStateData,
        _written,
        _nothing,
    ),
    DeleteState: _Rpc(
        Api(ApiKey.DELETE_SHARE_GROUP_STATE),
        delete_share_group_state.DeleteShareGroupStateRequest,
        delete_share_group_state.DeleteStateData,
        lambda asked: delete_share_group_state.PartitionData(asked.key.partition),
        _nothing,
    ),
    ReadStateSummary: _Rpc(
        Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
        read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
        read_share_group_state_summary.ReadStateSummaryData,
        lambda asked: read_share_group_state_summary.PartitionData(asked.key.partition, asked.leader_epoch),
        _summary,
    ),
}


class _Pending(NamedTuple):
    """A request that is not sent yet, and the Reply for its outcome."""

    request: ShareStateRequest
    reply: Reply[Any]


# The broker, the kind of the request and the group: one request on the wire has these in common.
_Batch = tuple[int, type[Any], str]


class ShareStatePeers:
    """The OtherShareCoordinators of the persister. Loop thread only."""

    def __init__(self, clients: BrokerClients[NodeClient]) -> None:
        self._clients = clients
        self._network = clients.network
        self._unsent: dict[_Batch, list[_Pending]] = {}
        self._tasks = OwnTasks()

    def ask(self, node_id: int, request: ShareStateRequest) -> Reply[Any]:
        """Send the request when this turn of the loop has ended. KafkaError: COORDINATOR_NOT_AVAILABLE, NETWORK_EXCEPTION."""
        reply: Reply[Any] = Reply()
        if self._network.address_of(node_id) is None:
            reply.complete(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the share coordinator is not alive"))
            return reply
        if not self._unsent:
            self._network.call_soon(self._send)
        self._unsent.setdefault((node_id, type(request), request.key.group_id), []).append(_Pending(request, reply))
        return reply

    def close(self) -> None:
        """Wait for no answer any more."""
        self._tasks.cancel()

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for (node_id, kind, group_id), pending in unsent.items():
            left = pending
            while left:
                # A response identifies requests only by partition, so a request has each partition once.
                once = {each.request.key: each for each in reversed(left)}
                self._tasks.start(self._exchange(node_id, _RPCS[kind], group_id, list(once.values())))
                left = [each for each in left if once[each.request.key] is not each]

    async def _exchange(self, node_id: int, rpc: _Rpc, group_id: str, asked: list[_Pending]) -> None:
        client = self._clients.client_of(node_id)
        reason = "the share coordinator is not alive"
        told: dict[tuple[UUID | None, int], Any] = {}
        if client is not None:
            reason = "the share coordinator did not answer for this partition"
            request = rpc.request(group_id=group_id, topics=_topics(rpc, asked))
            try:
                response = await client.request(rpc.api, request)
            except ClientError as error:
                reason = error.reason
            else:
                told = {(topic.topic_id, each.partition): each for topic in response.results for each in topic.partitions}
        for request, reply in asked:
            result = told.get((request.key.topic_id, request.key.partition))
            if result is None:
                reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, reason))
            elif result.error_code:
                reply.complete(KafkaError(error_of(result.error_code), result.error_message or ""))
            else:
                reply.complete(rpc.outcome(request, result))


def _topics(rpc: _Rpc, asked: Iterable[_Pending]) -> list[Any]:
    by_topic: dict[UUID, list[Any]] = {}
    for request, _ in asked:
        by_topic.setdefault(request.key.topic_id, []).append(rpc.item(request))
    return [rpc.topic(topic_id=topic_id, partitions=items) for topic_id, items in by_topic.items()]


_ALL_IN_SYNC: Final = -1
_TIMEOUT_MS: Final = 30_000


class DeadLetterPeers:
    """The OtherLeaders of the dead-letter queue. Loop thread only."""

    def __init__(self, clients: BrokerClients[NodeClient]) -> None:
        self._clients = clients
        self._tasks = OwnTasks()

    def produce(self, node_id: int, topic: str, partition: int, batch: bytes) -> Reply[KafkaError | None]:
        """Have a broker append a batch, with acks=all. KafkaError: NETWORK_EXCEPTION, and the leader's."""
        reply: Reply[KafkaError | None] = Reply()
        self._tasks.start(self._produce(node_id, topic, partition, batch, reply))
        return reply

    async def _produce(self, node_id: int, topic: str, partition: int, batch: bytes, reply: Reply[KafkaError | None]) -> None:
        client = self._clients.client_of(node_id)
        if client is None:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"broker {node_id} is not alive"))
            return
        request = ProduceRequest(acks=_ALL_IN_SYNC, timeout_ms=_TIMEOUT_MS, topics=[(topic, [(partition, batch)])])
        try:
            response = await client.request(PRODUCE, request)
        except ClientError as error:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, error.reason))
            return
        answered = [each for of_topic in response.responses for each in of_topic.partition_responses]
        if not answered:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, "the leader did not answer for this partition"))
        elif answered[0].error_code:
            reply.complete(KafkaError(error_of(answered[0].error_code), answered[0].error_message or ""))
        else:
            reply.complete(None)

    def close(self) -> None:
        """Wait for no answer any more."""
        self._tasks.cancel()
