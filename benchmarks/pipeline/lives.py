"""The size of a synthetic history, and the records that are built one by one: generations of groups, and transactions."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    TransactionLogKey,
    TransactionLogValue,
    encode_key,
    encode_value,
)
from odradek.protocol.hashing import partition_for

Records = dict[int, list[tuple[int, bytes, bytes]]]
"""By partition of the topic: (timestamp in ms, key, value), in order."""

_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT = 1, 2, 3, 4, 5
_STATES = 3
_MOST_MEMBERS = 8
_HANGING = 50


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a history.

    Args:
        records: the approximate number of records of all kinds.
        groups: the number of groups that commit.
        transactional_ids: the number of transactional ids.
        seed: equal seeds give equal histories.
        hot_share: the share of all commits that one group has.
        session_timeout_ms: the members' session timeout; a broker that loads the history waits this long for them.
    """

    records: int
    groups: int = 2_000
    transactional_ids: int = 2_000
    seed: int = 1
    hot_share: float = 0.25
    session_timeout_ms: int = 45_000


class Generations:
    """Groups whose members join and leave."""

    def __init__(self, groups: Sequence[str], topics: Sequence[bytes], partitions: int, logs: int, shape: Shape) -> None:
        self._random = random.Random(shape.seed)
        self._session_timeout_ms = shape.session_timeout_ms
        self._groups = [(encode_key(GroupMetadataKey(name)), name, partition_for(name, logs)) for name in groups]
        self._topics = [bytes(topic) for topic in topics]
        self._partitions = partitions
        self._generation = [0] * len(groups)
        self._members: list[list[int]] = [[] for _ in groups]
        self._next_member = 0

    def records(self, size: int, from_ms: int, span_ms: int) -> Records:
        """``size`` generations, spread over the groups and the span."""
        found: Records = defaultdict(list)
        for at_ms in sorted(self._random.randrange(span_ms) for _ in range(size)):
            # Each group gets its first generation before any gets a second one.
            index = self._random.randrange(len(self._groups))
            key, name, log = self._groups[index]
            found[log].append((from_ms + at_ms, key, self._rebalance(index, name, from_ms + at_ms)))
        return found

    def _rebalance(self, index: int, name: str, at_ms: int) -> bytes:
        members = self._members[index]
        if members and (len(members) == _MOST_MEMBERS or self._random.random() < 0.5):
            members.pop(self._random.randrange(len(members)))
        else:
            members.append(self._next_member)
            self._next_member += 1
        self._generation[index] += 1
        if not members:
            return encode_value(GroupMetadataValue("consumer", self._generation[index], None, None, at_ms))
        topic = self._topics[index % len(self._topics)]
        subscription = pack(">hih", 1, 1, len(topic)) + topic + pack(">ii", -1, 0)
        described = tuple(
            MemberMetadata(
                f"{name}-{member:08x}",
                f"{name}-static-{member}" if member % 16 == 0 else None,
                name,
                f"/10.0.{member >> 8 & 255}.{member & 255}",
                300_000,
                self._session_timeout_ms,
                subscription,
                self._assignment(topic, range(place, self._partitions, len(members))),
            )
            for place, member in enumerate(members)
        )
        leader = described[0].member_id
        return encode_value(GroupMetadataValue("consumer", self._generation[index], "range", leader, at_ms, described))

    def _assignment(self, topic: bytes, partitions: Sequence[int]) -> bytes:
        count = len(partitions)
        return pack(f">hih{len(topic)}si{count}ii", 1, 1, len(topic), topic, count, *partitions, -1)


class Transactions:
    """Transactional ids, each with consecutive transactions. A transaction has the three states that appear in the log."""

    def __init__(self, logs: int, shape: Shape) -> None:
        ids = shape.transactional_ids
        self._random = random.Random(shape.seed + 1)
        names = [f"payments-{index:05}" for index in range(ids)]
        self._ids = [(encode_key(TransactionLogKey(name)), partition_for(name, logs)) for name in names]
        self._epoch = [0] * ids
        self._until_ms = [0] * ids

    def records(self, size: int, from_ms: int, span_ms: int, *, is_last: bool) -> Records:
        """About ``size`` records. In the last span some ids stop within a transaction."""
        found: Records = defaultdict(list)
        for _ in range(size // _STATES):
            index = self._random.randrange(len(self._ids))
            began_ms = max(from_ms + self._random.randrange(span_ms), self._until_ms[index])
            is_left_open = is_last and index < _HANGING
            if began_ms < from_ms + span_ms and self._epoch[index] >= 0:
                self._transaction(found, index, began_ms, is_left_open=is_left_open)
        for records in found.values():
            records.sort(key=lambda each: each[0])
        return found

    def _transaction(self, found: Records, index: int, began_ms: int, *, is_left_open: bool) -> None:
        key, log = self._ids[index]
        shift = self._random.randrange(12)
        partitions = frozenset({(f"orders-{index % 40:04}", shift), ("payments", shift)})
        is_abort = self._random.random() < 0.05
        prepared_ms = began_ms + self._random.randrange(5, 2_000)
        completed_ms = prepared_ms + self._random.randrange(1, 50)
        epoch = self._epoch[index] % 30_000
        states = [
            (began_ms, _ONGOING, partitions),
            (prepared_ms, _PREPARE_ABORT if is_abort else _PREPARE_COMMIT, partitions),
            (completed_ms, _COMPLETE_ABORT if is_abort else _COMPLETE_COMMIT, frozenset[tuple[str, int]]()),
        ]
        for at_ms, status, with_partitions in states[: 1 if is_left_open else _STATES]:
            value = TransactionLogValue(1_000 + index, epoch, 60_000, status, with_partitions, at_ms, began_ms, -1, -1, 2)
            found[log].append((at_ms, key, encode_value(value)))
        self._until_ms[index] = completed_ms + 1
        self._epoch[index] = -1 if is_left_open else self._epoch[index] + 1
