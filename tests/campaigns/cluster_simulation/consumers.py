"""Consumers: one that commits a group's offsets, whoever coordinates the group, and one that reads what is committed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.client.api import Api
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.message_types.heartbeat import HeartbeatRequest
from odradek.protocol.message_types.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.message_types.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.campaigns.cluster_simulation.client import GROUP, Client
from tests.campaigns.cluster_simulation.producers import RETRIABLE
from tests.campaigns.cluster_simulation.witness import MEMBER, WATERMARK
from tests.campaigns.simulation.transactions.witness import committed_records
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.cluster_simulation.witness import Place
    from tests.campaigns.cluster_simulation.world import World


_COMMIT: Api[Any, Any] = Api(ApiKey.OFFSET_COMMIT, 5, 9)
_FETCH_OFFSETS: Api[Any, Any] = Api(ApiKey.OFFSET_FETCH, 8, 9)
# Topics have names.
_FETCH: Api[Any, Any] = Api(ApiKey.FETCH, 9, 12)
_LIST_OFFSETS: Api[Any, Any] = Api(ApiKey.LIST_OFFSETS, 4)
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_LATEST = -1
_READ_BYTES = 1 << 20
_LOOKS = 8
READ = "who reads committed records reads all of them, and no others"


class Committer(Client):
    """The one committer of a group: of one without members, unless it is a ``Member``."""

    def __init__(self, world: World, name: str, group: str) -> None:
        super().__init__(world, name)
        self.group = group
        self.member_id = ""
        self.generation = -1

    async def look_after_group(self) -> None:
        """Do what a member does between commits."""

    async def work(self) -> None:
        """Commit ever larger offsets, and look at times what is committed."""
        offset = 0
        known = self.world.ledger.offsets[self.group, 0]
        while self.world.wants_more(self):
            if self.rng.random() < 0.5:
                await self._look_at_committed(known.acknowledged)
            offset += 1
            known.asked.append(offset)
            if await self._commit(offset):
                known.acknowledged = offset
                self.world.counts["offsets committed"] += 1
            await self.look_after_group()
            await self.sleep(self.rng.random() * self.world.plan.think_ms)

    async def _look_at_committed(self, least: int) -> None:
        """Ask for the group's offset, of which ``least`` was acknowledged. Raises Violation where it is lost.

        A coordinator that does not know yet that another has taken over tells what it knew, as Kafka's does. It is not judged
        by what was acknowledged since.
        """
        found = await self.committed(self.group)
        if self.world.is_superseded(await self.coordinator(self.group, GROUP), self.world.offsets_place(self.group)):
            least = -1
            self.world.counts["offsets told by a former coordinator"] += 1
        self.world.ledger.check_offset(self.group, 0, found, least)

    async def _commit(self, offset: int) -> bool:
        topic = OffsetCommitRequestTopic(
            name=self.world.topic, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        )
        while True:
            request = OffsetCommitRequest(
                group_id=self.group,
                generation_id_or_member_epoch=self.generation,
                member_id=self.member_id,
                topics=[topic],
            )
            response = await self.ask_coordinator(self.group, GROUP, _COMMIT, request)
            if response is not None:
                code = response.topics[0].partitions[0].error_code
                self.world.counts[f"OFFSET_COMMIT {ErrorCode(code).name}"] += 1
                if code == ErrorCode.NONE:
                    return True
                if code not in RETRIABLE:
                    raise Violation("a commit is taken", f"{self.name}: {ErrorCode(code).name}")
            await self.look_for_coordinator(self.group, GROUP)

    async def committed(self, group: str) -> int:
        """What a group's coordinator says, -1 for nothing."""
        asked = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=self.world.topic, partition_indexes=[0])]
        )
        while True:
            response = await self.ask_coordinator(
                group, GROUP, _FETCH_OFFSETS, OffsetFetchRequest(groups=[asked], require_stable=True)
            )
            if response is not None:
                [answer] = response.groups
                codes = {answer.error_code, *(each.error_code for topic in answer.topics for each in topic.partitions)}
                if codes <= {ErrorCode.NONE}:
                    found: int = answer.topics[0].partitions[0].committed_offset
                    return found
                if not codes - {ErrorCode.NONE} <= RETRIABLE | {ErrorCode.UNSTABLE_OFFSET_COMMIT}:
                    raise Violation("offsets are told", f"{self.name}: {codes}")
            await self.look_for_coordinator(group, GROUP)


class PartitionReader:
    """What was read of one partition: (offset, value) of each record, in order."""

    def __init__(self) -> None:
        self.offset = 0
        self.records: list[tuple[int, bytes]] = []

    def take(self, data: bytes, aborted: deque[tuple[int, int]]) -> None:
        """Take batches, without those of aborted transactions: (producer id, first offset), in order."""
        for header, records in committed_records(data, aborted):
            self.records += [record for record in records if record[0] >= self.offset]
            self.offset = max(self.offset, header.next_offset)


