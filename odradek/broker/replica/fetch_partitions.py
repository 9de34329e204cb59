"""The partitions of a Fetch, and which of them have changed.

A fetch session and a delayed fetch watch their partitions. A watched `Partition` notes each change in all `FetchPartitions` that
have it. So a fetch within a session reads only partitions that the request names, that have changed, or that had something left
to report. An unchanged partition costs nothing, neither in a fetch nor while the fetch waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from uuid import UUID

    from odradek.protocol.message_types.fetch import FetchPartition as FetchRequestPartition
    from odradek.protocol.message_types.fetch import FetchTopic, ForgottenTopic, PartitionData

    # The topic id from version 13 on (None is the zero id), the topic name before.
    TopicKey: TypeAlias = UUID | str | None

UNKNOWN_OFFSET: Final = -1


class FetchPartition:
    """One partition of a fetch: the last request for it, and the last response.

    `topic_key` and `partition` name it. `fetch_offset`, `max_bytes`, `current_leader_epoch`, `last_fetched_epoch` and
    `log_start_offset` (the fetcher's own) are as in the request. `sent_high_watermark` and `sent_log_start_offset` are as
    in the last response. `target` caches the partition that the names resolve to. It notes its changes here while `watched_by` is
    set, which `FetchPartitions` does. `topic_name` is the name that a topic id has resolved to, None before that; it outlives
    the topic.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "target",
        "topic_key",
        "topic_name",
        "watched_by",
    )

    def __init__(self, topic_key: TopicKey, asked: FetchRequestPartition) -> None:
        self.topic_key = topic_key
        self.partition: int = asked.partition
        self.sent_high_watermark = UNKNOWN_OFFSET
        self.sent_log_start_offset = UNKNOWN_OFFSET
        self.target: Any = None
        self.topic_name: str | None = None
        self.watched_by: FetchPartitions | None = None
        self.current_leader_epoch: int = asked.current_leader_epoch
        self.ask(asked)

    def ask(self, asked: FetchRequestPartition) -> None:
        """Take over the values of a request's FetchPartition."""
        self.fetch_offset: int = asked.fetch_offset
        self.max_bytes: int = asked.partition_max_bytes
        if asked.current_leader_epoch != self.current_leader_epoch:
            # The reader may have ignored a response of the previous epoch.
            self.current_leader_epoch = asked.current_leader_epoch
            self.sent_high_watermark = UNKNOWN_OFFSET
        self.last_fetched_epoch: int = asked.last_fetched_epoch
        self.log_start_offset: int = asked.log_start_offset

    def note_sent(self, data: PartitionData) -> None:
        """Remember the response's offsets, so that they need not be sent again.

        After an error the high watermark counts as unknown, because the end of the error must be reported. The same holds for a
        diverging epoch: a follower that truncates its log ignores the high watermark.
        """
        is_taken = not data.error_code and data.diverging_epoch.epoch < 0
        self.sent_high_watermark = data.high_watermark if is_taken else UNKNOWN_OFFSET
        self.sent_log_start_offset = data.log_start_offset

    def is_told(self, data: PartitionData) -> bool:
        """Return whether the consumer already knows all of ``data``."""
        return (
            not data.records
            and data.high_watermark == self.sent_high_watermark
            and data.log_start_offset == self.sent_log_start_offset
            and not data.error_code
            and data.diverging_epoch.epoch < 0
            and data.preferred_read_replica < 0
        )

    def resolve(self, target: object) -> None:
        """Cache ``target`` for the names; None means that it must be looked up again."""
        watched_by = self.watched_by
        self.watch(None)
        self.target = target
        self.watch(watched_by)
        self.note_change()

    def watch(self, partitions: FetchPartitions | None) -> None:
        """Note changes of ``target`` in ``partitions`` from now on; None stops that."""
        self.watched_by = partitions
        if self.target is None:
            return
        if partitions is None:
            self.target.fetched_by.pop(self, None)
        else:
            self.target.fetched_by[self] = None

    def note_change(self) -> None:
        """Note that there may be something new to read or to report."""
        if self.watched_by is not None:
            self.watched_by.changed[self] = None

    def note_idle(self) -> None:
        """Note that there is nothing to read until the next change. Has no effect on unwatched partitions."""
        if self.watched_by is not None:
            self.watched_by.changed.pop(self, None)


class FetchTimes:
    """The monotonic time in ms of a follower's last fetch in a session. It had all its requested offsets then."""

    __slots__ = ("last_ms",)

    def __init__(self) -> None:
        self.last_ms = 0.0


