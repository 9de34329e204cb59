"""Faults of the product that histories of share groups have to find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.replica.partition import Partition
from odradek.broker.share import acknowledgement, delayed_share_fetch, share_partition
from odradek.broker.share.acknowledgement import HeldRecords
from odradek.broker.share.acquisition import _Acquisition
from odradek.broker.share.in_flight import InFlightState, RecordState, ShareLimits
from odradek.broker.share.in_flight_window import InFlightWindow
from odradek.broker.share.share_partition import SharePartition
from odradek.broker.share.share_partition_manager import SharePartitionManager
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.coordinator.share import share_shard
from odradek.coordinator.share.share_shard import ShareShard
from odradek.timing.reply import Reply
from odradek.timing.timer import Purgatory
from tests.campaigns.planted import Faults
from tests.campaigns.simulation.groups.replayed import REPLAYED
from tests.campaigns.simulation.shares import histories
from tests.campaigns.simulation.shares.ending import LETTERED, REST
from tests.campaigns.simulation.shares.ledger import (
    DONE,
    EXPIRE,
    HELD,
    HOLDER,
    IN_ORDER,
    LIMIT,
    MOST,
    ONE_LOCK,
    SKIPPED,
    WHOLE,
    WOKEN,
)
from tests.campaigns.simulation.shares.world import MISTAKE

if TYPE_CHECKING:
    from odradek.coordinator.share.state import PartitionState

FAULTS = Faults(histories.run, most=60)


def nothing(*_: Any) -> None:
    """Takes the place of what is left out."""


@FAULTS.around(acknowledgement._Acknowledgement, "_check", HOLDER, ONE_LOCK)
def let_any_member_acknowledge(check: Any, step: Any, run: InFlightState) -> None:
    check(step._replace(member_id=run.member_id or step.member_id), run)


@FAULTS.around(acknowledgement, "expire", ONE_LOCK, HOLDER)
def let_all_locks_expire_together(expire: Any, window: Any, _now_ms: float, limits: ShareLimits, most_runs: int) -> Any:
    return expire(window, float("inf"), limits, most_runs)


@FAULTS.around(acknowledgement, "held_by", ONE_LOCK, HOLDER)
def release_the_records_of_all_members(_held_by: Any, window: InFlightWindow, _member_id: str) -> list[HeldRecords]:
    acquired = (run for run in window.runs() if run.state == RecordState.ACQUIRED)
    return [HeldRecords(run, run.member_id, run.lock_deadline_ms) for run in acquired]


@FAULTS.around(SharePartition, "_store", DONE, first=2)
def answer_before_it_is_stored(store: Any, share: SharePartition, transition: Any) -> Any:
    store(share, transition)
    reply: Reply[Any] = Reply()
    reply.complete(None)
    return reply


@FAULTS.around(InFlightWindow, "load", SKIPPED, REST, first=3)
def see_no_gaps_in_the_stored_state(load: Any, stored: PartitionState) -> Any:
    window = load(stored)
    window.gap = None
    return window


@FAULTS.around(ShareShard, "_refusal", DONE, SKIPPED)
def fence_no_leader(refusal: Any, shard: Any, key: Any, leader_epoch: Any = None, *others: Any, **named: Any) -> Any:
    return refusal(shard, key, None if leader_epoch is None else 1_000_000, *others, **named)


@FAULTS.around(share_shard, "combine_batches", DONE)
def keep_the_first_state(combine: Any, stored: Any, update: Any, start_offset: int) -> Any:
    return combine(stored, () if stored else update, start_offset)


@FAULTS.around(delayed_share_fetch, "slice_of", WHOLE, WOKEN)
def send_one_batch(slice_of: Any, found: Any, batches: Any, first_offset: int, _last_offset: int) -> Any:
    return slice_of(found, batches, first_offset, first_offset)


FAULTS.put("deliver_without_limit", ShareLimits, "after_release", lambda *_: RecordState.AVAILABLE, LIMIT)
FAULTS.put("archive_at_the_first_release", ShareLimits, "after_release", lambda *_: RecordState.ARCHIVED, SKIPPED)
FAULTS.put("let_no_lock_expire", SharePartition, "_expire", nothing, EXPIRE)
FAULTS.put("watch_the_first_lock_only", InFlightWindow, "next_deadline_ms", nothing, EXPIRE)
FAULTS.put(
    "acquire_what_is_being_released",
    InFlightState,
    "is_available",
    property(lambda run: run.state == RecordState.AVAILABLE),
    HELD,
    HOLDER,
    EXPIRE,
)
FAULTS.put("count_nothing", InFlightWindow, "count_complete", nothing, IN_ORDER)
FAULTS.put("wake_no_fetch", Purgatory, "check_and_complete", lambda *_: 0, WOKEN)
FAULTS.put("wake_no_fetch_when_loaded", Purgatory, "check_together", nothing, WOKEN)
FAULTS.put("tell_of_no_new_records", SharePartitionManager, "_partition_changed", nothing, WOKEN)
FAULTS.put("withdraw_nothing", share_partition, "withdraw_aborted", lambda _, acquired, *__: acquired, WHOLE, first=5)
FAULTS.put(
    "read_up_to_the_high_watermark",
    Partition,
    "last_stable_offset",
    property(lambda partition: partition.high_watermark),
    WHOLE,
    SKIPPED,
    first=6,
)
FAULTS.put(
    "give_whole_batches",
    _Acquisition,
    "_add_limited",
    lambda step, first, last, _: step._add_in_pieces(first, last),
    MOST,
    first=3,
)
FAULTS.put("write_no_dead_letters", SharePartition, "_write_dead_letters", nothing, REST, LETTERED, first=4)
FAULTS.put(
    "prune_too_much", ShareShard, "last_redundant_offset", lambda shard: shard._last_snapshot_offset.get(), REPLAYED, first=9
)
FAULTS.put("keep_what_could_not_be_written", SnapshotRegistry, "roll_back", nothing, REPLAYED, MISTAKE, DONE, first=2)
