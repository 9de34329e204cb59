"""A broker's requests to the controller that are repeated until they are taken: in-sync replicas, and replicas' directories.

One request of a kind is open at a time, with a pause after a failure (``ControllerRequests``).

    AlterPartition          ISR changes that leaders propose (KIP-497). Proposals made meanwhile go into the next request, one for
                            all partitions. If the controller refuses a whole request (because of a stale broker epoch, say), it
                            is sent again. A newer proposal for a partition replaces an older one that has not been sent, or that
                            would be sent again
    AssignReplicasToDirs    which data directory of this broker holds each replica (KIP-858). The controller needs this to know
                            which partitions go offline when a directory fails. Assignments are sent again until they are taken

Kafka's classes are DefaultAlterPartitionManager and AssignmentsManager.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.client.api import Api, ClientError, RequestT
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_of
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.message_types.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
)
from odradek.protocol.message_types.assign_replicas_to_dirs import RequestPartitionData as AssignedPartition
from odradek.protocol.message_types.assign_replicas_to_dirs import RequestTopicData as AssignedTopic
from odradek.timing.driver import Wakeup
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer

_TIMEOUT_MS: Final = 60_000


# A partition, by topic id and index.
Key = tuple[UUID, int]
ItemT = TypeVar("ItemT")


class ControllerRequests(ABC, Generic[ItemT]):
    """The requests of one kind, by one broker. Loop thread only."""

    # The time between two requests after a failure.
    backoff_ms: float
    # This is logged with the reason of a failure, once while the reason stays the same.
    complaint: str

    def __init__(self, controller: Controller, timer: Timer, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._unsent: dict[Key, ItemT] = {}
        self._controller = controller
        self._wakeup = Wakeup(timer)
        self._last_reason = ""
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Stop sending. Open requests get no answer."""
        if self._task is not None:
            self._task.cancel()

    @abstractmethod
    async def _send_unsent(self) -> str:
        """Send as much as one request may have, and return why some of it has to be sent again, or ""."""

    def _wake(self) -> None:
        """Send soon, unless that has begun."""
        if self._task is None and self._unsent:
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def _ask(self, api: Api[RequestT, AnswerT], request: RequestT) -> AnswerT | str:
        """Return the controller's response, or why there is none."""
        try:
            return await self._controller.request(api, request, _TIMEOUT_MS)
        except (ControllerUnavailable, ClientError) as error:
            return str(error)

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                reason = await self._send_unsent()
                if reason and reason != self._last_reason:
                    broker_log.warn(self.complaint, reason=reason)
                self._last_reason = reason
                if reason:
                    await self._wakeup.wait(self.backoff_ms)
        finally:
            self._task = None


# Topics are named by id, replicas with their brokers' epochs (KIP-903).
_ALTER_PARTITION: Final[Api[AlterPartitionRequest, AlterPartitionResponse]] = Api(ApiKey.ALTER_PARTITION, 3)


class _Pending(NamedTuple):
    """A proposal and the Reply that its answer completes."""

    proposal: Proposal
    reply: Reply[CommittedIsr | KafkaError]


