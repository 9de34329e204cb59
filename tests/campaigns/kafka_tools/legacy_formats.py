"""Logs of message formats v0 and v1 (``legacy_logs``), served by odradek and by Apache Kafka, each from a copy of one directory.

    after a kill      the directory has no marker of a clean stop, and no indexes: both recover the logs
    after a stop      both are stopped, and started again on what they have made of it
    moved             every log is moved to a second data directory
    cleaned           the compacted topics, twice: tombstones go by the time of their segment's file

Each time both are asked the same: the first offset, the end, the latest timestamp and the offset of many others, the bytes that a
Fetch gets from many offsets, the records that a consumer reads. After the first stop the .log, .index and .timeindex files are
compared byte by byte, but for an entry of the first batch, with which odradek begins a time index. DumpLogSegments reads what
odradek has moved or cleaned.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.peers import server_properties
from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import read_records
from odradek.protocol.texts import new_uuid_text
from odradek.storage.directories import checkpoints
from odradek.storage.directories.log_manager import LogManager
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log_config import LogConfig
from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools import legacy_logs as logs
from tests.campaigns.kafka_tools.cleaned import CleanedComparison
from tests.campaigns.kafka_tools.compaction import clean_by_odradek, wait_until_cleaned
from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.kafka_tools.kafka_broker import TIMEOUT_S, KafkaRun, KafkaRuns, until
from tests.campaigns.kafka_tools.opened import open_log, without_the_first_batch
from tests.raw_client import RawClient, fetch_fields
from tests.storage.cleaner.support import batches_of

_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
}
_NO_CLEANER = {"log.cleaner.enable": "false"}
_CLEANER = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "600000",
    "log.initial.task.delay.ms": "600000",
}
_SEGMENT_BYTES = 12_000
_DELETE_RETENTION_MS = logs.DAY_MS
_EARLIEST, _LATEST, _MAX_TIMESTAMP = -2, -1, -3
_SUFFIXES = (".log", ".index", ".timeindex")
Answers = dict[str, Any]
Serving = Callable[[str, Path], Any]


@dataclass(slots=True)
class LegacyComparison:
    """The number of comparisons by kind, and the differences."""

    counts: Counter[str] = field(default_factory=Counter)
    found: CleanedComparison = field(default_factory=CleanedComparison)

    @property
    def differences(self) -> list[str]:
        """Of all kinds."""
        return self.found.differences

    def expect_same(self, kind: str, what: str, ours: Any, theirs: Any) -> None:
        """Count a comparison, and note a difference."""
        self.counts[kind] += 1
        self.found.expect_same(what, ours, theirs)


def compare_legacy_formats(scratch: Path) -> LegacyComparison:
    """Run all; the caller removes the content of ``scratch``."""
    comparison = LegacyComparison()
    runs = KafkaRuns(scratch)
    with runs.serving("made", {**_SETTINGS, **_NO_CLEANER}) as run:
        _create_topics(run.address)
    now_ms = time.time_ns() // 1_000_000
    logs.write_logs(run.data, now_ms)
    _compare_served(comparison, runs, scratch, run.data)
    _compare_cleaned(comparison, runs, scratch, run.data)
    return comparison


def _create_topics(address: str) -> None:
    kept = {"retention.ms": "-1"}
    retained = {"retention.ms": str(7 * logs.DAY_MS)}
    compacted = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": str(_DELETE_RETENTION_MS),
        "internal.segment.bytes": str(_SEGMENT_BYTES),
    }
    topics = [
        NewTopic(name, 1, 1, config=retained if name in logs.RETAINED else compacted if name in logs.COMPACTED else kept)
        for name in logs.TOPICS
    ]
    admin = AdminClient({"bootstrap.servers": address})
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)


# ------------------------------------------------------------------------------------------------------------------- served


def _compare_served(comparison: LegacyComparison, runs: KafkaRuns, scratch: Path, data: Path) -> None:
    @contextmanager
    def kafka(name: str, data: Path) -> Iterator[KafkaRun]:
        log_dirs = _log_dirs(scratch / name, data)
        with runs.serving(name, {**_SETTINGS, **_NO_CLEANER, "log.dirs": ",".join(map(str, log_dirs))}, data) as run:
            yield run

    @contextmanager
    def odradek(name: str, data: Path) -> Iterator[KafkaRun]:
        with _odradek(scratch, name, data) as run:
            yield run

    engines: dict[str, Serving] = {"odradek": odradek, "kafka": kafka}
    left = dict.fromkeys(engines, data)
    for stage in ("killed", "stopped"):
        answers, moved = {}, {}
        for engine, serving in engines.items():
            with serving(f"{engine}-{stage}", left[engine]) as run:
                answers[engine] = _asked(run.address)
                if stage == "stopped":
                    _move_all(run.address, _other(run.data))
                    moved[engine] = _asked(run.address)
            left[engine] = run.data
        for what, answer in answers["kafka"].items():
            comparison.expect_same("answers", f"{stage}: {what}", answers["odradek"].get(what), answer)
        if stage == "killed":
            _compare_files(comparison, left["odradek"], left["kafka"])
    # Kafka writes a moved log anew, in one segment: by time, and at the segments' ends, it finds other things there than before.
    for what, answer in answers["odradek"].items():
        comparison.expect_same("answers", f"moved, and before: {what}", moved["odradek"].get(what), answer)
    for what, answer in moved["kafka"].items():
        if what.endswith((" consumed", f" at {_LATEST}", f" at {_MAX_TIMESTAMP}")):
            comparison.expect_same("answers", f"moved: {what}", moved["odradek"].get(what), answer)
    _compare_moved(comparison, *map(_other, left.values()))
    _dump(comparison, _other(left["odradek"]), logs.SERVED)


def _other(data: Path) -> Path:
    """The second data directory beside ``data``."""
    return data.parent.with_name(f"{data.parent.name}-other")


def _log_dirs(directory: Path, data: Path) -> tuple[Path, Path]:
    """The data directories of a broker that is to have a copy of ``data``; the second one is made, and empty."""
    ours = directory / "data"
    other = _other(ours)
    other.mkdir()
    lines = (data / "meta.properties").read_text(encoding="ascii").splitlines()
    kept = [line for line in lines if not line.startswith("directory.id")]
    (other / "meta.properties").write_text("\n".join([*kept, f"directory.id={new_uuid_text(uuid4)}", ""]), encoding="ascii")
    return ours, other


@contextmanager
def _odradek(scratch: Path, name: str, data: Path) -> Iterator[KafkaRun]:
    """odradek on a copy of ``data``, with the file that Kafka has."""
    directory = scratch / name
    directory.mkdir()
    shutil.copytree(data, directory / "data")
    port, controller_port = free_ports(2)
    properties = directory / "server.properties"
    log_dirs = _log_dirs(directory, data)
    settings = {**_SETTINGS, "log.dirs": ",".join(map(str, log_dirs))}
    properties.write_text(server_properties(directory / "data", port, controller_port, settings), encoding="utf-8")
    process = BrokerProcess(directory / "odradek", log_dirs=log_dirs, arguments=("--config", str(properties)))
    process.settings = {}
    process.port = port
    with process:
        yield KafkaRun(process.address, directory / "data")
    lines = [line for line in process.stderr.splitlines() if "torn" not in line]
    assert not [line for line in lines if "error" in line.lower() or "Traceback" in line], process.stderr[-3000:]


def _asked(address: str) -> Answers:
    """What a broker says of all topics."""
    host, port = address.split(":")
    answers: Answers = {}
    with RawClient(host, int(port)) as client:
        # Retention has come by.
        until(
            lambda: all(
                _offsets(client, _EARLIEST, [topic])[topic][2] > 0 for topic, (_, is_old) in logs.RETAINED.items() if is_old
            )
        )
        for timestamp in (_EARLIEST, _LATEST, _MAX_TIMESTAMP, *_timestamps()):
            answers |= {f"{topic} at {timestamp}": found for topic, found in _offsets(client, timestamp, logs.SERVED).items()}
        for topic in logs.SERVED:
            end = answers[f"{topic} at {_LATEST}"][2]
            for offset in range(answers[f"{topic} at {_EARLIEST}"][2], end + 1, 7):
                for size in (1, 700, 1 << 20):
                    answers[f"{topic} from {offset}, {size} bytes"] = _fetched(client, topic, offset, size)
    answers |= {f"{topic} consumed": found for topic, found in _consumed(address).items()}
    return answers


def _timestamps() -> Iterator[int]:
    for number in range(0, 400, 9):
        at = logs.BEGIN_MS + number * 60_000
        yield from (at - 1, at, at + 30_000)
    yield from (0, logs.BEGIN_MS + 100 * logs.DAY_MS, 2**40 * 4)


def _offsets(client: RawClient, timestamp: int, topics: Any) -> dict[str, tuple[int, int, int, int]]:
    asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]} for topic in topics]
    response = client.call(ApiKey.LIST_OFFSETS, 7, topics=asked)
    return {
        topic.name: (int(each.error_code), _ms(each.timestamp), each.offset, each.leader_epoch)
        for topic in response.topics
        for each in topic.partitions
    }


def _ms(timestamp: Any) -> int:
    return timestamp if isinstance(timestamp, int) else round(timestamp.timestamp() * 1000)


def _fetched(client: RawClient, topic: str, offset: int, size: int) -> tuple[int, int, bytes]:
    response = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, offset, partition_max_bytes=size))
    (partition,) = response.responses[0].partitions
    return int(partition.error_code), partition.high_watermark, bytes(partition.records or b"")


def _consumed(address: str) -> dict[str, list[tuple[Any, ...]]]:
    """(offset, key, value, timestamp with its type) of every record, as librdkafka reads them."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reading",
            "enable.partition.eof": True,
            "check.crcs": True,
            "auto.offset.reset": "earliest",
        }
    )
    # librdkafka does not read wrappers of the other format, whoever serves them.
    found: dict[str, list[tuple[Any, ...]]] = {topic: [] for topic in logs.SERVED if topic != "mismatched"}
    consumer.assign([TopicPartition(topic, 0, 0) for topic in found])
    unread = set(found)
    deadline_s = time.monotonic() + TIMEOUT_S
    while unread and time.monotonic() < deadline_s:
        for read in consumer.consume(1_000, 0.2):
            error = read.error()
            if error is None:
                found[str(read.topic())].append((read.offset(), read.key(), read.value(), read.timestamp()))
            elif error.code() == ClientError._PARTITION_EOF:
                unread.discard(str(read.topic()))
            else:
                raise AssertionError(read.topic(), error)
    consumer.close()
    assert not unread, unread
    return found


