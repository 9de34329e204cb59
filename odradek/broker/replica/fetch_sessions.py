"""Incremental fetch sessions (KIP-227, KIP-516): the broker remembers a consumer's partitions, so requests need not repeat them.

A full fetch (session epoch 0) names all its partitions and is given a session, if there is room for one. From then on the
consumer sends only changes (new offsets, partitions added and forgotten) under a growing epoch. The broker answers only
partitions with something to report: records, an error, or a high watermark or log start offset other than the ones sent last.
Epoch -1 closes the session and fetches without one, which is also how versions before 7 fetch.

Pure: the time is an argument, and ids come from a source of randomness. The cost of a fetch within a session depends on the
changes only: `open` handles the partitions named in the request, `select` those that were read (`fetch_partitions`).

Left out: followers' privileged sessions, preferred read replicas, and Kafka's division of the cache into eight shards. The shards
divide the cache's lock; here the slots are one pool.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.replica.fetch_partitions import FetchPartitions
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from odradek.broker.replica.fetch_partitions import FetchPartition, TopicKey
    from odradek.protocol.message_types.fetch import FetchRequest, PartitionData

    # A partition and its canonical PartitionData of the response. The records may be any false value if there are none.
    Results: TypeAlias = Sequence[tuple[FetchPartition, PartitionData]]

NO_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_SESSION_ID: Final = 2**31 - 1
MAX_EPOCH: Final = MAX_SESSION_ID
# Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS; not a config there either.
EVICTION_MS: Final = 120_000


def next_epoch(epoch: int) -> int:
    """Return the session epoch after `epoch`, which is not negative. MAX_EPOCH is followed by 1: 0 asks for a new session."""
    return 1 if epoch == MAX_EPOCH else epoch + 1


class FetchSession:
    """The state of one session between fetches. The next request must carry `epoch`."""

    __slots__ = (
        "counted_size",
        "created_ms",
        "epoch",
        "evictable_size",
        "id",
        "last_used_ms",
        "partitions",
        "topic_keys_are_ids",
    )

    def __init__(self, session_id: int, partitions: FetchPartitions, topic_keys_are_ids: bool, now_ms: float) -> None:
        self.id = session_id
        self.partitions = partitions
        self.topic_keys_are_ids = topic_keys_are_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        # For the cache: the size it has counted, and the size under which the session may be evicted (None: too young).
        self.counted_size = 0
        self.evictable_size: int | None = None


class FetchContext:
    """The partitions and results of one Fetch request. The class itself is a fetch without a session, or a refusal.

    If `error_code` is not 0, it and `session_id` are the whole response. Otherwise read `partitions`, `select` the results to
    send, and only then take `session_id` and, once more, `error_code` for the response. `partitions` is the session's own
    set, not a copy. Unless `is_whole`, only the changed ones need be read.
    """

    __slots__ = ("error_code", "is_whole", "partitions", "session_id")

    def __init__(self, partitions: FetchPartitions, error_code: ErrorCode = ErrorCode.NONE) -> None:
        self.partitions = partitions
        self.error_code = error_code
        self.session_id = NO_SESSION_ID
        self.is_whole = True

    def select(self, results: Results) -> Results:
        """Return the results to send, given all that were read, in any order. Call it once, when the response is made."""
        return results

    def told(self, results: Results) -> Results:
        """Return the results that `select` would, without changing the session."""
        return results

    def throttle(self) -> None:
        """Answer without results, as the client has to wait: take `session_id` and `error_code`, and do not `select`."""


class FullFetchContext(FetchContext):
    """A full fetch that asks for a session. The session begins with the response; `session_id` is 0 if there is no room."""

    __slots__ = ("_now_ms", "_sessions", "_topic_keys_are_ids")

    def __init__(self, partitions: FetchPartitions, sessions: FetchSessions, topic_keys_are_ids: bool, now_ms: float) -> None:
        super().__init__(partitions)
        self._sessions = sessions
        self._topic_keys_are_ids = topic_keys_are_ids
        self._now_ms = now_ms

    def select(self, results: Results) -> Results:
        """Return all results, remember them as sent, and create the session."""
        for partition, data in results:
            partition.note_sent(data)
        self.session_id = self._sessions.create(self.partitions, self._topic_keys_are_ids, self._now_ms)
        return results


class IncrementalFetchContext(FetchContext):
    """A fetch within a session."""

    __slots__ = ("_epoch", "_session")

    def __init__(self, session: FetchSession) -> None:
        super().__init__(session.partitions)
        self.is_whole = False
        self.session_id = session.id
        self._session = session
        self._epoch = session.epoch

    def select(self, results: Results) -> Results:
        """Return the results with something new.

        Partitions with records move to the end of the session's order. The ones behind them are read first next time, so that a
        response's size limit starves none. If another request has used the session since this one was opened, this sets
        `error_code` to INVALID_FETCH_SESSION_EPOCH and selects nothing.
        """
        if self._session.epoch != self._epoch:
            self.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return ()
        selected = []
        for result in results:
            partition, data = result
            if partition.is_told(data):
                continue
            # A request that forgets the last partitions ends the session without using up an epoch.
            if partition not in self.partitions:
                continue
            partition.note_sent(data)
            if data.records:
                self.partitions.move_to_end(partition)
            selected.append(result)
        return selected

    def told(self, results: Results) -> Results:
        """Return the results with something new."""
        return [each for each in results if not each[0].is_told(each[1]) and each[0] in self.partitions]

    def throttle(self) -> None:
        """Leave the session as it is: its next request has the epoch after this one's."""
        if self._session.epoch != self._epoch:
            self.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FetchSessions:
    """All fetch sessions of the broker: Kafka's FetchManager and FetchSessionCache.

    `slots` is `max.incremental.fetch.session.cache.slots`; `random` draws the sessions' ids. When all slots are taken, a
    new session takes the place of the one idle longest if that has not been used for more than `eviction_ms`; else of the
    smallest one older than that, if the new one is larger; else there is no session.

    `now_ms` must come from a clock that does not go back. Counts: `len(sessions)` (Kafka's NumIncrementalFetchSessions),
    `partitions_cached` (NumIncrementalFetchPartitionsCached), `evictions` (IncrementalFetchSessionEvictionsPerSec).
    """

    __slots__ = ("_evictable", "_eviction_ms", "_random", "_sessions", "_slots", "evictions", "partitions_cached")

    def __init__(self, slots: int, random: Random, eviction_ms: int = EVICTION_MS) -> None:
        self.partitions_cached = 0
        self.evictions = 0
        self._random = random
        self._slots = slots
        self._eviction_ms = eviction_ms
        # By id, least recently used first.
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        # Sessions old enough to be evicted for a larger one, by their number of partitions, then by id.
        self._evictable: dict[int, dict[int, FetchSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def fetched(self, session_id: int) -> list[tuple[TopicKey, int]]:
        """Return the partitions of a session, each with its topic's id or name; empty if there is no such session."""
        session = self._sessions.get(session_id)
        return [] if session is None else [(each.topic_key, each.partition) for each in session.partitions]

    def open(self, request: FetchRequest, topic_keys_are_ids: bool, now_ms: float) -> FetchContext:
        """Find the session a Fetch request belongs to, and bring it up to date with the request.

        `request` is a canonical FetchRequest; `topic_keys_are_ids` is true from version 13 on. The context's error is
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR where a session that
        began with topic names goes on with ids or the other way round.
        """
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._remove(request.session_id)
            partitions = self._asked(request, topic_keys_are_ids)
            if epoch == FINAL_EPOCH:
                return FetchContext(partitions)
            return FullFetchContext(partitions, self, topic_keys_are_ids, now_ms)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext(FetchPartitions(), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(FetchPartitions(), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.topic_keys_are_ids != topic_keys_are_ids:
            return FetchContext(FetchPartitions(), ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.partitions.ask(request.topics, topic_keys_are_ids)
        session.partitions.forget(request.forgotten_topics_data, topic_keys_are_ids)
        if not session.partitions:
            self._remove(session.id)
            return FetchContext(self._asked(request, topic_keys_are_ids))
        self._touch(session, now_ms)
        session.epoch = next_epoch(epoch)
        return IncrementalFetchContext(session)

    def create(self, partitions: FetchPartitions, topic_keys_are_ids: bool, now_ms: float) -> int:
        """Create a session over `partitions`. Return its id, or 0 if there is no room."""
        if len(self._sessions) >= self._slots and not self._evict_for(len(partitions), now_ms):
            return NO_SESSION_ID
        session_id = self._random.randint(1, MAX_SESSION_ID)
        while session_id in self._sessions:
            session_id = self._random.randint(1, MAX_SESSION_ID)
        session = self._sessions[session_id] = FetchSession(session_id, partitions, topic_keys_are_ids, now_ms)
        partitions.watch()
        self._touch(session, now_ms)
        return session_id

    @staticmethod
    def _asked(request: FetchRequest, topic_keys_are_ids: bool) -> FetchPartitions:
        partitions = FetchPartitions()
        partitions.ask(request.topics, topic_keys_are_ids)
        return partitions

    def _touch(self, session: FetchSession, now_ms: float) -> None:
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.id)
        size = len(session.partitions)
        self.partitions_cached += size - session.counted_size
        session.counted_size = size
        if size != session.evictable_size and now_ms - session.created_ms > self._eviction_ms:
            self._withdraw(session)
            session.evictable_size = size
            self._evictable.setdefault(size, {})[session.id] = session

    def _withdraw(self, session: FetchSession) -> None:
        if session.evictable_size is None:
            return
        same_size = self._evictable[session.evictable_size]
        del same_size[session.id]
        if not same_size:
            del self._evictable[session.evictable_size]

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions_cached -= session.counted_size
            session.partitions.unwatch()
            self._withdraw(session)

    def _evict_for(self, size: int, now_ms: float) -> bool:
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.last_used_ms <= self._eviction_ms:
            if not self._evictable:
                return False
            smallest_size = min(self._evictable)
            if size <= smallest_size:
                return False
            victim = next(iter(self._evictable[smallest_size].values()))
        self._remove(victim.id)
        self.evictions += 1
        return True


class ReadableSessions(FetchSessions):
    """The sessions as seen by one request whose client may not read some of its partitions.

    ``refused`` returns those partitions, and ``refusal`` the error data of one. A session keeps them, and every answer includes
    the errors.
    """

    __slots__ = ("_behind", "_refusal", "_refused")

    def __init__(
        self,
        sessions: FetchSessions,
        refused: Callable[[FetchRequest, FetchPartitions], Sequence[FetchPartition]],
        refusal: Callable[[FetchPartition], PartitionData],
    ) -> None:
        # This wraps ``sessions`` and has no sessions of its own.
        self._behind = sessions
        self._refused = refused
        self._refusal = refusal

    def open(self, request: FetchRequest, topic_keys_are_ids: bool, now_ms: float) -> FetchContext:
        """Return a context whose ``partitions`` are the readable ones."""
        context = self._behind.open(request, topic_keys_are_ids, now_ms)
        if context.error_code:
            return context
        refused = self._refused(request, context.partitions)
        if not refused:
            return context
        return ReadableContext(context, [(partition, self._refusal(partition)) for partition in refused])


class ReadableContext(FetchContext):
    """A FetchContext without the ``refused`` partitions. The response still includes their errors."""

    __slots__ = ("_context", "_refused")

    def __init__(self, context: FetchContext, refused: Sequence[tuple[FetchPartition, PartitionData]]) -> None:
        super().__init__(context.partitions.without([partition for partition, _ in refused]))
        self.is_whole = context.is_whole
        self._context = context
        self._refused = refused

    def select(self, results: Results) -> Results:
        """Return the wrapped context's selection of all results, refused partitions included."""
        for partition, _ in self._refused:
            # A client that may read it again starts afresh.
            partition.resolve(None)
        selected = self._context.select([*results, *self._refused])
        self.session_id = self._context.session_id
        self.error_code = self._context.error_code
        return selected

    def told(self, results: Results) -> Results:
        """Return the wrapped context's selection of all results, without changing the session."""
        return self._context.told([*results, *self._refused])

    def throttle(self) -> None:
        """Throttle the wrapped context."""
        self._context.throttle()
        self.session_id = self._context.session_id
        self.error_code = self._context.error_code
