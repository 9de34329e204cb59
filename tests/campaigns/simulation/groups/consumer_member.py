"""A member that speaks the consumer protocol, as the Java client does: its heartbeats, and its reaction to each error.

    no coordinator, or loading, or no response    send all there is to say again, after a while
    UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH        give up all partitions, join again
    FENCED_INSTANCE_ID, any other                 end; an operator may start it again

It owns what it was told to, as soon as it has given up what it was told to give up, which takes a while. It has one heartbeat
under way at a time. One whose answer is lost has arrived before the next one, or never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.coordinator.group.consumer.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tests.campaigns.simulation.groups.history import EPOCHS
from tests.campaigns.simulation.groups.members import Process
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from tests.campaigns.simulation.groups.plan import GroupPlan
    from tests.campaigns.simulation.groups.world import World

RETRIABLE = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_LOST_PLACE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_BACKOFF_MS = 100
_NOTHING: frozenset[tuple[UUID, int]] = frozenset()


class Subscription(NamedTuple):
    """Topics by name, or those that a regular expression matches."""

    names: frozenset[str]
    pattern: str = ""

    def __str__(self) -> str:
        return self.pattern or ", ".join(sorted(self.names))


class ConsumerMember(Process):
    """One process. Before version 1 the coordinator makes the member's id."""

    speaks_consumer = True

    def __init__(
        self,
        world: World,
        group: GroupPlan,
        client_id: str,
        instance_id: str | None,
        subscription: Subscription,
        *,
        version: int,
        rebalance_timeout_ms: int,
        assignor: str | None,
    ) -> None:
        super().__init__(world, group, client_id, instance_id)
        self.subscription = subscription
        self.member_id = "" if version == 0 else f"{client_id}#{world.new_token()}"
        self.generation = 0
        self.partitions = _NOTHING
        self.is_alive = True
        self._version = version
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._assignor = assignor
        self._target = _NOTHING
        self._is_revoking = False
        self._is_waiting = False
        self._tells_all = True
        self._reported = _NOTHING

    @property
    def is_settled(self) -> bool:
        """Whether it has told all there is to say, and has what it was told to have."""
        is_told = self.generation > 0 and not self._tells_all and not self._is_waiting
        return is_told and not self._is_revoking and self.partitions == self._target == self._reported

    def __str__(self) -> str:
        return f"{self.client_id}({self.member_id or '?'}, {self.generation}, {len(self.partitions)} of {len(self._target)})"

    # ------------------------------------------------------------------------------------------- what happens to it

    def start(self) -> None:
        """Join, and send heartbeats from then on."""
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        self._beat()

    def die(self) -> None:
        """End the process without a word."""
        self.is_alive = False
        self.turn += 1

    def lose_connection(self) -> None:
        """The request under way has no answer."""
        self.turn += 1
        self._is_waiting = False
        self._tells_all = True
        if self._is_revoking:
            self._soon(_BACKOFF_MS, self._reconciled)
        self._soon(_BACKOFF_MS, self._beat)

    def leave(self, *, for_good: bool) -> None:
        """Leave the group, and end or come back. A static member leaves for a while, but at the end of the history."""
        self.partitions = self._target = _NOTHING
        is_for_a_while = self.instance_id is not None and self._world.is_in_trouble and self._world.rng.random() < 0.8
        if self.member_id:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group.group_id,
                member_id=self.member_id,
                member_epoch=LEAVE_STATIC_EPOCH if is_for_a_while else LEAVE_EPOCH,
                instance_id=self.instance_id,
                topic_partitions=None,
            )
            self._world.ask(self, ApiKey.CONSUMER_GROUP_HEARTBEAT, self._version, lambda: request, lambda _: None)
        if for_good:
            self.die()
        else:
            self._lose_place()
            self._soon(500, self._beat)

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe to other topics from now on."""
        self.subscription = subscription if self._version > 0 else Subscription(subscription.names)
        self._tells_all = True

    def _lose_place(self) -> None:
        self.turn += 1
        self.generation = 0
        self.partitions = self._target = self._reported = _NOTHING
        self._is_revoking = self._is_waiting = False
        self._tells_all = True

    # ------------------------------------------------------------------------------------------------ how it gets on

    def _tick(self) -> None:
        if not self.is_alive:
            return
        self._world.later(self._world.plan.heartbeat_interval_ms, self._tick)
        if not self._is_stalled:
            self._beat()
            if self.partitions:
                self._world.offsets.commit(self, lambda _: None)

    def _beat(self) -> None:
        if self._is_waiting:
            return
        self._is_waiting = True
        tells_all = self._tells_all or self.generation == 0 or self._world.rng.random() < 0.1
        owned = _NOTHING if self.generation == 0 else self.partitions
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self.instance_id if tells_all or self.instance_id is not None else None,
            rebalance_timeout_ms=self._rebalance_timeout_ms if tells_all else -1,
            subscribed_topic_names=sorted(self.subscription.names) if tells_all else None,
            subscribed_topic_regex=self.subscription.pattern if tells_all and self._version > 0 else None,
            server_assignor=self._assignor if tells_all else None,
            topic_partitions=_listed(owned) if tells_all or owned != self._reported else None,
        )
        self._reported = owned
        # It may subscribe to other topics before it has the answer.
        self._tells_all = False
        self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, self._version, request, self._on_answer)

    def _on_answer(self, response: Any) -> None:
        self._is_waiting = False
        is_lost = response is None or self._world.may_repeat()
        code = ErrorCode.NOT_COORDINATOR if is_lost else response.error_code
        if code == ErrorCode.NONE:
            self._on_granted(response)
        elif code in RETRIABLE:
            self._tells_all = True
            self._soon(_BACKOFF_MS, self._beat)
        elif code in _LOST_PLACE:
            self._lose_place()
            self._beat()
        else:
            self._world.note("%s ends with %s", self.client_id, ErrorCode(code).name)
            self.die()
            if code != ErrorCode.FENCED_INSTANCE_ID:
                self._world.restart_later(self)

    def _on_granted(self, response: Any) -> None:
        if response.member_epoch < self.generation:
            raise Violation(EPOCHS, f"{self} is told that it is in {response.member_epoch}")
        self.member_id = response.member_id
        self.generation = response.member_epoch
        if response.assignment is None:
            return
        self._target = frozenset(
            (each.topic_id, index) for each in response.assignment.topic_partitions for index in each.partitions
        )
        if self._is_revoking or self._target == self.partitions:
            return
        if self.partitions <= self._target:
            self._reconciled()
        else:
            self._is_revoking = True
            is_slow = self._world.rng.random() < self._world.plan.slowness
            self._world.offsets.commit(self, lambda _: None)
            self._soon(self._world.rng.choice((2_000, 12_000)) if is_slow else self._world.rng.randint(0, 50), self._reconciled)

    def _reconciled(self) -> None:
        self._is_revoking = False
        new = self._target - self.partitions
        self.partitions = self._target
        if new:
            self._world.offsets.fetch(self)
        self._beat()


def _listed(partitions: Iterable[tuple[UUID, int]]) -> list[RequestTopicPartitions]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return [RequestTopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]