def _move_all(address: str, target: Path) -> None:
    """Have all topics moved to a second data directory, and wait until they are there."""
    host, port = address.split(":")
    # One after the other: of many at once some are never finished by Kafka 4.4, whose thread meets a NullPointerException.
    with RawClient(host, int(port)) as client:
        for topic in logs.SERVED:
            moved = [{"path": str(target), "topics": [{"name": topic, "partitions": [0]}]}]
            (result,) = client.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, dirs=moved).results
            assert [int(each.error_code) for each in result.partitions] == [0], (topic, result)
            until(lambda topic=topic: (target / f"{topic}-0").is_dir())


def _compare_files(comparison: LegacyComparison, ours: Path, theirs: Path) -> None:
    for topic in logs.SERVED:
        for file in sorted((theirs / f"{topic}-0").iterdir()):
            if file.suffix not in _SUFFIXES:
                continue
            same = ours / f"{topic}-0" / file.name
            data = same.read_bytes() if same.exists() else b""
            if file.suffix == ".timeindex" and data and data != file.read_bytes():
                data = without_the_first_batch(same, data)
            comparison.expect_same("files", f"{topic} {file.name}", data.hex(), file.read_bytes().hex())


def _compare_moved(comparison: LegacyComparison, ours: Path, theirs: Path) -> None:
    for topic in logs.SERVED:
        content = [b"".join(file.read_bytes() for file in sorted((side / f"{topic}-0").glob("*.log"))) for side in (ours, theirs)]
        comparison.expect_same("moved logs", f"moved {topic}", *content)


