"""The checks of a broker that restarts on a given state of its disk. First the state is examined, then the broker goes on.

First, what was promised must be there, and nothing else. Then the broker gets time, after which all transactions must be
settled. Then every operation is done once more, the broker is stopped and started, and everything must still be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.common.logging import lines_to
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.directories.checkpoints import CLEAN_SHUTDOWN_FILE
from odradek.storage.log.segment import segment_path
from tests.campaigns.power_loss.clients import Producer, commit, committed, plain, produce
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.ledger import Ends
from tests.campaigns.power_loss.log_checks import check_keys, check_log, committed_values
from tests.campaigns.power_loss.node import DATA, TRANSACTION_TIMEOUT_MS
from tests.campaigns.power_loss.run import Run
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from odradek.broker.replica.partition import Partition
    from tests.campaigns.power_loss.ledger import PartitionKey, Promises, Written
    from tests.campaigns.power_loss.node import Node

_KEPT = "what was promised is there"
_DELETED = "deleted records stay deleted"
_SERVES = "every partition serves"
_SETTLED = "no transaction hangs"
_ATOMIC = "a transaction is there in all partitions or in none"
_TOLD = "what is lost is told"
_GOES_ON = "the broker goes on"
_INDEXES = "indexes below the recovery point are synced"
_MENDED = "indexes do not match their segment, rebuilding them"
_INTERNAL = ("__consumer_offsets", "__transaction_state")
# Larger than the number of a workload's broker starts.
_SEED = 1_000
_MOST_ATTEMPTS = 10
_SETTLING_MS = 3 * TRANSACTION_TIMEOUT_MS


class Expectation:
    """The expectations of a state of the disk. ``is_synced``: every record is synced, or no bytes of any log are lost."""

    def __init__(
        self,
        promises: Promises,
        written: Written,
        *,
        after_power_loss: bool,
        flush_messages: int | None,
        now_ms: int,
        checked: set[int],
        directories: tuple[str, ...] = (DATA,),
    ) -> None:
        """``checked`` has the states of single logs that were examined, and is added to."""
        self.promises = promises
        self.written = written
        self.after_power_loss = after_power_loss
        self.flush_messages = flush_messages
        self.now_ms = now_ms
        self.checked = checked
        self.directories = directories

    @property
    def is_synced(self) -> bool:
        return not self.after_power_loss or self.flush_messages == 1


def examine(loop: asyncio.AbstractEventLoop, state: Mapping[str, bytes | None], expected: Expectation, *, goes_on: bool) -> Run:
    """Start a broker on ``state`` and check it. Raises Violation. With ``goes_on`` it also works on. The run ends either way."""
    files = {path: content for path, content in state.items() if content is not None}
    disk = RecordingDisk(files, [path for path, content in state.items() if content is None])
    run = Run(
        loop,
        flush_messages=expected.flush_messages,
        disk=disk,
        now_ms=expected.now_ms,
        seed=_SEED,
        directories=expected.directories,
    )
    with lines_to(run.lines.note):
        try:
            _start(run.node)
            run.learn_topics()
            _check_all(run, expected, _states_of_logs(files, expected.directories))
            _check_told(run, expected, files)
            _check_indexes(run)
            if goes_on:
                run.node.load_coordinators()
                run.node.wait(_SETTLING_MS)
                _check_settled(run, expected)
                _go_on(run, expected)
        except (KafkaError, OSError) as error:
            raise Violation(_SERVES, f"{type(error).__name__} {error}") from error
        finally:
            run.node.vanish()
    return run


def _start(node: Node) -> None:
    try:
        node.start()
    except Exception as error:
        raise Violation("the broker starts", f"{type(error).__name__} {error}") from error


def _states_of_logs(files: Mapping[str, bytes], directories: tuple[str, ...]) -> dict[str, int]:
    """A number for each log directory that identifies all files that opening the log reads."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    common: dict[str, dict[str, bytes]] = {directory: {} for directory in directories}
    for path, content in files.items():
        directory, _, name = path.rpartition("/")
        if directory in common:
            common[directory][name] = content
        else:
            found.setdefault(directory, []).append((name, content))
    states = {}
    for directory, contents in found.items():
        above, _, log_name = directory.rpartition("/")
        topic, _, index = log_name.rpartition("-")
        prefix = f"{topic} {index} ".encode()
        top = common.get(above, {})
        lines = [
            (name, line)
            for name, content in top.items()
            if name.endswith("checkpoint")
            for line in content.splitlines()
            if line.startswith(prefix)
        ]
        states[directory] = hash((directory, CLEAN_SHUTDOWN_FILE in top, frozenset(contents), frozenset(lines)))
    return states


