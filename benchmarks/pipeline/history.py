"""A synthetic history: the records that a cluster's coordinators would have written in two days, from a seed.

    88 %  offset commits: offsets advance, sometimes one is repeated or goes back
    10 %  transactions: Ongoing, PrepareCommit, CompleteCommit; one in twenty aborts, and the last ones of some ids hang
     2 %  generations of groups, whose members join and leave

Groups are skewed: one has a quarter of all commits, the others are Zipf-distributed. As in a real cluster, all records of a
group or a transactional id are in one partition, in the order of their times, and a batch has one timestamp. Commits, the
majority, are built by numpy. Their names have equal lengths, so that a batch of them is an array of records of one size.

Left out: tombstones, and groups that are not consumers'.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from benchmarks.pipeline.lives import Generations, Shape, Transactions
from benchmarks.pipeline.wire import Batches
from odradek.protocol.hashing import partition_for
from odradek.protocol.plain_batches import build_batch
from odradek.protocol.record_batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, NO_PRODUCER_ID, NO_SEQUENCE, sealed

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
BEGINS_MS = 1_760_000_000_000
_SPAN_MS = 2 * 24 * 3600 * 1000
_SLICE_RECORDS = 250_000
_COMMITS_A_BATCH = 256
_OTHERS_A_BATCH = 32
TRANSACTIONS_SHARE, GENERATIONS_SHARE = 0.10, 0.02
_PARTITIONS_A_GROUP = 24
# Topics that groups commit to: as many as there are services, and few enough to create them all.
TOPICS = 40

_GROUP_BYTES, _TOPIC_BYTES, _TOPIC_ID_BYTES = 13, 11, 16
# A record with an offset delta of one byte, and one with two. Layout: 2 bytes length (varint), 1 attributes, 1 timestamp delta,
# the offset delta, 1 length of the key, key, 1 length of the value, value, 1 headers.
_ONE_BYTE_DELTAS = 64


def _layout(delta_bytes: int) -> np.dtype:
    return np.dtype(
        [
            ("size", "u1", 2),
            ("attributes", "u1"),
            ("timestamp_delta", "u1"),
            ("offset_delta", "u1", delta_bytes),
            ("key_size", "u1"),
            ("key_version", ">i2"),
            ("group_size", ">i2"),
            ("group", f"S{_GROUP_BYTES}"),
            ("topic_size", ">i2"),
            ("topic", f"S{_TOPIC_BYTES}"),
            ("partition", ">i4"),
            ("value_size", "u1"),
            ("value_version", ">i2"),
            ("committed_offset", ">i8"),
            ("leader_epoch", ">i4"),
            ("metadata_size", "u1"),
            ("commit_timestamp", ">i8"),
            ("tags", "u1", 3),
            ("topic_id", f"V{_TOPIC_ID_BYTES}"),
            ("headers", "u1"),
        ]
    )


_LAYOUTS = (_layout(1), _layout(2))
_KEY_BYTES = 2 + 2 + _GROUP_BYTES + 2 + _TOPIC_BYTES + 4
_VALUE_BYTES = 2 + 8 + 4 + 1 + 8 + 3 + _TOPIC_ID_BYTES
_SIZE = Struct("<BB")


class History:
    """The batches of a history, in slices of time."""

    def __init__(self, shape: Shape, offsets_partitions: int, transactions_partitions: int) -> None:
        self._shape = shape
        self._random = np.random.default_rng(shape.seed)
        groups = [f"service-{index:05}" for index in range(shape.groups)]
        self._group_names = np.array([name.encode() for name in groups])
        self._topic_names = np.array([f"orders-{index:04}".encode() for index in range(TOPICS)])
        self._topic_ids = np.array(
            [(index + 1).to_bytes(_TOPIC_ID_BYTES, "big") for index in range(TOPICS)], dtype=f"V{_TOPIC_ID_BYTES}"
        )
        self._log_of_group = np.array([partition_for(name, offsets_partitions) for name in groups])
        # Zipf's distribution, except for the hot group.
        weights = 1.0 / (np.arange(shape.groups) + 10.0)
        weights[0] = 0.0
        weights *= (1.0 - shape.hot_share) / weights.sum()
        weights[0] = shape.hot_share
        self._weights = np.cumsum(weights)
        self._committed = np.zeros(shape.groups * _PARTITIONS_A_GROUP, np.int64)
        self._generations = Generations(groups, self._topic_names, _PARTITIONS_A_GROUP, offsets_partitions, shape)
        self._transactions = Transactions(transactions_partitions, shape)

    def slices(self) -> Iterator[Batches]:
        """The batches to produce, in order, one slice of time after the other."""
        left = self._shape.records
        count = -(-left // _SLICE_RECORDS)
        span_ms = _SPAN_MS // count
        for index in range(count):
            size = min(_SLICE_RECORDS, left)
            left -= size
            yield self._slice(size, BEGINS_MS + index * span_ms, span_ms, is_last=index == count - 1)

    def _slice(self, size: int, from_ms: int, span_ms: int, *, is_last: bool) -> Batches:
        transactions = self._transactions.records(round(size * TRANSACTIONS_SHARE), from_ms, span_ms, is_last=is_last)
        generations = self._generations.records(round(size * GENERATIONS_SHARE), from_ms, span_ms)
        commits = size - sum(map(len, transactions.values())) - sum(map(len, generations.values()))
        timed: dict[tuple[str, int], list[tuple[int, bytes]]] = defaultdict(list)
        for log, batch in self._commits(max(commits, 0), from_ms, span_ms):
            timed[OFFSETS_TOPIC, log].append(batch)
        for topic, of_topic in ((OFFSETS_TOPIC, generations), (TRANSACTIONS_TOPIC, transactions)):
            for log, records in of_topic.items():
                for begin in range(0, len(records), _OTHERS_A_BATCH):
                    together = records[begin : begin + _OTHERS_A_BATCH]
                    at_ms = together[-1][0]
                    timed[topic, log].append((at_ms, build_batch([(key, value) for _, key, value in together], at_ms)))
        return {place: [batch for _, batch in sorted(batches, key=lambda each: each[0])] for place, batches in timed.items()}

    def _commits(self, size: int, from_ms: int, span_ms: int) -> Iterator[tuple[int, tuple[int, bytes]]]:
        """(partition of the offsets topic, (timestamp, batch)) for each batch of commits."""
        random = self._random
        at_ms = from_ms + np.sort(random.integers(0, span_ms, size))
        groups = np.minimum(np.searchsorted(self._weights, random.random(size)), self._shape.groups - 1)
        partitions = random.integers(0, _PARTITIONS_A_GROUP, size)
        offsets = self._offsets(groups * _PARTITIONS_A_GROUP + partitions)
        logs = self._log_of_group[groups]
        order = np.argsort(logs, kind="stable")
        bounds = np.flatnonzero(np.diff(logs[order], prepend=-1, append=-1))
        for begin, end in pairwise(bounds):
            for first in range(begin, end, _COMMITS_A_BATCH):
                rows = order[first : min(first + _COMMITS_A_BATCH, end)]
                last_ms = int(at_ms[rows[-1]])
                batch = self._batch(groups[rows], partitions[rows], offsets[rows], at_ms[rows], last_ms)
                yield int(logs[rows[0]]), (last_ms, batch)

    def _offsets(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The offset of each commit: up to ten past the last one of its place; one in a hundred repeats it, few go back."""
        random = self._random
        steps = random.integers(1, 11, len(places))
        chance = random.random(len(places))
        steps[chance < 0.01] = 0
        steps[chance < 0.001] = -5
        order = np.argsort(places, kind="stable")
        ordered = places[order]
        total = np.cumsum(steps[order])
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        before = np.repeat(total[starts] - steps[order][starts], np.diff(starts, append=len(places)))
        offsets = np.empty(len(places), np.int64)
        offsets[order] = np.maximum(self._committed[ordered] + total - before, 0)
        # Of several commits at one place the last one stays.
        self._committed[ordered] = offsets[order]
        return offsets

    def _batch(
        self,
        groups: NDArray[np.int64],
        partitions: NDArray[np.int64],
        offsets: NDArray[np.int64],
        at_ms: NDArray[np.int64],
        last_ms: int,
    ) -> bytes:
        count = len(groups)
        chunks = []
        for begin, end, layout in ((0, _ONE_BYTE_DELTAS, _LAYOUTS[0]), (_ONE_BYTE_DELTAS, count, _LAYOUTS[1])):
            rows = slice(begin, min(end, count))
            if rows.stop <= rows.start:
                continue
            records = np.zeros(rows.stop - rows.start, layout)
            _fill(records, np.arange(rows.start, rows.stop))
            topics = groups[rows] % TOPICS
            records["group"] = self._group_names[groups[rows]]
            records["topic"] = self._topic_names[topics]
            records["topic_id"] = self._topic_ids[topics]
            records["partition"] = partitions[rows]
            records["committed_offset"] = offsets[rows]
            records["commit_timestamp"] = at_ms[rows]
            chunks.append(records.tobytes())
        payload = b"".join(chunks)
        head = HEADER.pack(
            *(0, HEADER_SIZE - LOG_OVERHEAD + len(payload), -1, MAGIC, 0, 0, count - 1, last_ms, last_ms),
            *(NO_PRODUCER_ID, -1, NO_SEQUENCE, count),
        )
        return sealed(head, payload)


def _fill(records: NDArray[np.void], deltas: NDArray[np.int64]) -> None:
    """Fill in the constant fields of all records, and the offset deltas."""
    size = (records.dtype.itemsize - 2) * 2
    records["size"] = (size & 0x7F | 0x80, size >> 7)
    zigzag = deltas * 2
    if records["offset_delta"].shape[1] == 1:
        records["offset_delta"][:, 0] = zigzag
    else:
        records["offset_delta"][:, 0] = zigzag & 0x7F | 0x80
        records["offset_delta"][:, 1] = zigzag >> 7
    records["key_size"], records["value_size"] = _KEY_BYTES * 2, _VALUE_BYTES * 2
    records["key_version"], records["group_size"], records["topic_size"] = 1, _GROUP_BYTES, _TOPIC_BYTES
    records["value_version"], records["leader_epoch"], records["metadata_size"] = 4, 0, 1
    records["tags"] = (1, 0, 16)