class Reader(Client):
    """Reads all partitions, committed records only or all of them.

    It asks leaders that are no more, too: with the newest epoch in its request, these have to refuse it.
    """

    believes_anybody = True

    def __init__(self, world: World, name: str, *, is_committed: bool = True) -> None:
        super().__init__(world, name)
        self.partitions = {place: PartitionReader() for place in world.places}
        self._isolation = _READ_COMMITTED if is_committed else _READ_UNCOMMITTED
        self._ends: dict[Place, int] = {}

    async def work(self) -> None:
        """Read on as long as the world is in trouble."""
        while self.world.is_in_trouble:
            place = self.rng.choice(self.world.places)
            if self.rng.random() < 0.25:
                # Metadata get old, and whoever is asked may know less.
                self.forget_leader(place)
            if self.rng.random() < 0.3:
                await self._look_at_end(place)
            elif not await self.read(place, wait_ms=self.rng.choice((0, 50, 500))):
                await self.look_again(place)
                await self._look_at_end(place)
            await self.sleep(self.rng.random() * self.world.plan.think_ms)

    async def read(self, place: Place, wait_ms: int = 0) -> bool:
        """One request; whether it was answered."""
        reader = self.partitions[place]
        leader = await self.leader(place)
        asked = FetchPartition(
            partition=place[1],
            current_leader_epoch=self.leader_epochs[place],
            fetch_offset=reader.offset,
            partition_max_bytes=_READ_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_READ_BYTES,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic=place[0], partitions=[asked])],
        )
        response = await self.ask(leader, _FETCH, request)
        if response is None or response.error_code:
            return False
        [topic] = response.responses
        [data] = topic.partitions
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.world.leads(leader, place):
            # A follower that has lost its log says so too, and no client believes it (KIP-392).
            raise Violation(READ, f"{self.name}: {place} {reader.offset} is out of range")
        if data.error_code:
            return False
        self._saw(place, data.high_watermark if self._isolation == _READ_UNCOMMITTED else data.last_stable_offset)
        if data.records:
            aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
            reader.take(bytes(data.records), deque((producer_id, offset) for offset, producer_id in aborted))
            self.world.counts["fetches with records"] += 1
        return True

    async def end_of(self, place: Place) -> int | None:
        """The latest offset, as ListOffsets tells it; None where it does not."""
        leader = await self.leader(place)
        partition = ListOffsetsPartition(
            partition_index=place[1], current_leader_epoch=self.leader_epochs[place], timestamp=_LATEST
        )
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=self._isolation, topics=[ListOffsetsTopic(name=place[0], partitions=[partition])]
        )
        response = await self.ask(leader, _LIST_OFFSETS, request)
        if response is None:
            return None
        [topic] = response.topics
        [answer] = topic.partitions
        return None if answer.error_code else answer.offset

    async def _look_at_end(self, place: Place) -> None:
        """The end is never before one that this client had seen before it asked (KIP-207)."""
        least = self._ends.get(place, 0)
        for _ in range(_LOOKS):
            end = await self.end_of(place)
            if end is not None:
                break
            # There is a new leader, perhaps, which knows least when it has just been elected.
            await self.look_again(place, 10)
        else:
            return
        if end < least:
            raise Violation(WATERMARK, f"{self.name}: {place} ends at {end}, and had ended at {least}")
        self._saw(place, end)

    def _saw(self, place: Place, end: int) -> None:
        self._ends[place] = max(self._ends.get(place, 0), end)
        watermarks = self.world.ledger.watermarks
        watermarks[place] = max(watermarks[place], end)


_JOIN: Api[Any, Any] = Api(ApiKey.JOIN_GROUP, 5, 9)
_SYNC: Api[Any, Any] = Api(ApiKey.SYNC_GROUP, 3)
_HEARTBEAT: Api[Any, Any] = Api(ApiKey.HEARTBEAT, 3)
_SESSION_MS = 30_000


class Member(Committer):
    """A Committer that is a member: longer than its session no coordinator is missing, so that its membership never ends."""

    def __init__(self, world: World, name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._assignment = name.encode()

    async def work(self) -> None:
        """Join, then commit and send heartbeats as long as the world is in trouble, and a little beyond."""
        while not await self._join():
            await self.look_for_coordinator(self.group, GROUP)
        await super().work()

    async def _join(self) -> bool:
        """True while the group is this member's."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_SESSION_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )
        response = await self.ask_coordinator(self.group, GROUP, _JOIN, request)
        if response is None or response.error_code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            if response is not None and response.error_code not in RETRIABLE:
                # An id that was given is remembered by the coordinator that gave it, until the group is in its log.
                self.member_id = ""
            return False
        self.member_id = response.member_id
        if response.error_code:
            return False
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=response.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(self.member_id, self._assignment)],
        )
        synced = await self.ask_coordinator(self.group, GROUP, _SYNC, sync)
        if synced is None or synced.error_code:
            return False
        self.generation = response.generation_id
        self.world.note("%s is in generation %s", self.name, self.generation)
        return True

    async def look_after_group(self) -> None:
        """Send a heartbeat. Raises Violation where the group does not know this member any more."""
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        response = await self.ask_coordinator(self.group, GROUP, _HEARTBEAT, request)
        code = None if response is None else response.error_code
        if code == ErrorCode.NONE:
            return
        if code is not None and code not in RETRIABLE:
            raise Violation(MEMBER, f"{self.name}: a heartbeat is answered {ErrorCode(code).name}")
        await self.look_for_coordinator(self.group, GROUP)