def _check_all(run: Run, expected: Expectation, found_states: Mapping[str, int]) -> None:
    """Check every partition that exists or should exist, separately."""
    promises = expected.promises
    found: dict[PartitionKey, Partition] = {}
    for partition in run.node.partitions():
        if partition.log is None:
            raise Violation(_SERVES, f"{partition.topic}-{partition.index} is offline: {partition.offline_reason}")
        key = partition.topic_id, partition.index
        if key[0] in promises.deleted:
            raise Violation(_KEPT, f"{partition.topic} was deleted, and is back")
        found[key] = partition
        state = found_states.get(partition.log.directory)
        if state is None or state not in expected.checked:
            check_log(partition.log, expected.written.batches.get(key, {}))
            if state is not None:
                expected.checked.add(state)
        ends = promises.ends.get(key, Ends(0, 0))
        kept = ends.synced if expected.after_power_loss else ends.acknowledged
        if partition.log.log_end_offset < kept:
            raise Violation(
                _KEPT, f"{partition.topic}-{partition.index} ends at {partition.log.log_end_offset}, and {kept} was promised"
            )
        check_keys(partition.log, promises.keyed.get(key, {}), kept, expected.written.batches.get(key, {}))
        _check_start(partition, promises.deleted_below.get(key, 0), promises.starts_asked.get(key, 0))
        if partition.high_watermark != partition.log.log_end_offset:
            raise Violation(_SERVES, f"{partition.topic}-{partition.index}: high watermark {partition.high_watermark}")
    for topic_id, (topic, count) in promises.topics.items():
        if topic_id not in promises.ending:
            missing = [index for index in range(count) if (topic_id, index) not in found]
            if missing:
                raise Violation(_KEPT, f"{topic} was created, and of its partitions {missing} are not there")
    for key, ends in promises.ends.items():
        if key not in found and key[0] not in promises.ending and ends.synced:
            raise Violation(_KEPT, f"a partition of {key} is not there, {ends} was promised")


def _check_start(partition: Partition, earliest: int, latest: int) -> None:
    start = partition.require_log().log_start_offset
    if start < earliest:
        raise Violation(_DELETED, f"{partition.topic}-{partition.index} starts at {start}, and was deleted up to {earliest}")
    if start > latest:
        raise Violation(_KEPT, f"{partition.topic}-{partition.index} starts at {start}, not {latest}")


def _check_told(run: Run, expected: Expectation, files: Mapping[str, bytes]) -> None:
    """If bytes of batches are cut off, a line of the log must report it."""
    texts = run.lines.texts()
    for partition in run.node.partitions():
        log = partition.log
        # The directory of a topic of the same name may be that of its deleted predecessor.
        if log is None or partition.topic in expected.promises.passing:
            continue
        prefix = log.directory + "/"
        # Segments before the log start offset were deleted, and may disappear without a line.
        first = segment_path(log.directory, log.segments.first_offset, ".log")
        found = sum(
            len(data) for path, data in files.items() if path.startswith(prefix) and path.endswith(".log") and path >= first
        )
        # The line names a file of the log, or, for a finished compaction, its directory.
        is_told = any(prefix in text or f"'{log.directory}'" in text for text in texts)
        if log.size_bytes < found and not is_told:
            raise Violation(_TOLD, f"{found - log.size_bytes} bytes of {log.directory} are gone, and nobody was told: {texts}")


def _check_indexes(run: Run) -> None:
    """A start would mend an index that was not synced below the recovery point, but none may need it."""
    for _, event, fields in run.lines.events:
        if event == _MENDED:
            raise Violation(_INDEXES, f"{fields}")


def _check_settled(run: Run, expected: Expectation) -> None:
    """Transactions and offsets, after the coordinators had time to finish the ones found in the log."""
    committed_by_partition: list[set[bytes]] = []
    everything: set[bytes] = set()
    for partition in run.node.partitions():
        log = partition.log
        if log is None or partition.topic in _INTERNAL:
            continue
        if expected.is_synced and partition.last_stable_offset != partition.high_watermark:
            raise Violation(_SETTLED, f"{partition.topic}-{partition.index} is stable up to {partition.last_stable_offset} only")
        values = set(committed_values(log))
        committed_by_partition.append(values)
        everything |= values
    _check_transactions(run, expected, everything)
    _check_commits(run, expected)


