"""Logs with messages of formats v0 and v1, put as segments into a data directory that was stopped, without any index.

    legacy                    five messages in format v1
    v0-CODEC, v1-CODEC        three segments of messages, or of wrappers of one to nine, and one of today's batches behind them
    stamped-CODEC             the same in v1, with LogAppendTime
    mixed                     v0, v1 and v2 by turns in one segment; and a segment of each
    mismatched                wrappers that hold messages of the other format, as brokers of 0.10 wrote (KAFKA-4298)
    torn-v0, torn-v1          the last message is cut
    old-v0, young-v0, old-v1  for retention: by the file's time, or by the timestamps
    compact-...               as v0-... and v1-..., with keys that come again

A seventh of the records has no key, an eleventh no value. Segments have the file times that they would have had.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

from odradek.protocol.records import Record, build_batch
from odradek.storage.directories.checkpoints import PARTITION_METADATA_FILE
from tests.legacy_messages import CODECS, Legacy, message, wrapper

PLAIN = "none"
DAY_MS = 86_400_000
BEGIN_MS = 1_480_000_000_000
_STEP_MS = 60_000
RECORDS = 120
_KEYS = 150
FORMATS = {f"v{magic}-{codec}": (magic, codec) for magic in (0, 1) for codec in (PLAIN, *CODECS)}
COMPACTED = {f"compact-{name}": chosen for name, chosen in FORMATS.items()}
RETAINED = {"old-v0": (0, True), "young-v0": (0, False), "old-v1": (1, True)}
TORN = {"torn-v0": 0, "torn-v1": 1}
STAMPED = {f"stamped-{codec}": codec for codec in (PLAIN, *CODECS)}
SERVED = ("legacy", *FORMATS, *STAMPED, "mixed", "mismatched", *TORN, *RETAINED)
TOPICS = (*SERVED, *COMPACTED)
Segment = tuple[int, bytes, int]


def put_segments(partition: Path, segments: list[Segment]) -> None:
    """Let ``segments`` be all that there is in a partition's directory: (base offset, content, time of the last write in ms)."""
    for file in partition.iterdir():
        if file.name != PARTITION_METADATA_FILE:
            file.unlink()
    for base_offset, data, modified_ms in segments:
        file = partition / f"{base_offset:020d}.log"
        file.write_bytes(data)
        os.utime(file, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def write_logs(data: Path, now_ms: int) -> None:
    """All topics, which are there, with a partition each. The directory looks as after a kill."""
    for topic in TOPICS:
        put_segments(data / f"{topic}-0", segments_of(topic, now_ms))
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)


def segments_of(topic: str, now_ms: int) -> list[Segment]:
    """The segments of one topic."""
    rng = Random(topic)
    if topic == "legacy":
        values = (b"one", b"two", b"three", b"four", b"five")
        found = [message(1, Legacy(n, BEGIN_MS + n, b"k%d" % n, value)) for n, value in enumerate(values)]
        return [(0, b"".join(found), BEGIN_MS + 4)]
    if topic in FORMATS:
        return _old_and_new(rng, *FORMATS[topic])
    if topic in COMPACTED:
        return _old_and_new(rng, *COMPACTED[topic], keys=_KEYS)
    if topic in STAMPED:
        return _old_and_new(rng, 1, STAMPED[topic], is_stamped=True)
    if topic in TORN:
        data = b"".join(_messages(rng, TORN[topic], PLAIN, range(RECORDS)))
        return [(0, data[: rng.randint(len(data) - 20, len(data) - 1)], BEGIN_MS)]
    if topic in RETAINED:
        magic, is_old = RETAINED[topic]
        data = b"".join(_messages(rng, magic, PLAIN, range(RECORDS)))
        # By timestamps, where there are any, a young file is an old segment, too.
        modified_ms = now_ms - 30 * DAY_MS if is_old and not magic else now_ms
        return [(0, data, modified_ms), (RECORDS, b"", now_ms)]
    if topic == "mismatched":
        offsets = range(0, RECORDS, 6)
        data = [
            wrapper(n % 2, "gzip", [_record(rng, 1, o) for o in range(offset, offset + 6)], inner=1 - n % 2)
            for n, offset in enumerate(offsets)
        ]
        return [(0, b"".join(data), BEGIN_MS), (RECORDS, _batch(rng, RECORDS, 5), now_ms)]
    return _mixed(rng, now_ms)


