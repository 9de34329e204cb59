"""A broker that leads partitions: the real handlers, share partitions and persister, from a start to a crash."""

from __future__ import annotations

from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.broker.api import share_acknowledge, share_fetch
from odradek.broker.replica.partition import Partition
from odradek.broker.share.share_partition_manager import SharePartitionManager
from odradek.broker.share.share_persister import SharePersister
from odradek.broker.share.share_sessions import TopicIdPartition
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_fetch import ShareFetchRequest
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices
from odradek.timing.timer import Timer
from tests.campaigns.simulation.shares.topic import TOPIC, TOPIC_ID
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.broker.share.in_flight import ShareLimits
    from odradek.broker.share.share_partition import DeadLetter, SharePartition
    from odradek.coordinator.share.requests import ShareStateRequest
    from tests.campaigns.simulation.shares.world import World

GROUP = "g"
VERSION = 2
# Not in the trace.
_HIDDEN = frozenset({"group_id", "member_id", "topic_id", "records", "max_bytes", "acquisition_lock_timeout_ms"})


class _Told:
    """A request or an answer for the trace, without what is empty."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __str__(self) -> str:
        return _brief(self._message)


def _brief(message: Any) -> str:
    if isinstance(message, (list, tuple)) and not hasattr(message, "_fields"):
        return "[" + ", ".join(map(_brief, message)) + "]"
    if not hasattr(message, "_fields"):
        return str(message)
    values = zip(message._fields, message, strict=True)
    shown = (f"{name}={_brief(value)}" for name, value in values if value and name not in _HIDDEN)
    return "(" + " ".join(shown) + ")"


class Broker:
    """One process. Its requests to the coordinator take their time, and may be lost."""

    def __init__(self, world: World, node_id: int) -> None:
        self.node_id = node_id
        self.is_up = True
        self.timer = Timer(world.clock)
        self.most_sessions = 1_000
        self.is_on = True
        self._world = world
        self._arrived_ms = 0.0
        self._numbers = count(1)
        self.partitions = {index: self._replica(index) for index in range(world.plan.partitions)}
        coordinators = {
            index: SimpleNamespace(leader=-1 if world.plan.is_remote else node_id) for index in range(world.plan.shards)
        }
        image = SimpleNamespace(
            topics={SHARE_GROUP_STATE_TOPIC: SimpleNamespace(partitions=coordinators)},
            topics_by_id={TOPIC_ID: SimpleNamespace(name=TOPIC, partitions=self.partitions)},
        )
        controller: Any = SimpleNamespace(image=image)
        persister = SharePersister(
            controller, world.coordinator.ask, self.timer, world.rng, node_id=node_id, others=SimpleNamespace(ask=self._ask)
        )
        letters: Any = self if world.plan.limits.has_dead_letters else None
        call_soon = partial(self.timer.call_after, 0)
        slices = Slices(world.clock.monotonic_ms, call_soon)
        self.shares = SharePartitionManager(self.find_by_id, persister, self.timer, self, slices, call_soon, letters)
        self._services: Any = SimpleNamespace(
            share_partitions=self.shares,
            controller=controller,
            config={"fetch.max.bytes": 1 << 20},
            timer=self.timer,
            quotas=SimpleNamespace(fetch_quota=lambda _context: None),
        )

    def _replica(self, index: int) -> Partition:
        leader, epoch = self._world.leaders[index]
        replica = Partition(TOPIC, index, TOPIC_ID, epoch, self._world.topic[index].log, lambda _: None)
        if leader != self.node_id:
            replica.become_follower(leader, epoch)
        return replica

    def crash(self) -> None:
        """Nobody is told anything."""
        self.is_up = False
        self.timer.close()

    def learn(self, index: int) -> None:
        """Learn who leads a partition now."""
        replica, (leader, epoch) = self.partitions[index], self._world.leaders[index]
        if not self.is_up or replica.leader_epoch >= epoch:
            return
        self._world.note("%s learns that %s leads %s in epoch %s", self.node_id, leader, index, epoch)
        if leader == self.node_id:
            replica.use_log(self._world.topic[index].log)
            replica.become_leader(epoch)
            replica.flushed()
        else:
            replica.become_follower(leader, epoch)

    def shared(self, index: int) -> SharePartition | None:
        """Return the group's share partition, if it has one here."""
        return self.shares.get(GROUP, TopicIdPartition(TOPIC_ID, index))

    def ask(self, request: Any, session: Session, answered: Callable[[Any], None]) -> None:
        """Answer a ShareFetch or a ShareAcknowledge, now or later."""
        is_fetch = isinstance(request, ShareFetchRequest)
        api = ApiKey.SHARE_FETCH if is_fetch else ApiKey.SHARE_ACKNOWLEDGE
        context = RequestContext(api, VERSION, 0, request.member_id, session)
        handle: Any = share_fetch.handle if is_fetch else share_acknowledge.handle
        world, number = self._world, next(self._numbers)
        world.note("%s is asked %s by %s: %s", self.node_id, number, request.member_id, _Told(request))
        asked = world.ledger.asked(self, request)
        outcome = handle(self._services, context, request)

        def done(response: Any) -> None:
            if self.is_up:
                world.note("%s answers %s: %s", self.node_id, number, _Told(response))
                world.counts[f"{api.name} {ErrorCode(response.error_code).name}"] += 1
                try:
                    world.ledger.answered(asked, response, is_told=session.connection is not None)
                except Violation as violation:
                    world.broken = world.broken or violation
                    raise
                answered(response)

        if isinstance(outcome, Reply):
            outcome.when_done(done)
        else:
            done(outcome)

    def lose(self, session: Session) -> None:
        """Lose a connection."""
        if self.is_up and session.connection is not None:
            self._world.note("%s loses %s", self.node_id, session.peer)
            session.connection = None
            # The answer with their last delivery may be under way, and its records are released now.
            for share in self.shares:
                self._world.ledger.note_exhausted(share)
            self.shares.sessions.connection_lost(session)

    # ------------------------------------------------------------------------------------------------- the coordinator

    def _ask(self, _node_id: int, request: ShareStateRequest) -> Reply[Any]:
        world, reply = self._world, Reply[Any]()
        # Requests on one connection arrive in order.
        self._arrived_ms = max(self._arrived_ms, world.clock.monotonic_ms() + world.latency_ms())
        self.timer.call_at(self._arrived_ms, partial(self._arrive, request, reply))
        return reply

    def _arrive(self, request: ShareStateRequest, reply: Reply[Any]) -> None:
        world = self._world
        lost = KafkaError(ErrorCode.NETWORK_EXCEPTION)
        if world.is_lost() or not world.coordinator.is_up:
            world.later(100, partial(self._complete, reply, lost))
            return
        is_answer_lost = world.is_lost()
        world.coordinator.ask(request).when_done(
            lambda outcome: world.later(world.latency_ms(), partial(self._complete, reply, lost if is_answer_lost else outcome))
        )

    def _complete(self, reply: Reply[Any], outcome: object) -> None:
        if self.is_up:
            reply.complete(outcome)

    # -------------------------------------------------------------------------- the ports of the share partition manager

    def find_by_id(self, topic_id: UUID, index: int) -> Partition | KafkaError:
        """See Partitions."""
        return self.partitions[index] if topic_id == TOPIC_ID else KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)

    def limits(self, _group_id: str) -> ShareLimits:
        """See ShareGroupConfigs."""
        return self._world.plan.limits

    def is_committed_only(self, _group_id: str) -> bool:
        """See ShareGroupConfigs."""
        return self._world.plan.is_committed_only

    def start_offset(self, _group_id: str, partition: Partition) -> Reply[int | KafkaError]:
        """See ShareGroupConfigs."""
        log = partition.log
        assert log is not None
        offset = log.log_start_offset if self._world.plan.is_earliest else partition.high_watermark
        self._world.ledger.begins_at(partition.index, offset)
        reply: Reply[int | KafkaError] = Reply()
        reply.complete(offset)
        return reply

    def enqueue(self, letter: DeadLetter) -> Reply[KafkaError | None]:
        """See DeadLetterQueue."""
        world, reply = self._world, Reply[KafkaError | None]()
        world.ledger.lettered(letter)
        error = KafkaError(ErrorCode.INVALID_CONFIG) if world.rng.random() < 0.1 else None
        world.later(world.rng.choice((0, 20, 400)), partial(self._complete, reply, error))
        return reply
