"""A flipped bit in each byte of the files of a killed broker: it is found and named, or does no harm.

Harm is any wrong data that is served: a record that nobody wrote, a record at another offset, an unreported gap, an aborted
record as committed. Named means that a line of the log, the reason for a partition's being offline, or the reason for the
failed start describes the damage. If the records are intact, all of them must be served.

A batch's CRC does not cover its base offset and leader epoch. Recovery compares the base offset with the one expected, and
trusts the leader epoch. As in Kafka, it does not read batches before the recovery point, so damage there need not be found.

Two of Kafka's files have no checksum, and any digit in them is plausible: the checkpoints of offsets, and of leader epochs. A
wrong log start offset or epoch in them is trusted; only a log that ends before its recovery point counts as damage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.common.logging import lines_to
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.record_batch import iter_batches
from odradek.storage.errors import InconsistentDataDirectory
from tests.campaigns.power_loss import workload
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.explore import Tally
from tests.campaigns.power_loss.ledger import Written
from tests.campaigns.power_loss.log_checks import check_producers, check_reads, read_batches
from tests.campaigns.power_loss.model import DiskModel
from tests.campaigns.power_loss.run import Run
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from odradek.broker.replica.partition import Partition


STEPS: list[Callable[[Run], None]] = [
    workload.create_topics,
    workload.produce_a_little,
    workload.commit_a_transaction,
    workload.abort_a_transaction,
    workload.wait_for_checkpoints,
    workload.produce_idempotently,
    workload.produce_until_rolled,
    workload.abort_a_transaction,
]
_SEED = 1_000
_NAMED = "what is damaged is found and named"
# Files without a checksum that are read for no other purpose.
_UNCHECKED = ("checkpoint", "meta.properties")


class _Damage(NamedTuple):
    """``is_covered``: a checksum covers the bit, if the file has one."""

    path: str
    is_covered: bool


def explore_flips(loop: asyncio.AbstractEventLoop, share: range) -> Tally:
    """Try each byte whose number, over all files, is in ``share``."""
    run = Run(loop, flush_messages=1)
    run.go(STEPS)
    ends = {(each.topic, each.index): each.require_log().log_end_offset for each in run.node.partitions()}
    run.node.vanish()
    written = Written()
    written.take(run.disk.operations)
    model = DiskModel({}, [])
    for operation in run.disk.operations:
        model.apply(operation)
    state = model.killed()
    tally = Tally()
    number = 0
    for path in sorted(state):
        content = state[path]
        for position in range(len(content or b"")):
            number += 1
            if content is None or number not in share:
                continue
            damaged = bytearray(content)
            damaged[position] ^= 1 << number % 8
            kind = path.rpartition("/")[2].lstrip("0123456789").lstrip(".") or path
            is_covered = not path.endswith(".log") or position not in _uncovered(content)
            tally.points["bit flip", kind, "a bit" if is_covered else "a bit outside of the CRC"] += 1
            damage = _Damage(path, is_covered)
            try:
                _look(loop, {**state, path: bytes(damaged)}, damage, written, ends, run.clock.now_ms())
            except Violation as violation:
                tally.found(f"bit {number % 8} of byte {position} of {path}", violation)
    return tally


def _uncovered(content: bytes) -> set[int]:
    """The positions of base offsets, and of leader epochs."""
    return {start + byte for start, _ in iter_batches(content) for byte in (*range(8), *range(12, 16))}


def _look(
    loop: asyncio.AbstractEventLoop,
    state: dict[str, bytes | None],
    damage: _Damage,
    written: Written,
    ends: dict[tuple[str, int], int],
    now_ms: int,
) -> None:
    files = {name: content for name, content in state.items() if content is not None}
    run = Run(loop, flush_messages=1, disk=RecordingDisk(files), now_ms=now_ms, seed=_SEED)
    with lines_to(run.lines.note):
        try:
            run.node.start()
        except (KafkaError, OSError, ValueError, InconsistentDataDirectory) as error:
            _ensure_named(damage.path, str(error))
            return
        finally:
            if not run.node.is_running:
                run.node.vanish()
        try:
            for partition in run.node.partitions():
                try:
                    _check(partition, run, damage, written, ends)
                except (KafkaError, OSError) as error:
                    # Requests for this partition get the error; other partitions are not affected.
                    _ensure_named(damage.path, f"{partition.require_log().directory}/: {error}")
        finally:
            run.node.vanish()


def _check(partition: Partition, run: Run, damage: _Damage, written: Written, ends: dict[tuple[str, int], int]) -> None:
    path = damage.path
    name = f"{partition.topic}-{partition.index}"
    is_its_own = f"/{name}/" in path
    log = partition.log
    if log is None:
        _ensure_named(path, f"/data/{name}: {partition.offline_reason}")
        return
    if is_its_own and not damage.is_covered:
        # A start does not read batches before the recovery point, so it does not find the damage.
        return
    try:
        batches = read_batches(log, None if path.endswith(".log") and is_its_own else written.batches.get(_key(partition), {}))
    except (KafkaError, MalformedMessage) as error:
        # A start does not read before the recovery point: a reader finds the damage, by the batch's CRC or by its end.
        if not is_its_own:
            raise Violation(_NAMED, f"{path} is damaged, and {name} cannot be read: {error}") from error
        return
    if is_its_own and path.endswith(".log"):
        _ensure_written(partition, batches, written)
    if log.log_end_offset < ends.get((partition.topic, partition.index), 0):
        _ensure_named(log.directory, " ".join(run.lines.texts()))
    check_reads(log, batches)
    if not path.endswith(_UNCHECKED):
        check_producers(log, batches)


def _key(partition: Partition) -> object:
    return partition.topic_id, partition.index


def _ensure_written(partition: Partition, batches: object, written: Written) -> None:
    """The leader epoch may differ: the CRC does not cover it, and a follower sets it."""
    known = {
        offset: {batch[:12] + batch[16:] for batch in of_offset}
        for offset, of_offset in written.batches.get(_key(partition), {}).items()  # type: ignore[call-overload]
    }
    for header, data in batches:  # type: ignore[attr-defined]
        if data[:12] + data[16:] not in known.get(header.base_offset, ()):
            raise Violation(_NAMED, f"nobody wrote this at offset {header.base_offset} of {partition.topic}: {data!r}")


def _ensure_named(path: str, text: str) -> None:
    if path not in text and path.rpartition("/")[0] not in text:
        raise Violation(_NAMED, f"{path} is damaged, and this was said: {text}")
