"""One history of groups of the classic protocol.

After the time of faults all is set right, and the history has to come to a good end (``ending``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.runtime.record import CoordinatorRecord, encode_record
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from tests.campaigns.simulation import requests
from tests.campaigns.simulation.administrator import Administrator
from tests.campaigns.simulation.broker import REPORTS, SimulatedBroker
from tests.campaigns.simulation.consumer import Consumer
from tests.campaigns.simulation.group_world import FULL_CHECK_EVERY, GroupWorld
from tests.campaigns.simulation.history import GroupHistory
from tests.campaigns.simulation.logs import SimulatedLog
from tests.campaigns.simulation.objections import CHECKED_APIS, objection_to
from tests.campaigns.simulation.offset_requests import OffsetRequests
from tests.campaigns.simulation.plan import REBALANCE_TIMEOUTS_MS, SESSION_TIMEOUTS_MS, draw
from tests.campaigns.simulation.replayed import check_replayed
from tests.campaigns.simulation.told import check_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.broker import ShardNotes
    from tests.campaigns.simulation.group_world import Call
    from tests.campaigns.simulation.plan import GroupPlan


class World(GroupWorld):
    """A history of consumer groups."""

    def __init__(self, seed: int, *, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, draw, lambda plan: SimulatedLog(plan.max_batch_bytes, GroupHistory()), show)
        self._moments = 0
        self._is_large = self.plan.is_large
        self._touched: dict[str, None] = {}
        self._seed_logs()
        self.broker = SimulatedBroker(
            self.clock,
            self.logs,
            {group.group_id: group.partition_count for group in self.plan.groups},
            GroupConfig(
                group_initial_rebalance_delay_ms=self.plan.initial_rebalance_delay_ms, group_max_size=self.plan.group_max_size
            ),
            self.plan.load_buffer_bytes,
            self._on_broker_fault,
        )
        self.broker.start()
        self.offsets = OffsetRequests(self)
        self.administrator = Administrator(self)

    def _seed_logs(self) -> None:
        for group in self.plan.groups:
            if group.generation is not None:
                value = GroupMetadataValue("consumer", group.generation, None, None, self.clock.now_ms())
                record = CoordinatorRecord(GroupMetadataKey(group.group_id), value)
                self.log_of(group.group_id).append([encode_record(record)], self.clock.now_ms())

    # --------------------------------------------------------------------------------------------------- invariants

    def _check_moment(self) -> None:
        self._moments += 1
        if not self._is_large or self._moments % FULL_CHECK_EVERY == 0:
            for hosted in self.broker.active():
                notes = self.broker.notes[hosted.partition]
                notes.checks.check(hosted)
                for group in hosted.shard.groups.live.values():
                    self._check_joined(notes, group)
        else:
            self._check_touched()
        self._touched.clear()

    def _check_touched(self) -> None:
        for group_id in self._touched:
            hosted = self.hosted(group_id)
            group = None if hosted is None else hosted.shard.groups.live.get(group_id)
            if hosted is not None and group is not None:
                notes = self.broker.notes[hosted.partition]
                notes.checks.check_group(hosted, group)
                self._check_joined(notes, group)

    def _check_joined(self, notes: ShardNotes, group: ClassicGroup) -> None:
        # A JoinGroup that came with an append that failed is answered with the error, and is part of the rebalance, as in Kafka.
        if not notes.has_failed:
            notes.told.check_group(group)

    def check_replayed(self) -> None:
        """Compare what is loaded with what the log says."""
        for hosted in self.broker.active():
            self.check_shard_replayed(hosted)

    def check_shard_replayed(self, hosted: HostedShard[GroupShard]) -> None:
        """The same for one shard."""
        check_replayed(self.logs, hosted, REPORTS, has_failed=self.broker.notes[hosted.partition].has_failed)

    def _objection(self, api_key: ApiKey, request: Any) -> str:
        return objection_to(api_key, request, self.hosted(request.group_id)) if api_key in CHECKED_APIS else ""

    def _note_delivered(self, request: Any) -> None:
        group_id = getattr(request, "group_id", None)
        if group_id is not None:
            self._touched[group_id] = None

    def _check_granted(self, call: Call, response: Any) -> None:
        if call.api_key is ApiKey.JOIN_GROUP:
            self._check_join(call.request.group_id, response)
        elif call.api_key is ApiKey.SYNC_GROUP:
            self._check_sync(call.request, bytes(response.assignment))

    def _check_join(self, group_id: str, response: Any) -> None:
        notes = self.broker.notes[self.partition_of(group_id)]
        group = notes.shard.groups.live.get(group_id)
        # Between the decision and the answer the member may have left, or the group.
        if group is not None and response.member_id in group.members:
            notes.told.note_join(group, response)

    def _check_sync(self, request: Any, assignment: bytes) -> None:
        where = (request.group_id, request.generation_id, request.member_id)
        check_sync(self.logs.logs[self.partition_of(request.group_id)], *where, assignment)

    # ------------------------------------------------------------------------------------------------------- members

    def subscription(self, group: GroupPlan) -> bytes:
        """What a member says of itself, up to what it owns."""
        return requests.subscription(group.group_id)

    def assign(self, leader: Consumer, members: Any) -> list[tuple[str, bytes]]:
        """The assignment that a leader makes; no two are the same."""
        if not members:
            return []
        self.tokens += 1
        return requests.assignment(f"{leader.member_id}#{self.tokens}", leader.group, members)

    def make_member(self, group: GroupPlan, name: str, instance_id: str | None) -> Consumer:
        """A process that is yet to be started."""
        rng = self.rng
        protocols = ("cooperative-sticky",) if group.is_cooperative else rng.choice((("range", "sticky"), ("sticky", "range")))
        if rng.random() < 0.03:
            protocols = ("homemade",)
        return Consumer(
            self,
            group,
            name,
            instance_id,
            protocols,
            join_version=rng.choice((9, 9, 7, 5)) if instance_id is not None else rng.choice((9, 9, 9, 5, 3)),
            session_timeout_ms=rng.choice(SESSION_TIMEOUTS_MS),
            rebalance_timeout_ms=rng.choice(REBALANCE_TIMEOUTS_MS),
        )

    def start_member(self, consumer: Consumer) -> None:
        """It runs from now on."""
        self.note("%s starts", consumer.client_id)
        self.consumers.append(consumer)
        consumer.start()

    def restart_later(self, consumer: Consumer) -> None:
        """Somebody starts a process that ended anew, in a while, or never."""
        if self.is_in_trouble and self.rng.random() < 0.7:
            successor = self.make_member(consumer.group, consumer.client_id, consumer.instance_id)
            self.later(self.rng.expovariate(1 / 4_000), lambda: self.start_member(successor) if self.is_in_trouble else None)
