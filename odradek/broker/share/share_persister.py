"""Keeps the state of share partitions for their users here: the leaders of the partitions, and the group coordinator.

A share partition's state is on one partition of ``__share_group_state``; the leader of that is its share coordinator. If this
broker is the coordinator, its shard decides within the call. Otherwise the request goes to the other broker. While there is no
coordinator, or it cannot be reached, the request is repeated as by Kafka's persister.

What is repeated must not undo what came after it: later requests of the same share partition wait for it, and a read waits for
every earlier one. In Kafka a late write of a share partition may come after the next read.

Kafka's classes are DefaultStatePersister and PersisterStateManager.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from odradek.client.node_client import ExponentialBackoff
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.coordinator.share.requests import DeleteState, InitializeState, ReadState, ReadStateSummary, WriteState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import partition_for
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.coordinator.share.requests import ShareStateRequest
    from odradek.coordinator.share.state import PartitionState, SharePartitionKey, StateBatch, StateSummary
    from odradek.timing.timer import Timer

# 31 s in all. Kafka waits 30 s, but begins with 2 s: a coordinator that is only loading is found sooner here.
_BACKOFF_MS: Final = 1_000
_MAX_BACKOFF_MS: Final = 30_000
_MAX_ATTEMPTS: Final = 6
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class OtherShareCoordinators(Protocol):
    """The share coordinators on other brokers."""

    def ask(self, node_id: int, request: ShareStateRequest) -> Reply[Any]:
        """Have a broker decide. The Reply has a KafkaError, NETWORK_EXCEPTION if it does not answer, or the outcome."""


class _Waiting(NamedTuple):
    """A request that has not been asked yet."""

    request: ShareStateRequest
    reply: Reply[Any]


class _OfKey:
    """The requests of one share partition: how many are under way, whether one of them is repeated, and those that wait."""

    __slots__ = ("count", "is_repeated", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.is_repeated = False
        self.waiting: deque[_Waiting] = deque()

    def must_wait(self, request: ShareStateRequest) -> bool:
        """Return whether a new request must wait for earlier ones."""
        return bool(self.waiting) or self._waits_for_those_under_way(request)

    def may_ask_next(self) -> bool:
        """Return whether the first request that waits need not wait any longer."""
        return not self._waits_for_those_under_way(self.waiting[0].request)

    def _waits_for_those_under_way(self, request: ShareStateRequest) -> bool:
        return self.is_repeated or (self.count > 0 and isinstance(request, ReadState))


class SharePersister:
    """The persister of this broker. Each Reply has the outcome, or a KafkaError. Loop thread only."""

    def __init__(
        self,
        controller: ClusterMetadata,
        ask_here: Callable[[ShareStateRequest], Reply[Any]],
        timer: Timer,
        random: Random,
        *,
        node_id: int,
        others: OtherShareCoordinators | None = None,
    ) -> None:
        """``ask_here`` is this broker's ``ShareCoordinator.ask``. ``others`` is None if there are no other brokers."""
        self._controller = controller
        self._ask_here = ask_here
        self._timer = timer
        self._others = others
        self._node_id = node_id
        # The requests under way, by share partition.
        self._under_way: dict[SharePartitionKey, _OfKey] = {}
        self._backoff = ExponentialBackoff(_BACKOFF_MS, _MAX_BACKOFF_MS, random)

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Reply[KafkaError | None]:
        """Begin a new state at ``start_offset``; -1 leaves the choice to the leader of the partition."""
        return self._persist(InitializeState(key, state_epoch, start_offset))

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Reply[PartitionState | KafkaError]:
        """Read the state as the partition's leader. From now on the leaders of lower epochs are fenced."""
        return self._persist(ReadState(key, leader_epoch))

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Reply[KafkaError | None]:
        """Merge ``batches`` into the state. FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH: there is a newer leader or state."""
        return self._persist(WriteState(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches))

    def delete(self, key: SharePartitionKey) -> Reply[KafkaError | None]:
        """Delete the state."""
        return self._persist(DeleteState(key))

    def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> Reply[StateSummary | KafkaError]:
        """Read the state without its batches. It need not be initialized."""
        return self._persist(ReadStateSummary(key, leader_epoch))

    def _persist(self, request: ShareStateRequest) -> Reply[Any]:
        """Ask the coordinator. Nothing is added to its Reply if that is complete already, as it often is."""
        of_key = self._under_way.get(request.key)
        if of_key is not None and of_key.must_wait(request):
            waiting = _Waiting(request, Reply())
            of_key.waiting.append(waiting)
            return waiting.reply
        first = self._ask(request)
        if _is_final(first):
            return first
        # Others may have ended meanwhile.
        of_key = self._under_way.get(request.key)
        if of_key is None:
            of_key = self._under_way[request.key] = _OfKey()
        reply: Reply[Any] = Reply()
        of_key.count += 1
        self._follow(of_key, request, first, 1, reply)
        return reply

    def _follow(self, of_key: _OfKey, request: ShareStateRequest, asked: Reply[Any], attempts: int, reply: Reply[Any]) -> None:
        """Complete ``reply`` with the outcome of ``asked``, or ask again later."""

        def finished(outcome: object) -> None:
            if _is_retriable(outcome) and attempts < _MAX_ATTEMPTS:
                of_key.is_repeated = True
                delay_ms = self._backoff.delay_ms(attempts)
                self._timer.call_after(delay_ms, partial(self._repeat, of_key, request, attempts + 1, reply))
            else:
                reply.complete(outcome)
                of_key.count -= 1
                # A request that has waited for one that was given up is not repeated in its turn.
                self._ask_waiting(of_key, request.key, _MAX_ATTEMPTS if _is_retriable(outcome) else 1)

        asked.when_done(finished)

    def _repeat(self, of_key: _OfKey, request: ShareStateRequest, attempts: int, reply: Reply[Any]) -> None:
        self._follow(of_key, request, self._ask(request), attempts, reply)

    def _ask_waiting(self, of_key: _OfKey, key: SharePartitionKey, attempts: int) -> None:
        """Ask what need not wait any longer, now that a request has ended. ``attempts`` are those that count as made."""
        if not of_key.count:
            of_key.is_repeated = False
        while of_key.waiting and of_key.may_ask_next():
            request, reply = of_key.waiting.popleft()
            of_key.count += 1
            first = self._ask(request)
            if _is_final(first):
                of_key.count -= 1
                reply.complete(first.response)
            else:
                self._follow(of_key, request, first, attempts, reply)
        if not of_key.count and self._under_way.get(key) is of_key:
            del self._under_way[key]

    def _ask(self, request: ShareStateRequest) -> Reply[Any]:
        controller = self._controller
        topic = controller.image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            created = controller.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
            if not created.done or isinstance(created.response, KafkaError):
                return replied(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{SHARE_GROUP_STATE_TOPIC} is being created"))
            topic = created.response
        others = self._others
        if others is not None:
            partition = topic.partitions[partition_for(request.key.coordinator_key, len(topic.partitions))]
            if partition.leader != self._node_id:
                return others.ask(partition.leader, request)
        return self._ask_here(request)


def _is_final(asked: Reply[Any]) -> bool:
    return asked.done and not _is_retriable(asked.response)


def _is_retriable(outcome: object) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code in _RETRIABLE
