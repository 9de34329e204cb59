"""How each history ends: trouble is over, and then

processes finish what they are at, and make no more; what dead ones left open times out
all comes to rest: no transaction is open or being ended, every last stable offset is the high watermark
each transactional id goes on: a new process makes a transaction on all partitions, with offsets
a restart of the broker changes nothing, in some histories
what was read, told, replayed and appended agrees
the ids' expiration passes, in some histories: none is left
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.states import ShardState
from tests.campaigns.simulation.transactions.fetcher import Administrator, Fetcher
from tests.campaigns.simulation.transactions.server import COORDINATORS_TOPICS
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from tests.campaigns.simulation.transactions.faults import Faults
    from tests.campaigns.simulation.transactions.world import World

_REST_WITHIN_MS = 40_000
_GO_ON_WITHIN_MS = 8_000
_MORE_ATTEMPTS = 2
_LOOK_EVERY_MS = 500
_LATEST_MS = 2_000
_RESTARTED_SHARE = 0.5
_EXPIRING_SHARE = 0.2


def end(world: World, faults: Faults) -> None:
    """Raises Violation."""
    world.note("trouble is over")
    world.is_in_trouble = False
    faults.end()
    for process in world.alive():
        process.stalled_until_ms = 0
    for plan in world.plan.producers:
        # What has no timeout is open until its manager is there again, which has it aborted.
        if plan.is_two_phase:
            world.start_process(plan)
    _wait(world, "all comes to rest", _REST_WITHIN_MS)
    _check(world)
    world.check_replayed()
    faults.create_topics()
    _go_on(world)
    if world.server is not None:
        Administrator(world).look(world.server)
    if world.rng.random() < _RESTARTED_SHARE:
        world.kill_broker()
        world.start_broker()
        _wait(world, "a restart changes nothing", _GO_ON_WITHIN_MS)
        world.fetcher = Fetcher(world)
        _check(world)
    if world.rng.random() < _EXPIRING_SHARE:
        _let_ids_expire(world)


def _wait(world: World, invariant: str, within_ms: int) -> None:
    for _ in range(0, within_ms, _LOOK_EVERY_MS):
        world.run(_LOOK_EVERY_MS)
        unrest = _unrest(world)
        if not unrest:
            return
    raise Violation(invariant, unrest)


def _unrest(world: World) -> str:
    """What keeps the history from rest; empty where nothing does."""
    server = world.server
    if server is None:
        return "the broker is down"
    at_work = [str(process) for process in world.alive() if not process.is_idle]
    if at_work:
        return f"{at_work} are at work"
    states = {topic: runtime.states() for topic, runtime in server.runtimes()}
    if states.keys() != set(COORDINATORS_TOPICS) or any(set(of.values()) != {ShardState.ACTIVE} for of in states.values()):
        return f"the shards are {states}"
    open_ids = [*world.witness.fates.unsettled()]
    if open_ids:
        return f"open: {open_ids}"
    for partition in server.partitions:
        if partition.log is None or partition.last_stable_offset != partition.log.log_end_offset:
            return f"{partition.topic}-{partition.index}: the last stable offset is {partition.last_stable_offset}"
    for topic, hosted in server.active():
        if topic == COORDINATORS_TOPICS[0] and (hosted.shard.transactions.pending or hosted.shard.markers.remaining):
            return f"pending: {hosted.shard.transactions.pending}, without markers: {hosted.shard.markers.remaining}"
    return ""


def _check(world: World) -> None:
    world.read_on(world.rng.choice((1, 300, 1 << 20)))
    for seen in world.witness.partitions.values():
        reader = world.fetcher.readers.get((seen.topic_id, seen.name[1]))
        if reader is not None and reader.offset != seen.end_offset:
            raise Violation("all is read in the end", f"{seen.name}: up to {reader.offset} of {seen.end_offset}")
    world.check_ledger(is_over=True)


def _go_on(world: World) -> None:
    # What was sent a second time arrives, and fences nobody any more.
    world.run(_LATEST_MS)
    world.is_last_round = True
    last = [world.start_process(plan) for plan in world.plan.producers]
    _wait(world, "each transactional id can go on", _GO_ON_WITHIN_MS)
    for _ in range(_MORE_ATTEMPTS):
        if all(process.made for process in last):
            break
        # A slow one may be longer at its transaction than its timeout, or idle for longer than its id is kept.
        last = [
            process if process.made else world.start_process(plan)
            for plan, process in zip(world.plan.producers, last, strict=True)
        ]
        _wait(world, "each transactional id can go on", _GO_ON_WITHIN_MS)
    for process in last:
        if not process.made:
            raise Violation("each transactional id can go on", f"{process} has made no transaction")
    for plan, process in zip(world.plan.producers, last, strict=True):
        if len(world.ledger.transactions) and not any(
            sent.told for sent in world.ledger.transactions.values() if sent.producer == process.name
        ):
            raise Violation("each transactional id can go on", f"{plan.transactional_id} has committed nothing")
    _check(world)


def _let_ids_expire(world: World) -> None:
    for process in world.alive():
        if process.member is not None:
            process.member.leave()
    world.run(max(world.plan.expiration_ms * 3 // 2, 2_000))
    if world.witness.fates.latest:
        raise Violation("what nobody uses any more expires", f"{world.witness.fates.latest}")
