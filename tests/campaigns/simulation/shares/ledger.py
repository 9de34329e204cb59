"""The invariants of share groups, and what is known of each record: its locks, acknowledgements and deliveries."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from odradek.broker.share.acknowledgement import AcknowledgeType
from odradek.broker.share.in_flight import RecordState
from odradek.broker.share.share_partition import SharePartitionState
from odradek.broker.share.share_sessions import FINAL_EPOCH, TopicIdPartition
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.share_fetch import ShareFetchRequest
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from tests.campaigns.simulation.shares.topic import TOPIC_ID
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.share.share_partition import DeadLetter, SharePartition
    from tests.campaigns.simulation.shares.broker import Broker
    from tests.campaigns.simulation.shares.world import World

ONE_LOCK = "a record is never held by two live locks"
DONE = "an accepted record is never delivered again"
SKIPPED = "nothing is skipped below the start offset"
FORWARD = "the start offset never goes back"
EXPIRE = "locks expire in time"
LIMIT = "no record is delivered more often than the limit"
HOLDER = "a member that holds a lock may acknowledge"
HELD = "a member holds what is delivered to it"
WHOLE = "a fetch has the records that it acquires, and may see them"
WOKEN = "a fetch that could be answered does not wait"
IN_ORDER = "the records in flight are in order, and counted"
MOST = "a fetch has no more records than it may"

_REFUSED = frozenset({ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST})


@dataclass(slots=True)
class Lock:
    """A member's lock, as it was told. It is void if ``share`` is not used any more."""

    member_id: str
    share: SharePartition
    deadline_ms: float


@dataclass(slots=True)
class Fate:
    """The history of one offset. ``asked`` has the acknowledgements that a broker was asked for."""

    asked: set[int] = field(default_factory=set)
    # The leader epoch in which it was accepted with success.
    accepted_epoch: int | None = None
    is_rejected: bool = False
    lock: Lock | None = None


class _Partition:
    """``checked`` is the highest start offset seen; ``begun`` an offset at which a leader began the group."""

    def __init__(self) -> None:
        self.fates: dict[int, Fate] = {}
        self.checked = 0
        self.begun = 0
        self.letters: set[int] = set()
        # Delivered as often as the limit allows.
        self.exhausted: set[int] = set()

    def fate(self, offset: int) -> Fate:
        found = self.fates.get(offset)
        if found is None:
            found = self.fates[offset] = Fate()
        return found


@dataclass(slots=True, eq=False)
class Asked:
    """A request under way, with the locks that it wants to end, and the partitions that must not refuse it.

    ``is_gone``: the member's session has ended since, or ends with the request.
    """

    broker: Broker
    request: Any
    share_of: dict[int, SharePartition]
    ended: list[tuple[int, Fate, Lock]] = field(default_factory=list)
    is_granted: set[int] = field(default_factory=set)
    acknowledges: bool = False
    is_gone: bool = False


def offsets_of(request: Any) -> Iterator[tuple[int, int, int]]:
    """Yield the (partition, offset, type) of all acknowledgements in a request."""
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                types = batch.acknowledge_types
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    yield partition.partition_index, offset, types[0 if len(types) == 1 else offset - batch.first_offset]


