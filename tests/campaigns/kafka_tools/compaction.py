"""The same logs through the cleaner of Apache Kafka and that of odradek.

    1  Kafka writes, with its cleaner off, and is stopped. Its data directory is copied twice.
    2  odradek's cleaner cleans one copy, Kafka's the other. The two are compared (``cleaned``), and so is the state that the
       coordinators' shards load, before and after (``shard_states``).
    3  Kafka starts on odradek's copy: a consumer reads the same records from it, and it knows the same committed offsets, as on
       its own copy. It writes another round there, on top of odradek's compacted logs; these are copied twice, and so on from 2.

Kafka's DumpLogSegments reads odradek's result, including its check of indexes.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import KafkaError as ClientError

from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.common.config.broker_config import load
from odradek.storage.directories import checkpoints
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.campaigns.kafka_tools import compaction_workload as workload
from tests.campaigns.kafka_tools.cleaned import CleanedComparison, Side, compare_cleaned
from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns, until
from tests.campaigns.kafka_tools.shard_states import compare_shards

_NO_CLEANER = {**workload.SETTINGS, "log.cleaner.enable": "false"}
_ROUNDS = (1, 2, 3)
_SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_INDEX_SUFFIXES = (".index", ".timeindex")
_SHOWN = 2_000
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Read:
    """A Kafka's data: the records by isolation level, topic and partition, and the offsets by group."""

    records: dict[tuple[str, str, int], list[tuple[Any, ...]]]
    offsets: dict[str, dict[int, int]]


def compare_compaction(scratch: Path) -> CleanedComparison:
    """Run all rounds; the caller removes the content of ``scratch``."""
    runs = KafkaRuns(scratch)
    comparison = CleanedComparison()
    read: Read | None = None
    data: Path | None = None
    for number in _ROUNDS:
        with runs.serving(f"written-{number}", _NO_CLEANER, data) as run:
            if read is None:
                workload.create_topics(run.address)
            else:
                _compare_read(comparison, _read(run.address), read)
            workload.write_round(run.address, number)
            data = run.data
        ours = scratch / f"odradek-{number}"
        shutil.copytree(data, ours)
        began_ms = _now_ms()
        cleaned_up_to = clean_by_odradek(ours, _log_config)
        ours_side = Side(ours, began_ms, _now_ms())
        began_ms = _now_ms()
        with runs.serving(f"cleaned-{number}", workload.SETTINGS, data) as run:
            wait_until_cleaned(comparison, run.data, cleaned_up_to)
            kafkas_side = Side(run.data, began_ms, _now_ms())
            read = _read(run.address)
        compare_cleaned(comparison, ours_side, kafkas_side, before=data)
        compare_shards(comparison, {"before": data, "odradek": ours, "Kafka": kafkas_side.data})
        _dump(comparison, ours)
        data = ours
    return comparison


def clean_by_odradek(data: Path, log_config: Callable[[str], LogConfig]) -> dict[Partition, int]:
    """Clean the due logs in a data directory of Kafka's, and leave it cleanly stopped; returns each log's cleaned offset."""
    clock = VirtualClock(_now_ms())
    warnings: list[str] = []
    manager = LogManager(
        RealFileSystem(), str(data), node_id=1, new_uuid=uuid4, warn=lambda event, **what: warnings.append(f"{event} {what}")
    )
    manager.start()
    manager.load_all(log_config, clock.now_ms())
    cleaner = LogCleaner(load(), manager, Timer(clock), InlineBackground())
    cleaner.clean_due()
    cleaned = {key: log.cleaned_offset for key, log in manager.logs.items() if log.cleaned_offset is not None}
    assert (warnings, cleaner.uncleanable, manager.offline) == ([], {}, {})
    manager.shutdown(clock.now_ms())
    return cleaned


def _log_config(topic: str) -> LogConfig:
    if topic not in workload.PARTITIONS:
        return LogConfig(cleanup_policy=("delete",), retention_ms=-1)
    return LogConfig(
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=workload.retention_ms(topic),
        segment_bytes=workload.segment_bytes(topic),
    )


def wait_until_cleaned(comparison: CleanedComparison, data: Path, cleaned: dict[Partition, int]) -> None:
    """Wait until Kafka's cleaner has reached the offsets of odradek's."""

    def theirs() -> dict[Partition, int]:
        try:
            return checkpoints.read_offsets(RealFileSystem(), str(data / checkpoints.CLEANER_OFFSET_FILE))
        except ValueError:
            # Kafka begins with an empty checkpoint.
            return {}

    try:
        until(lambda: theirs() == cleaned)
    except TimeoutError:
        comparison.expect(data / checkpoints.CLEANER_OFFSET_FILE, "cleaned up to", cleaned, theirs())


def _read(address: str) -> Read:
    records = {
        (isolation, *partition): found
        for isolation in ("read_uncommitted", "read_committed")
        for partition, found in _consume(address, isolation).items()
    }
    return Read(records, workload.committed_offsets(address))


def _consume(address: str, isolation: str) -> dict[Partition, list[tuple[Any, ...]]]:
    """(offset, key, value, timestamp with its type, headers) of every record, up to the end that a consumer sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reading",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found: dict[Partition, list[tuple[Any, ...]]] = {
        (topic, number): []
        for topic, count in workload.PARTITIONS.items()
        if not topic.startswith("__")
        for number in range(count)
    }
    consumer.assign([TopicPartition(topic, number, 0) for topic, number in found])
    unread = set(found)
    while unread:
        for message in consumer.consume(1_000, 0.2):
            partition = message.topic(), message.partition()
            error = message.error()
            if error is None:
                found[partition].append(
                    (message.offset(), message.key(), message.value(), message.timestamp(), message.headers())
                )
            elif error.code() == ClientError._PARTITION_EOF:
                unread.discard(partition)
            else:
                raise AssertionError(error)
    consumer.close()
    return found


def _compare_read(comparison: CleanedComparison, on_odradeks: Read, on_kafkas: Read) -> None:
    for key, records in on_kafkas.records.items():
        comparison.consumed_records += len(records)
        comparison.expect_same(" ".join(map(str, key)) + " by a consumer", on_odradeks.records[key], records)
    for group, offsets in on_kafkas.offsets.items():
        comparison.consumed_offsets += len(offsets)
        comparison.expect_same(f"offsets of {group}, told by Kafka", on_odradeks.offsets.get(group), offsets)
    comparison.expect_same("groups told by Kafka", sorted(on_odradeks.offsets), sorted(on_kafkas.offsets))


def _dump(comparison: CleanedComparison, data: Path) -> None:
    """Read all of odradek's compacted logs with Kafka's tool."""
    partitions = [data / f"{topic}-{number}" for topic, count in workload.PARTITIONS.items() for number in range(count)]
    there = [file for partition in partitions for file in sorted(partition.iterdir())]
    for suffixes, options in ((_SEGMENT_SUFFIXES, ()), (_INDEX_SUFFIXES, ("--index-sanity-check",))):
        files = [file for file in there if file.suffix in suffixes]
        try:
            dump(files, *options)
        except AssertionError as complaint:
            comparison.differences.append(f"DumpLogSegments {options}: {str(complaint)[-_SHOWN:]}")
        if not options:
            comparison.dumped_files += len(files)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