def _dump(comparison: LegacyComparison, data: Path, topics: Iterable[str]) -> None:
    """Read odradek's files with Kafka's tool."""
    files = [file for topic in topics for file in files_to_dump(data / f"{topic}-0")]
    for options in ((), ("--index-sanity-check",)):
        try:
            dump([file for file in files if file.suffix != ".log" or not options], *options)
        except AssertionError as complaint:
            comparison.differences.append(f"DumpLogSegments {options}: {str(complaint)[-2000:]}")
    comparison.counts["dumped files"] += len(files)


def files_to_dump(partition: Path) -> list[Path]:
    """The files of a partition that Kafka's tool is to read."""
    return [file for file in sorted(partition.iterdir()) if file.suffix in _SUFFIXES]


# ------------------------------------------------------------------------------------------------------------------ cleaned


def log_config(topic: str) -> LogConfig:
    if topic not in logs.COMPACTED:
        return LogConfig(cleanup_policy=("delete",), retention_ms=-1)
    return LogConfig(
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=_DELETE_RETENTION_MS,
        segment_bytes=_SEGMENT_BYTES,
    )


def _compare_cleaned(comparison: LegacyComparison, runs: KafkaRuns, scratch: Path, data: Path) -> None:
    # An older broker has cleaned the first two segments of some.
    cleaned = {(topic, 0): 2 * logs.RECORDS for topic, (magic, _) in logs.COMPACTED.items() if magic == 1}
    checkpoints.write_offsets(RealFileSystem(), str(data / checkpoints.CLEANER_OFFSET_FILE), cleaned)
    theirs = data
    ours = scratch / "odradek-cleaned"
    shutil.copytree(data, ours)
    for number in (1, 2):
        if number == 2:
            for side in (ours, theirs):
                _add_segments(side)
        recover(ours)
        cleaned_up_to = clean_by_odradek(ours, log_config)
        with runs.serving(f"kafka-cleaned-{number}", {**_SETTINGS, **_CLEANER}, theirs) as run:
            wait_until_cleaned(comparison.found, run.data, cleaned_up_to)
        theirs = run.data
        for topic in logs.COMPACTED:
            told = [_batches(side / f"{topic}-0") for side in (ours, theirs)]
            comparison.counts["cleaned batches"] += len(told[1])
            comparison.expect_same("cleaned logs", f"clean {number}: {topic}", *told)
        _dump(comparison, ours, logs.COMPACTED)