def _mixed(rng: Random, now_ms: int) -> list[Segment]:
    chosen = [(magic, codec) for codec in (PLAIN, *CODECS) for magic in (0, 1, 2)]
    rng.shuffle(chosen)
    segments = []
    by_turns = b""
    offset = 0
    for magic, codec in chosen:
        count = rng.randint(1, 5)
        offsets = range(offset, offset + count)
        by_turns += _batch(rng, offset, count) if magic == 2 else b"".join(_messages(rng, magic, codec, offsets))
        offset += count
    segments.append((0, by_turns, _time(offset)))
    for magic in (0, 1, 2):
        offsets = range(offset, offset + 30)
        data = _batch(rng, offset, 30) if magic == 2 else b"".join(_messages(rng, magic, "snappy", offsets))
        segments.append((offset, data, _time(offset + 30)))
        offset += 30
    return [*segments, (offset, b"".join(_messages(rng, 1, PLAIN, range(offset, offset + 20))), now_ms)]


def _old_and_new(rng: Random, magic: int, codec: str, *, is_stamped: bool = False, keys: int = 0) -> list[Segment]:
    """Three segments, a month between them, and one in format v2."""
    segments: list[Segment] = []
    for number in range(3):
        offsets = range(number * RECORDS, (number + 1) * RECORDS)
        data = b"".join(_messages(rng, magic, codec, offsets, is_stamped=is_stamped, keys=keys))
        segments.append((offsets.start, data, _time(offsets.stop) + number * 30 * DAY_MS))
    last = 3 * RECORDS
    return [*segments, (last, _batch(rng, last, 10, keys=keys), _time(last) + 90 * DAY_MS)]


def more_of(offset: int, modified_ms: int) -> Segment:
    """A further segment for a compacted topic, in format v2."""
    return offset, _batch(Random(offset), offset, 3, keys=_KEYS), modified_ms


def _messages(rng: Random, magic: int, codec: str, offsets: range, *, is_stamped: bool = False, keys: int = 0) -> Iterator[bytes]:
    at = offsets.start
    while at < offsets.stop:
        stop = at + 1 if codec == PLAIN else min(at + rng.randint(1, 9), offsets.stop)
        records = [_record(rng, magic, offset, keys=keys) for offset in range(at, stop)]
        append_time_ms = _time(stop) if is_stamped else None
        if codec == PLAIN:
            (record,) = records
            stamped = record if append_time_ms is None else record._replace(timestamp=append_time_ms)
            yield message(magic, stamped, attributes=0 if append_time_ms is None else 0x08)
        else:
            yield wrapper(magic, codec, records, append_time_ms=append_time_ms)
        at = stop


def _record(rng: Random, magic: int, offset: int, *, keys: int = 0) -> Legacy:
    key: bytes | None = b"key-%d" % (rng.randrange(keys) if keys else offset)
    value: bytes | None = rng.randbytes(rng.randint(0, 60)) * 5
    # Kafka cannot clean a log if nothing of the last message in these formats is to stay.
    if offset % RECORDS != RECORDS - 1:
        key = None if rng.randrange(7) == 0 else key
        value = None if rng.randrange(11) == 0 else value
    return Legacy(offset, _time(offset) + rng.randint(-3, 3) * _STEP_MS if magic else -1, key, value)


def _batch(rng: Random, offset: int, count: int, *, keys: int = 0) -> bytes:
    records = [
        Record(timestamp=_time(each), key=b"key-%d" % (rng.randrange(keys) if keys else each), value=rng.randbytes(50))
        for each in range(offset, offset + count)
    ]
    return build_batch(records, base_offset=offset, leader_epoch=0)


def _time(offset: int) -> int:
    return BEGIN_MS + offset * _STEP_MS
