"""A member of the share group: it fetches from all leaders, on a connection to each, and acknowledges in its own manner.

It accepts, releases, rejects or renews each record, or abandons it; now and then it dies, stalls, or loses a connection or an
answer. Offsets without a record are acknowledged as gaps, as clients do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.share.acknowledgement import AcknowledgeType
from odradek.broker.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition, next_epoch
from odradek.common.context import Session
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.share_acknowledge import AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest
from odradek.protocol.message_types.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from tests.campaigns.simulation.shares.broker import GROUP
from tests.campaigns.simulation.shares.ledger import record_offsets
from tests.campaigns.simulation.shares.topic import TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.campaigns.simulation.shares.world import World

REQUEST_TIMEOUT_MS = 3_000
_KINDS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW, None)


class _Connection:
    """A member's share session on one broker. ``due`` has what is to be acknowledged: (partition, offset) by type."""

    def __init__(self, member: Member, node_id: int) -> None:
        self.member = member
        self.node_id = node_id
        self.due: dict[tuple[int, int], AcknowledgeType] = {}
        self.session: Any = None
        self.asked: Any = None
        self.turn = 0
        self.reset()

    def reset(self) -> None:
        """Connect anew; the next request begins a session."""
        self.epoch = INITIAL_EPOCH
        self.known: set[int] = set()
        self.is_busy = False
        self.turn += 1
        self.session = Session("PLAINTEXT", (self.member.name, self.turn))
        self.session.connection = self.session

    # ---------------------------------------------------------------------------------------------------------- requests

    def step(self) -> None:
        """Send the next request."""
        world, rng = self.member.world, self.member.world.rng
        led = {index for index, leader in self.member.leaders.items() if leader == self.node_id}
        if self.is_busy or (not led and not self.known and not self.due):
            return
        if self.epoch == INITIAL_EPOCH:
            if led:
                self._send(self._fetch(led, {}))
            return
        due = self._take_due()
        draw = rng.random()
        if draw < 0.03 and world.is_in_trouble:
            self._send(self._acknowledge(FINAL_EPOCH, due))
        elif due and (draw < 0.5 or AcknowledgeType.RENEW in due.values()):
            self._send(self._acknowledge(self.epoch, due))
        else:
            self._send(self._fetch(led, due))

    def _take_due(self) -> dict[tuple[int, int], AcknowledgeType]:
        rng = self.member.world.rng
        if not self.due or rng.random() < 0.2:
            return {}
        taken = dict(sorted(self.due.items()))
        if rng.random() < 0.3:
            kept = rng.randrange(len(taken))
            taken = dict(list(taken.items())[kept:])
        for place in taken:
            del self.due[place]
        return taken

    def _fetch(self, led: set[int], due: dict[tuple[int, int], AcknowledgeType]) -> ShareFetchRequest:
        world, batches = self.member.world, _batches(due)
        most_records = world.plan.most_records if world.is_in_trouble else 500
        added = sorted((led - self.known) | set(batches))
        forgotten = sorted(self.known - led)
        self.known = set(led)
        return ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member.name,
            share_session_epoch=self.epoch,
            max_wait_ms=world.rng.choice((0, 100, 500)),
            min_bytes=world.rng.choice((1, 1, 300)),
            max_bytes=world.rng.choice((200, 1 << 20)),
            max_records=most_records,
            batch_size=most_records,
            share_acquire_mode=int(world.plan.has_record_limit),
            topics=[FetchTopic(TOPIC_ID, [FetchPartition(index, batches.get(index, ())) for index in added])] if added else (),
            forgotten_topics_data=[ForgottenTopic(TOPIC_ID, forgotten)] if forgotten else (),
        )

    def _acknowledge(self, epoch: int, due: dict[tuple[int, int], AcknowledgeType]) -> ShareAcknowledgeRequest:
        is_renewal = AcknowledgeType.RENEW in due.values()
        partitions = [AcknowledgePartition(index, batches) for index, batches in _batches(due).items()]
        topics = [AcknowledgeTopic(TOPIC_ID, partitions)] if partitions else ()
        return ShareAcknowledgeRequest(GROUP, self.member.name, epoch, is_renewal, topics)

    def _send(self, request: Any) -> None:
        world, turn, session = self.member.world, self.turn, self.session
        self.is_busy, self.asked = True, request
        broker = world.brokers[self.node_id]

        def arrive() -> None:
            if broker.is_up and session.connection is not None:
                broker.ask(request, session, answered)

        def answered(response: Any) -> None:
            if not world.is_lost():
                world.later(world.latency_ms(), lambda: self._answered(turn, request, response))

        world.later(world.latency_ms(), arrive)
        world.later(REQUEST_TIMEOUT_MS, lambda: self._time_out(turn, request))

    # ------------------------------------------------------------------------------------------------------------ answers

    def _time_out(self, turn: int, request: Any) -> None:
        if self.turn == turn and self.is_busy and self.asked is request:
            self.member.world.counts["requests timed out"] += 1
            self.cut()

    def cut(self) -> None:
        """Lose the connection. The broker may learn of it later, when the member has a new one."""
        world, session, broker = self.member.world, self.session, self.member.world.brokers[self.node_id]
        self.reset()

        def learn() -> None:
            if broker.is_up and session.connection is not None:
                world.ledger.member_gone(broker, self.member.name)
                broker.lose(session)

        world.later(world.rng.choice((0, 0, 300, 2_000)), learn)

    def _answered(self, turn: int, request: Any, response: Any) -> None:
        if self.turn != turn or not self.member.is_alive:
            return
        self.is_busy = False
        epoch = request.share_session_epoch
        if response.error_code != ErrorCode.NONE or epoch == FINAL_EPOCH:
            self.epoch, self.known = INITIAL_EPOCH, set()
            return
        self.epoch = next_epoch(epoch)
        self.member.take(self, response)


