"""Sends ISR changes that leaders propose to the controller, and returns the answers (AlterPartition, KIP-497).

One request is in flight at a time. Proposals made meanwhile go into the next request, one request for all partitions. If the
controller refuses a whole request (because of a stale broker epoch, say), it is sent again after ``_BACKOFF_MS``. A newer
proposal for a partition replaces an older one that has not been sent, or that would be sent again.

Kafka's class is DefaultAlterPartitionManager.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from odradek.broker.replica.controller_requests import ControllerRequests
from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.client.api import Api
from odradek.controller.quorum.broker_lifecycle import Controller
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
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer

# Topics are named by id, replicas with their brokers' epochs (KIP-903).
_ALTER_PARTITION: Final[Api[AlterPartitionRequest, AlterPartitionResponse]] = Api(ApiKey.ALTER_PARTITION, 3)
_BACKOFF_MS: Final = 50

Key = tuple[UUID, int]


class _Pending:
    """A proposal and the Reply that its answer completes."""

    __slots__ = ("proposal", "reply")

    def __init__(self, proposal: Proposal, reply: Reply[CommittedIsr | KafkaError]) -> None:
        self.proposal = proposal
        self.reply = reply


class AlterPartitions:
    """The proposals of one broker. Loop thread only."""

    def __init__(self, controller: Controller, timer: Timer, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._unsent: dict[Key, _Pending] = {}
        self._requests = ControllerRequests(
            controller,
            timer,
            has_unsent=lambda: bool(self._unsent),
            send=self._send_unsent,
            backoff_ms=_BACKOFF_MS,
            complaint="the controller does not accept changes of in-sync replicas; trying again",
        )

    def propose(self, proposal: Proposal) -> Reply[CommittedIsr | KafkaError]:
        """Send a proposal to the controller; the Reply is completed with its answer."""
        pending = _Pending(proposal, Reply())
        key = proposal.topic_id, proposal.partition
        replaced = self._unsent.get(key)
        self._unsent[key] = pending
        if replaced is not None:
            replaced.reply.complete(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "a newer proposal replaced this one"))
        self._requests.wake()
        return pending.reply

    def close(self) -> None:
        """Stop sending. Open proposals get no answer."""
        self._requests.close()

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
        response = await self._requests.ask(_ALTER_PARTITION, self._request(sent))
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
    try:
        code = ErrorCode(answer.error_code)
    except ValueError:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(code, f"the controller refused the in-sync replicas of partition {answer.partition_index}")