class AlterPartitions(ControllerRequests[_Pending]):
    """The proposals of one broker. Loop thread only."""

    backoff_ms = 50
    complaint = "the controller does not accept changes of in-sync replicas; trying again"

    def propose(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Send a proposal to the controller; the Reply is completed with its answer."""
        pending = _Pending(proposal, Reply())
        key = proposal.topic_id, proposal.partition
        replaced = self._unsent.get(key)
        self._unsent[key] = pending
        if replaced is not None:
            replaced.reply.complete(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "a newer proposal replaced this one"))
        self._wake()
        return pending.reply

    async def _send_unsent(self) -> str:
        """Send all proposals; those without an answer are to be sent again, for the reason returned."""
        sent, self._unsent = self._unsent, {}
        reason = await self._send(sent)
        if reason:
            # A proposal made meanwhile is newer.
            for key, pending in sent.items():
                if not pending.reply.done and self._unsent.setdefault(key, pending) is not pending:
                    # The controller may have carried it out.
                    pending.reply.complete(KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "a newer proposal replaced this one"))
        return reason

    async def _send(self, sent: dict[Key, _Pending]) -> str:
        """Send ``sent``, and return why those without an answer are to be sent again."""
        response = await self._ask(_ALTER_PARTITION, self._request(sent))
        if isinstance(response, str):
            return response
        if response.error_code:
            return f"the controller answered error {response.error_code}"
        for topic in response.topics:
            for answer in topic.partitions:
                pending = None if topic.topic_id is None else sent.get((topic.topic_id, answer.partition_index))
                if pending is not None and not pending.reply.done:
                    pending.reply.complete(_outcome(answer))
        return "" if all(pending.reply.done for pending in sent.values()) else "the controller left out some partitions"

    def _request(self, sent: dict[Key, _Pending]) -> AlterPartitionRequest:
        by_topic: dict[UUID, list[RequestPartitionData]] = {}
        for (topic_id, _), pending in sent.items():
            proposal = pending.proposal
            asked = RequestPartitionData(
                partition_index=proposal.partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[BrokerState(*replica) for replica in proposal.isr],
                partition_epoch=proposal.partition_epoch,
            )
            by_topic.setdefault(topic_id, []).append(asked)
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[RequestTopicData(topic_id=topic_id, partitions=asked) for topic_id, asked in by_topic.items()],
        )


def _outcome(answer: PartitionData) -> CommittedIsr | KafkaError:
    if answer.error_code == ErrorCode.NONE:
        return CommittedIsr(answer.leader_epoch, answer.partition_epoch, frozenset(answer.isr))
    reason = f"the controller refused the in-sync replicas of partition {answer.partition_index}"
    return KafkaError(error_of(answer.error_code), reason)


_ASSIGN: Final[Api[AssignReplicasToDirsRequest, AssignReplicasToDirsResponse]] = Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
# Assignments in one request; Kafka's limit.
_MOST: Final = 2_250


class DirectoryAssignments(ControllerRequests[UUID]):
    """The directory assignments of one broker. Loop thread only."""

    backoff_ms = 500
    complaint = "the controller does not accept replicas' directories; trying again"

    def assign(self, places: Iterable[tuple[UUID, int, UUID]]) -> None:
        """Send the assignments to the controller: (topic id, partition, directory id)."""
        self._unsent.update({(topic_id, partition): directory_id for topic_id, partition, directory_id in places})
        self._wake()

    async def _send_unsent(self) -> str:
        sent = dict(list(self._unsent.items())[:_MOST])
        response = await self._ask(_ASSIGN, self._request(sent))
        if isinstance(response, str):
            return response
        if response.error_code:
            return f"the controller answered error {response.error_code}"
        refused = 0
        for directory in response.directories:
            for topic in directory.topics:
                for answer in topic.partitions:
                    if answer.error_code:
                        refused = answer.error_code
                    elif topic.topic_id is not None:
                        self._settle((topic.topic_id, answer.partition_index), sent)
        return f"the controller answered error {refused} for a partition" if refused else ""

    def _settle(self, key: Key, sent: dict[Key, UUID]) -> None:
        """Drop an accepted assignment, unless the replica has moved on meanwhile."""
        if self._unsent.get(key) == sent.get(key):
            self._unsent.pop(key, None)

    def _request(self, sent: dict[Key, UUID]) -> AssignReplicasToDirsRequest:
        by_directory: dict[UUID, dict[UUID, list[AssignedPartition]]] = {}
        for (topic_id, partition), directory_id in sent.items():
            by_directory.setdefault(directory_id, {}).setdefault(topic_id, []).append(AssignedPartition(partition))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                RequestDirectoryData(
                    id=directory_id,
                    topics=[AssignedTopic(topic_id=topic_id, partitions=asked) for topic_id, asked in by_topic.items()],
                )
                for directory_id, by_topic in by_directory.items()
            ],
        )