def _check_transactions(run: Run, expected: Expectation, committed: set[bytes]) -> None:
    # Records removed by DeleteRecords or by a topic's deletion no longer count.
    in_logs: set[bytes] = set()
    for partition in run.node.partitions():
        if partition.log is not None and partition.topic not in _INTERNAL:
            in_logs.update(_all_values(partition))
    for number, transaction in enumerate(expected.promises.transactions):
        values = transaction.values & in_logs
        there = values & committed
        if transaction.decision != "commit" and there:
            raise Violation(_ATOMIC, f"transaction {number} was not committed ({transaction.decision}), and {there} can be read")
        if not expected.is_synced:
            continue
        if transaction.is_told and transaction.decision == "commit" and there != values:
            raise Violation(_ATOMIC, f"transaction {number} was committed, and {values - there} cannot be read")
        if there and there != values:
            raise Violation(_ATOMIC, f"of transaction {number} {there} can be read, and {values - there} cannot")


def _all_values(partition: Partition) -> set[bytes]:
    from odradek.protocol.record_batch import iter_batches
    from odradek.protocol.records import read_records

    log = partition.require_log()
    values: set[bytes] = set()
    for segment in log.segments:
        data = segment.file.pread(segment.size, 0)
        for position, header in iter_batches(data) if data else ():
            if not header.is_control:
                values.update(
                    record.value or b"" for record in read_records(data, position) if record.offset >= log.log_start_offset
                )
    return values


def _check_commits(run: Run, expected: Expectation) -> None:
    """A group's offsets: the last acknowledged one, or one requested after it."""
    topics = run.node.broker.controller.image.topics
    for (group_id, topic, index), commits in expected.promises.commits.items():
        if topic not in topics or not run.node.broker.partitions.of_topic(_INTERNAL[0]):
            if commits.told and expected.is_synced:
                raise Violation(_KEPT, f"{topic} or the groups' offsets are not there")
            continue
        found = run.do(committed(run, group_id, [(topic, index)]))[topic, index]
        allowed = [-1, *commits.asked] if not expected.is_synced else [-1, *commits.asked][commits.told :]
        if found not in allowed:
            raise Violation(_KEPT, f"{group_id} has {found} of {topic}-{index}, and should have one of {allowed}")


def _go_on(run: Run, expected: Expectation) -> None:
    """Repeat every operation, stop, start, and check again."""
    names = [(partition.topic, partition.index) for partition in run.node.partitions() if partition.topic not in _INTERNAL]
    if not names:
        run.do(run.create_topic("new", 1))
        names = [("new", 0)]
    codes = run.do(produce(run, {name: plain(run, run.new_value(), key=b"k") for name in names}))
    if any(code != ErrorCode.NONE for code in codes.values()):
        raise Violation(_GOES_ON, f"records are refused: {codes}")
    for transactional_id in ("committing", "leaving"):
        # If its coordinator has lost an epoch that a partition has seen, a producer is fenced until its epoch is higher.
        attempts = 1 if expected.is_synced else _MOST_ATTEMPTS
        if not any(run.do(_has_transaction(run, transactional_id, names[:2])) for _ in range(attempts)):
            raise Violation(_GOES_ON, f"{transactional_id} cannot have a transaction")
    if not run.do(commit(run, "consumers", names[0], 4_711)):
        raise Violation(_GOES_ON, "offsets cannot be committed")
    run.node.wait(200)
    before = _ends(run)
    run.node.stop()
    run.node = run.new_node()
    _start(run.node)
    if not run.node.broker.log_manager.was_clean:
        raise Violation(_GOES_ON, f"the stop was not clean: {run.lines.texts()}")
    if _ends(run) != before:
        raise Violation(_GOES_ON, f"after a stop and a start {_ends(run)}, before it {before}")
    for partition in run.node.partitions():
        check_log(partition.require_log(), None)
    run.node.load_coordinators()
    found = run.do(committed(run, "consumers", [names[0]]))[names[0]]
    if found != 4_711:
        raise Violation(_GOES_ON, f"offset {found} after a stop and a start")


async def _has_transaction(run: Run, transactional_id: str, names: list[tuple[str, int]]) -> bool:
    producer = Producer(run, transactional_id)
    is_good = await producer.begin() and await producer.send({name: [run.new_value()] for name in names})
    return await producer.end(commit=is_good) and is_good


def _ends(run: Run) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (partition.topic, partition.index): (partition.require_log().log_start_offset, partition.require_log().log_end_offset)
        for partition in run.node.partitions()
    }