def _batches(due: dict[tuple[int, int], AcknowledgeType]) -> dict[int, list[AcknowledgementBatch]]:
    """Return the acknowledgements of each partition, neighbours in one batch."""
    batches: dict[int, list[AcknowledgementBatch]] = {}
    for (index, offset), kind in due.items():
        of_partition = batches.setdefault(index, [])
        last = of_partition[-1] if of_partition else None
        if last is not None and last.last_offset + 1 == offset:
            of_partition[-1] = AcknowledgementBatch(last.first_offset, offset, [*last.acknowledge_types, int(kind)])
        else:
            of_partition.append(AcknowledgementBatch(offset, offset, [int(kind)]))
    return {index: [_in_short(batch) for batch in of_partition] for index, of_partition in batches.items()}


def _in_short(batch: AcknowledgementBatch) -> AcknowledgementBatch:
    types: Sequence[int] = batch.acknowledge_types
    return batch._replace(acknowledge_types=types[:1]) if len(set(types)) == 1 else batch


class Member:
    """One process. It looks for the leaders every second, and after an error."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self.stalled_until_ms = 0.0
        self.leaders: dict[int, int] = {}
        self.connections = [_Connection(self, node_id) for node_id in range(world.plan.brokers)]
        self._look_for_leaders()
        self._step()

    def _look_for_leaders(self) -> None:
        if self.is_alive:
            self.leaders = {index: leader for index, (leader, _) in enumerate(self.world.leaders)}
            self.world.later(1_000, self._look_for_leaders)

    def _step(self) -> None:
        if not self.is_alive:
            return
        if self.world.clock.monotonic_ms() >= self.stalled_until_ms:
            for connection in self.connections:
                connection.step()
        self.world.later(self.world.rng.choice((5, 50, 200)), self._step)

    def die(self) -> None:
        """End. The brokers may learn of it late, or never."""
        self.is_alive = False
        for connection in self.connections:
            if self.world.rng.random() < 0.7:
                connection.cut()

    def take(self, connection: _Connection, response: Any) -> None:
        """Decide on each record that was acquired."""
        world, plan, rng = self.world, self.world.plan, self.world.rng
        for topic in getattr(response, "responses", ()):
            for data in topic.partitions:
                if data.error_code != ErrorCode.NONE:
                    self.leaders = {index: leader for index, (leader, _) in enumerate(world.leaders)}
                if not getattr(data, "acquired_records", ()):
                    continue
                index = data.partition_index
                found = record_offsets(TopicIdPartition(TOPIC_ID, index), response)
                weights = plan.manners if world.is_in_trouble else (1, 0, 0, 0, 0)
                for acquired in data.acquired_records:
                    for offset in range(acquired.first_offset, acquired.last_offset + 1):
                        kind = rng.choices(_KINDS, weights)[0] if offset in found else AcknowledgeType.GAP
                        self._plan(connection, (index, offset), kind)

    def _plan(self, connection: _Connection, place: tuple[int, int], kind: AcknowledgeType | None) -> None:
        world = self.world
        if kind is None:
            return
        lock_ms = world.plan.limits.record_lock_duration_ms
        delay_ms = lock_ms * world.plan.slowness * world.rng.random() if world.is_in_trouble else 0

        def due() -> None:
            connection.due[place] = kind
            if kind == AcknowledgeType.RENEW:
                world.later(lock_ms * 0.6, lambda: connection.due.__setitem__(place, AcknowledgeType.ACCEPT))

        world.later(delay_ms, due)