def recover(data: Path) -> None:
    """Leave a directory cleanly stopped by odradek: what it has to say of a kill is said."""
    manager = LogManager(RealFileSystem(), str(data), node_id=1, new_uuid=uuid4, warn=lambda event, **what: None)
    manager.start()
    manager.load_all(log_config, time.time_ns() // 1_000_000)
    assert manager.offline == {}
    manager.shutdown(time.time_ns() // 1_000_000)


def _add_segments(data: Path) -> None:
    for topic in logs.COMPACTED:
        base_offset, content, _ = logs.more_of(3 * logs.RECORDS + 10, 0)
        (data / f"{topic}-0" / f"{base_offset:020d}.log").write_bytes(content)
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)


def _batches(directory: Path) -> list[tuple[Any, ...]]:
    """The header of each batch that is not empty, and its records.

    Left out of the header: the compressed size, how far the batch reaches behind its last record, the timestamp that the records'
    are told from.
    """
    log = open_log(directory, clean=True, warnings=[])
    found = []
    for header, batch in batches_of(log):
        records = list(read_records(batch))
        if records:
            reach = records[-1].offset - header.base_offset
            found.append((header._replace(batch_length=0, crc=0, last_offset_delta=reach, base_timestamp=0), records))
    log.close(clean=False, now_ms=0)
    return found