class FetchPartitions:
    """The partitions of one session or request, iterated in reading order.

    A partition named twice counts once, at its first place with its last offset. `changed` are the partitions to look at: all of
    them, until they are watched and found idle. `key` is the purgatory key of a delayed fetch. `times` is set for a follower.
    """

    __slots__ = ("_by_topic", "_order", "_view", "_watchers", "_whole", "changed", "times")

    def __init__(self) -> None:
        self._by_topic: dict[TopicKey, dict[int, FetchPartition]] = {}
        # Ordered sets. A FetchPartition hashes by identity, so that moving one hashes no UUID.
        self._order: dict[FetchPartition, None] = {}
        self.changed: dict[FetchPartition, None] = {}
        # Set if these are a subset of other FetchPartitions; the superset is watched instead.
        self._whole: FetchPartitions | None = None
        self._watchers = 0
        self._view: Hashable = None
        self.times = FetchTimes()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[FetchPartition]:
        return iter(self._order)

    def __contains__(self, partition: FetchPartition) -> bool:
        return partition in self._order

    @property
    def key(self) -> FetchPartitions:
        """The watched partitions: the key under which a delayed fetch waits."""
        return self if self._whole is None else self._whole

    @property
    def topic_keys(self) -> Iterable[TopicKey]:
        """The topics, by id or name."""
        return self._by_topic

    def of_topic(self, topic_key: TopicKey) -> Iterable[FetchPartition]:
        """The partitions of one topic."""
        return self._by_topic[topic_key].values()

    def to_read(self, *, is_whole: bool) -> list[FetchPartition]:
        """Return all partitions, or the changed ones, in reading order."""
        if is_whole:
            return list(self._order)
        if self._whole is None:
            return list(self.changed)
        return [partition for partition in self.changed if partition in self._order]

    def look(self, view: Hashable) -> None:
        """Set how the partitions are read. If that has changed, all count as changed: an idle one may have data."""
        if self._whole is not None:
            self._whole.look(view)
        elif view != self._view:
            self._view = view
            self.changed.update(self._order)

    def watch(self) -> None:
        """Note changes from now on. Calls nest: each needs one `unwatch`."""
        if self._whole is not None:
            self._whole.watch()
            return
        self._watchers += 1
        if self._watchers == 1:
            for partition in self._order:
                partition.watch(self)

    def unwatch(self) -> None:
        """Undo one `watch`."""
        if self._whole is not None:
            self._whole.unwatch()
            return
        self._watchers -= 1
        if not self._watchers:
            for partition in self._order:
                partition.watch(None)

    def ask(self, topics: Iterable[FetchTopic], topic_keys_are_ids: bool) -> None:
        """Add a request's `topics` at the end, and update partitions that are already here."""
        for topic in topics:
            if not topic.partitions:
                continue
            topic_key = topic.topic_id if topic_keys_are_ids else topic.topic
            known = self._by_topic.setdefault(topic_key, {})
            for asked in topic.partitions:
                partition = known.get(asked.partition)
                if partition is not None:
                    partition.ask(asked)
                else:
                    partition = known[asked.partition] = FetchPartition(topic_key, asked)
                    self._order[partition] = None
                    if self._watchers:
                        partition.watch(self)
                self.changed[partition] = None

    def forget(self, topics: Iterable[ForgottenTopic], topic_keys_are_ids: bool) -> None:
        """Drop the partitions of a request's `forgotten_topics_data`; unknown ones are ignored."""
        for topic in topics:
            topic_key = topic.topic_id if topic_keys_are_ids else topic.topic
            known = self._by_topic.get(topic_key, {})
            for index in topic.partitions:
                partition = known.pop(index, None)
                if partition is not None:
                    del self._order[partition]
                    partition.watch(None)
                    self.changed.pop(partition, None)
            if not known:
                self._by_topic.pop(topic_key, None)

    def without(self, partitions: Iterable[FetchPartition]) -> FetchPartitions:
        """Return the other partitions, in the same reading order."""
        left = FetchPartitions()
        left._order = dict(self._order)
        left._whole, left.changed, left.times = self, self.changed, self.times
        for partition in partitions:
            left._order.pop(partition, None)
        return left

    def move_to_end(self, partition: FetchPartition) -> None:
        """Read this partition last from now on."""
        for order in (self._order, self.changed):
            order.pop(partition, None)
            order[partition] = None
