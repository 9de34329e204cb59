"""Takes the ISR changes that leaders propose to the controller, and brings the answers back (AlterPartition, KIP-497).

One request is open at a time; what is proposed meanwhile goes with the next one, in one request for all partitions. A request
that the controller does not take as a whole (a broker epoch that is old by now, say) is sent again after a moment. A newer
proposal for a partition takes the place of one that has not been sent, or would be sent again.

Kafka's class is DefaultAlterPartitionManager.
"""

import asyncio
from collections.abc import Callable
from typing import Final
from uuid import UUID

from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.client.api import Api, ClientError
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import ControllerUnavailable
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.timing.driver import Wakeup
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer

# Topics are named by id, replicas with their brokers' epochs (KIP-903).
_ALTER_PARTITION: Final[Api[AlterPartitionRequest, AlterPartitionResponse]] = Api(ApiKey.ALTER_PARTITION, 3)
_TIMEOUT_MS: Final = 60_000
_BACKOFF_MS: Final = 50

Key = tuple[UUID, int]


class _Pending:
    """A proposal and who waits for its answer."""

    __slots__ = ("proposal", "reply")

    def __init__(self, proposal: Proposal, reply: Reply[CommittedIsr | KafkaError]) -> None:
        self.proposal = proposal
        self.reply = reply


class AlterPartitions:
    """The proposals of one broker. Loop thread only."""

    def __init__(self, controller: Controller, timer: Timer, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._wakeup = Wakeup(timer)
        self._unsent: dict[Key, _Pending] = {}
        self._task: asyncio.Task[None] | None = None
        self._complaint = ""

    def propose(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Ask the controller; the answer comes later."""
        pending = _Pending(proposal, Reply())
        key = proposal.topic_id, proposal.partition
        replaced = self._unsent.get(key)
        self._unsent[key] = pending
        if replaced is not None:
            replaced.reply.complete(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "there is a newer proposal"))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_all())
        return pending.reply

    def close(self) -> None:
        """Ask no more: nobody is answered."""
        if self._task is not None:
            self._task.cancel()

    async def _send_all(self) -> None:
        try:
            while self._unsent:
                sent, self._unsent = self._unsent, {}
                reason = await self._send(sent)
                if reason:
                    # What was proposed meanwhile is newer.
                    for key, pending in sent.items():
                        if not pending.reply.done and self._unsent.setdefault(key, pending) is not pending:
                            # Whether it was carried out is unknown.
                            pending.reply.complete(KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "there is a newer proposal"))
                    self._tell(reason)
                    await self._wakeup.wait(_BACKOFF_MS)
        finally:
            self._task = None

    async def _send(self, sent: dict[Key, _Pending]) -> str:
        """Send these; returns why those without an answer are to be sent again."""
        try:
            response = await self._controller.request(_ALTER_PARTITION, self._request(sent), _TIMEOUT_MS)
        except (ControllerUnavailable, ClientError) as error:
            return str(error)
        if response.error_code:
            return f"the controller answered error {response.error_code}"
        self._complaint = ""
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

    def _tell(self, reason: str) -> None:
        """Log a failure, but not each time that it comes again."""
        if reason != self._complaint:
            self._complaint = reason
            broker_log.warn("the controller does not take changes of in-sync replicas", reason=reason)


def _outcome(answer: PartitionData) -> CommittedIsr | KafkaError:
    if answer.error_code == ErrorCode.NONE:
        return CommittedIsr(answer.leader_epoch, answer.partition_epoch, frozenset(answer.isr))
    try:
        code = ErrorCode(answer.error_code)
    except ValueError:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code, f"the controller refused the in-sync replicas of partition {answer.partition_index}")