class Ledger:
    """All that is known of one history's records."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._partitions = [_Partition() for _ in range(world.plan.partitions)]
        self._starts: dict[SharePartition, int] = {}
        self._under_way: list[Asked] = []

    def begins_at(self, index: int, offset: int) -> None:
        """Note that a leader begins the group here. Until that is stored, the next leader may begin elsewhere."""
        self._partitions[index].begun = max(self._partitions[index].begun, offset)

    def lettered(self, letter: DeadLetter) -> None:
        """Note records for the dead-letter queue."""
        known = self._partitions[letter.key.partition]
        for offset in range(letter.first_offset, letter.last_offset + 1):
            known.letters.add(offset)
            fate = known.fate(offset)
            if fate.accepted_epoch is not None:
                raise Violation(DONE, f"{offset} was accepted, and is a dead letter")

    # ------------------------------------------------------------------------------------------------- requests and answers

    def asked(self, broker: Broker, request: Any) -> Asked:
        """Note a request that a broker is about to handle: the locks that it may end, and those that entitle it to."""
        now_ms = self._world.clock.monotonic_ms()
        names = {partition.partition_index for topic in request.topics for partition in topic.partitions}
        shares = {index: share for index in names if (share := broker.shared(index)) is not None}
        asked = Asked(broker, request, shares, is_granted=set(shares))
        for index, offset, kind in offsets_of(request):
            asked.acknowledges = True
            fate, share = self._partitions[index].fate(offset), shares.get(index)
            fate.asked.add(kind)
            lock = fate.lock
            is_live = lock is not None and lock.share is share and lock.deadline_ms > now_ms
            if lock is None or not is_live or lock.member_id != request.member_id:
                asked.is_granted.discard(index)
            else:
                asked.ended.append((index, fate, lock))
                fate.lock = None
        self._under_way.append(asked)
        if request.share_session_epoch == FINAL_EPOCH:
            self.member_gone(broker, request.member_id)
        return asked

    def member_gone(self, broker: Broker, member_id: str) -> None:
        """Forget a member's locks: its session ends."""
        # An answer that waits for acknowledgements may still tell of records that are released by then.
        for asked in self._under_way:
            asked.is_gone |= asked.acknowledges and asked.broker is broker and asked.request.member_id == member_id
        shares = [broker.shared(index) for index in range(len(self._partitions))]
        for known in self._partitions:
            for fate in known.fates.values():
                if fate.lock is not None and fate.lock.member_id == member_id and fate.lock.share in shares:
                    fate.lock = None

    def answered(self, asked: Asked, response: Any, *, is_told: bool) -> None:
        """Note what a broker answers. Raises Violation."""
        self._under_way.remove(asked)
        is_fetch = isinstance(asked.request, ShareFetchRequest)
        name = "acknowledge_error_code" if is_fetch else "error_code"
        codes = {data.partition_index: getattr(data, name) for topic in response.responses for data in topic.partitions}
        is_refused = response.error_code != ErrorCode.NONE
        for index, fate, lock in asked.ended:
            code = codes.get(index)
            if (is_refused or code) and is_told and asked.request.share_session_epoch != FINAL_EPOCH:
                fate.lock = fate.lock or lock
            if index in asked.is_granted and not is_refused and code in _REFUSED:
                raise Violation(HOLDER, f"{asked.request.member_id} is told {ErrorCode(code).name}: {asked.request}")
        if is_refused:
            return
        for index, offset, kind in offsets_of(asked.request):
            if codes.get(index) == ErrorCode.NONE and index in asked.share_of:
                self._acknowledged(asked, index, offset, kind, is_told=is_told)
        if is_fetch:
            self._delivered(asked, response)

    def _acknowledged(self, asked: Asked, index: int, offset: int, kind: int, *, is_told: bool) -> None:
        share, fate = asked.share_of[index], self._partitions[index].fate(offset)
        if not any(each is fate for _, each, _ in asked.ended):
            # Not the member's by what it knows: the broker may say yes to offsets that are done with.
            return
        if kind == AcknowledgeType.ACCEPT and is_told:
            fate.accepted_epoch = max(share.leader_epoch, fate.accepted_epoch or 0)
            self._world.counts["records accepted"] += 1
            self._check_later_leaders(share, index, offset)
        elif kind == AcknowledgeType.REJECT and is_told:
            fate.is_rejected = True
        elif kind == AcknowledgeType.RENEW and not asked.is_gone:
            self._lock(share, fate, offset, asked.request.member_id)

    def _check_later_leaders(self, share: SharePartition, index: int, offset: int) -> None:
        """Check that a later leader has an accepted record as done with: it has read the state, and fences this leader."""
        for broker in self._world.up():
            later = broker.shared(index)
            if later is None or later.state != SharePartitionState.ACTIVE or later.leader_epoch <= share.leader_epoch:
                continue
            run = _run_at(later, offset)
            if offset >= self._begin(later) and (run is None or not run.state.is_terminal):
                told = f"{index}-{offset} is accepted in epoch {share.leader_epoch}"
                raise Violation(DONE, f"{told}, and is {run} in epoch {later.leader_epoch}")

    def _lock(self, share: SharePartition, fate: Fate, offset: int, member_id: str) -> None:
        run = _run_at(share, offset)
        if run is not None and run.state == RecordState.ACQUIRED and run.member_id == member_id and run.transition is None:
            fate.lock = Lock(member_id, share, run.lock_deadline_ms)

    def _delivered(self, asked: Asked, response: Any) -> None:
        plan, total = self._world.plan, 0
        for data in (data for topic in response.responses for data in topic.partitions if data.acquired_records):
            found = _record_offsets(data.records)
            index = data.partition_index
            for acquired in data.acquired_records:
                offsets = range(acquired.first_offset, acquired.last_offset + 1)
                total += len(offsets)
                for offset in offsets:
                    self._deliver(asked, index, offset, acquired.delivery_count, is_found=offset in found)
        if plan.has_record_limit and total > asked.request.max_records:
            raise Violation(MOST, f"{total} records for {asked.request}")
        self._world.counts["records delivered"] += total

    def _deliver(self, asked: Asked, index: int, offset: int, count: int, *, is_found: bool) -> None:
        world, member_id = self._world, asked.request.member_id
        written, fate = world.topic[index], self._partitions[index].fate(offset)
        told = f"{index}-{offset} is delivered to {member_id}"
        is_committed_only = world.plan.is_committed_only
        if is_committed_only and written.is_open(offset):
            raise Violation(WHOLE, f"{told} before its transaction has ended")
        if written.is_visible(offset, is_committed_only=is_committed_only) and not is_found:
            raise Violation(WHOLE, f"{told}, but not sent")
        if is_committed_only and written.ended.get(written.records.get(offset) or 0) is False:
            raise Violation(WHOLE, f"{told}, but its transaction was aborted")
        if count > world.plan.limits.delivery_count_limit:
            raise Violation(LIMIT, f"{told} with count {count}")
        if count == world.plan.limits.delivery_count_limit:
            self._partitions[index].exhausted.add(offset)
        share, lock = asked.broker.shared(index), fate.lock
        if share is None or share.state != SharePartitionState.ACTIVE:
            return
        is_live = lock is not None and lock.share is share and lock.deadline_ms > world.clock.monotonic_ms()
        # An answer that waited for its acknowledgements may come when its locks have expired.
        if lock is not None and is_live and not asked.acknowledges:
            raise Violation(ONE_LOCK, f"{told}, and {lock.member_id} has it until {lock.deadline_ms}")
        if not asked.is_gone:
            self._lock(share, fate, offset, member_id)
        is_held = fate.lock is not None and fate.lock.member_id == member_id
        if not is_held and not asked.acknowledges:
            raise Violation(HELD, f"{told}, which has no lock: {_run_at(share, offset)}")
        if is_held and fate.accepted_epoch is not None and share.leader_epoch >= fate.accepted_epoch:
            raise Violation(DONE, f"{told}, and was accepted in epoch {fate.accepted_epoch}")

    # -------------------------------------------------------------------------------------------------- after each event

    def check(self) -> None:
        """Check all share partitions. Raises Violation."""
        for broker in self._world.up():
            for share in broker.shares:
                if share.state == SharePartitionState.ACTIVE:
                    self._check_share(share)
            for operation in broker.shares.purgatory.waiting():
                fetch = operation._fetch
                shares = fetch._partitions.values()
                # In the next turn, the fetches of share partitions that have been loaded are tried.
                is_about_to_be_tried = any(share.key in broker.shares._loaded for share in shares)
                if fetch._params.min_bytes <= 1 and not is_about_to_be_tried and any(map(self._is_acquirable, shares)):
                    raise Violation(WOKEN, f"a fetch of {fetch._params.member_id} waits at {broker.node_id}")
        for index in range(len(self._partitions)):
            stored = self._world.coordinator.stored(SharePartitionKey("g", TOPIC_ID, index))
            if stored is not None:
                self._check_start(index, stored.snapshot.start_offset, "stored")

    def _is_acquirable(self, share: SharePartition) -> bool:
        """Return whether a fetch from the share partition finds something."""
        plan, window, source = self._world.plan, share.window, share.partition
        if source.leader_epoch != self._world.leaders[source.index][1]:
            # The log is another leader's by now.
            return False
        if share.state != SharePartitionState.ACTIVE or not window.can_acquire(plan.limits.partition_max_record_locks):
            return False
        return window.next_fetch_offset() < (source.last_stable_offset if plan.is_committed_only else source.high_watermark)

    def note_exhausted(self, share: SharePartition) -> None:
        """Note the records that are delivered for the last time, whether or not the answer is under way."""
        for run in share.window.runs():
            if run.delivery_count == self._world.plan.limits.delivery_count_limit:
                self._partitions[share.key.partition].exhausted.update(range(run.first_offset, run.last_offset + 1))

    def _check_share(self, share: SharePartition) -> None:
        self.note_exhausted(share)
        window, known, index = share.window, self._partitions[share.key.partition], share.key.partition
        now_ms, limit = self._world.clock.monotonic_ms(), self._world.plan.limits.delivery_count_limit
        runs = list(window.runs())
        for before, run in pairwise(runs):
            if before.last_offset >= run.first_offset:
                raise Violation(IN_ORDER, f"{before} and {run}")
        complete = sum(window.size_from_start(run.first_offset, run.last_offset) for run in runs if run.state.is_terminal)
        if complete != window.delivery_complete_count:
            raise Violation(IN_ORDER, f"{window.delivery_complete_count} of {window.start_offset} {runs} are complete")
        for run in runs:
            if run.state == RecordState.ACQUIRED and run.transition is None and run.lock_deadline_ms < now_ms:
                raise Violation(EXPIRE, f"{index}: {run} until {run.lock_deadline_ms}")
            if run.delivery_count > limit:
                raise Violation(LIMIT, f"{index}: {run}")
            if not run.state.is_terminal:
                self._check_not_accepted(share, known, run)
        if window.start_offset < self._starts.get(share, 0):
            raise Violation(FORWARD, f"{index}: {window.start_offset} after {self._starts[share]}")
        self._starts[share] = window.start_offset
        self._check_start(index, window.start_offset, f"epoch {share.leader_epoch}")

    def _check_not_accepted(self, share: SharePartition, known: _Partition, run: Any) -> None:
        for offset in range(max(run.first_offset, self._begin(share)), run.last_offset + 1):
            fate = known.fates.get(offset)
            if fate is not None and fate.accepted_epoch is not None and fate.accepted_epoch <= share.leader_epoch:
                raise Violation(DONE, f"{share.key.partition}-{offset} was accepted in epoch {fate.accepted_epoch}, and is {run}")

    def _begin(self, share: SharePartition) -> int:
        """Return the first offset that can be delivered. The window may not know yet that the log has lost records."""
        return max(share.window.start_offset, self._world.topic[share.key.partition].log.log_start_offset)

    def _check_start(self, index: int, start_offset: int, where: str) -> None:
        """Check that each offset below the start offset is done with."""
        known, written = self._partitions[index], self._world.topic[index]
        for offset in range(known.checked, start_offset):
            if not self.is_settled(index, offset):
                fate = known.fates.get(offset)
                kind = "an open" if written.is_open(offset) else "a"
                raise Violation(SKIPPED, f"{where}: {index} starts at {start_offset}, {kind} record {offset} is {fate}")
        known.checked = max(known.checked, start_offset)

    def is_settled(self, index: int, offset: int) -> bool:
        """Return whether there is a reason never to deliver an offset again."""
        known, written, plan = self._partitions[index], self._world.topic[index], self._world.plan
        if offset < max(known.begun, written.log.log_start_offset):
            return True
        if plan.is_committed_only and written.is_open(offset):
            return False
        if not written.is_visible(offset, is_committed_only=plan.is_committed_only):
            return True
        asked = known.fate(offset).asked
        return offset in known.exhausted or AcknowledgeType.ACCEPT in asked or AcknowledgeType.REJECT in asked

    def without_letter(self) -> list[tuple[int, int]]:
        """Return the records that were rejected with success, but are no dead letters."""
        return [
            (index, offset)
            for index, known in enumerate(self._partitions)
            for offset, fate in known.fates.items()
            if fate.is_rejected and offset not in known.letters and offset >= self._world.topic[index].log.log_start_offset
        ]


def _run_at(share: SharePartition, offset: int) -> Any:
    batches = share.window.batches
    place = bisect_right(batches, offset, key=lambda batch: batch.first_offset) - 1
    if place < 0 or batches[place].last_offset < offset:
        return None
    return batches[place].run_at(offset)


def _record_offsets(records: Any) -> set[int]:
    """Return the offsets of the records in a response's bytes, without control records."""
    data = records if isinstance(records, bytes) else records.read()
    return {
        record.offset
        for position, header in iter_batches(data)
        if position + header.size_bytes <= len(data) and not header.is_control
        for record in read_records(data, position)
    }


def record_offsets(name: TopicIdPartition, response: Any) -> set[int]:
    """Return the offsets of one partition's records in a response."""
    found: set[int] = set()
    for topic in response.responses:
        for data in topic.partitions:
            if data.partition_index == name.partition and data.acquired_records:
                found |= _record_offsets(data.records)
    return found
