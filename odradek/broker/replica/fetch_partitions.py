"""The partitions that a Fetch names, and those of them in which something has happened.

While they are watched, which they are by a fetch session and by a fetch that waits, each `Partition` notes its change in all
`FetchPartitions` that have it. So a fetch within a session reads only partitions that its request names, that have changed, or
that had something left to tell. A partition in which nothing happens costs nothing, neither in a fetch nor while it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator
    from uuid import UUID

    from odradek.protocol.message_types.fetch import FetchPartition as FetchRequestPartition
    from odradek.protocol.message_types.fetch import FetchTopic, ForgottenTopic, PartitionData

    # From version 13 on the topic's id (None is the zero id), before that its name.
    TopicKey: TypeAlias = UUID | str | None

UNKNOWN_OFFSET: Final = -1


class FetchPartition:
    """One partition a consumer fetches: what it asked for last, and what it was told last.

    `topic_key` and `partition` name it. `fetch_offset`, `max_bytes`, `current_leader_epoch`, `last_fetched_epoch` and
    `log_start_offset` (the fetcher's own) are as in the request. `sent_high_watermark` and `sent_log_start_offset` are as
    in the last response. `target` is what the names were found to stand for, so that nobody need look again; it tells of its
    changes while `watched_by` is set, which `FetchPartitions` does. `topic_name` is the name of the topic that a topic id has
    stood for, None before that; it outlives the topic.
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
        """Take over what a request's FetchPartition asks for."""
        self.fetch_offset: int = asked.fetch_offset
        self.max_bytes: int = asked.partition_max_bytes
        if asked.current_leader_epoch != self.current_leader_epoch:
            # What was told in the epoch before may have been left aside.
            self.current_leader_epoch = asked.current_leader_epoch
            self.sent_high_watermark = UNKNOWN_OFFSET
        self.last_fetched_epoch: int = asked.last_fetched_epoch
        self.log_start_offset: int = asked.log_start_offset

    def note_sent(self, data: PartitionData) -> None:
        """Remember what the response tells, so that it need not be told again.

        The end of an error must be told, so then it is nothing. Nor does a follower take the high watermark with which it is told
        to cut off its log.
        """
        is_taken = not data.error_code and data.diverging_epoch.epoch < 0
        self.sent_high_watermark = data.high_watermark if is_taken else UNKNOWN_OFFSET
        self.sent_log_start_offset = data.log_start_offset

    def is_told(self, data: PartitionData) -> bool:
        """Return True if the consumer has been told all of ``data``."""
        return (
            not data.records
            and data.high_watermark == self.sent_high_watermark
            and data.log_start_offset == self.sent_log_start_offset
            and not data.error_code
            and data.diverging_epoch.epoch < 0
            and data.preferred_read_replica < 0
        )

    def resolve(self, target: object) -> None:
        """Take ``target`` for what the names stand for; None: it has to be found again."""
        watched_by = self.watched_by
        self.watch(None)
        self.target = target
        self.watch(watched_by)
        self.note_change()

    def watch(self, partitions: FetchPartitions | None) -> None:
        """Note changes of ``target`` in ``partitions`` from now on; None: no more."""
        self.watched_by = partitions
        if self.target is None:
            return
        if partitions is None:
            self.target.fetched_by.pop(self, None)
        else:
            self.target.fetched_by[self] = None

    def note_change(self) -> None:
        """There may be something new to read or to tell."""
        if self.watched_by is not None:
            self.watched_by.changed[self] = None

    def note_idle(self) -> None:
        """There is nothing, and a change will be noted. Nothing is believed of partitions that are not watched."""
        if self.watched_by is not None:
            self.watched_by.changed.pop(self, None)


class FetchTimes:
    """When a follower fetched in a session last, monotonic, in ms: it had what it asked for in all its partitions then."""

    __slots__ = ("last_ms",)

    def __init__(self) -> None:
        self.last_ms = 0.0


class FetchPartitions:
    """The partitions of one session or request, iterated in the order in which they are to be read.

    A partition named twice counts once, at its first place with its last offset. `changed` are those that have to be looked at:
    all, until they are watched and found idle. `key` is under which a fetch of them waits. `times` are a follower's.
    """

    __slots__ = ("_by_topic", "_order", "_view", "_watchers", "_whole", "changed", "times")

    def __init__(self) -> None:
        self._by_topic: dict[TopicKey, dict[int, FetchPartition]] = {}
        # Sets that keep their order. FetchPartition has an object's own hash, so that moving one costs no UUID's.
        self._order: dict[FetchPartition, None] = {}
        self.changed: dict[FetchPartition, None] = {}
        # These are some partitions of a whole, which is watched for them.
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
        """The partitions that are watched, the key under which a fetch waits."""
        return self if self._whole is None else self._whole

    @property
    def topic_keys(self) -> Iterable[TopicKey]:
        """The topics."""
        return self._by_topic

    def of_topic(self, topic_key: TopicKey) -> Iterable[FetchPartition]:
        """The partitions of one topic."""
        return self._by_topic[topic_key].values()

    def to_read(self, *, is_whole: bool) -> list[FetchPartition]:
        """All, or those that have changed, in the order in which they are to be read."""
        if is_whole:
            return list(self._order)
        if self._whole is None:
            return list(self.changed)
        return [partition for partition in self.changed if partition in self._order]

    def look(self, view: Hashable) -> None:
        """They are read in this way now: in another way, one that was idle may have something."""
        if self._whole is not None:
            self._whole.look(view)
        elif view != self._view:
            self._view = view
            self.changed.update(self._order)

    def watch(self) -> None:
        """Have changes noted, until as many calls of `unwatch`."""
        if self._whole is not None:
            self._whole.watch()
            return
        self._watchers += 1
        if self._watchers == 1:
            for partition in self._order:
                partition.watch(self)

    def unwatch(self) -> None:
        """The end of one `watch`."""
        if self._whole is not None:
            self._whole.unwatch()
            return
        self._watchers -= 1
        if not self._watchers:
            for partition in self._order:
                partition.watch(None)

    def ask(self, topics: Iterable[FetchTopic], topic_keys_are_ids: bool) -> None:
        """Add the partitions of a request's `topics` at the end, or update those that are there."""
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
        """Drop the partitions of a request's `forgotten_topics_data`; those that are not there do no harm."""
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
        """Return the others, to be read in the same order."""
        left = FetchPartitions()
        left._order = dict(self._order)
        left._whole, left.changed, left.times = self, self.changed, self.times
        for partition in partitions:
            left._order.pop(partition, None)
        return left

    def move_to_end(self, partition: FetchPartition) -> None:
        """Read this one last from now on."""
        for order in (self._order, self.changed):
            order.pop(partition, None)
            order[partition] = None
