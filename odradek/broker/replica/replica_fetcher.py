"""Fetches everything that this broker follows from one leader: all partitions in one request, one request at a time.

A partition that cannot go on waits for ``replica.fetch.backoff.ms``; the others go on. A partition whose epoch is fenced, or
whose log has failed, is left out until ``follow`` names it again. If the leader does not answer, everything waits for that time,
and a new fetch session begins.

A throttled partition that is not in sync is left out while the follower's quota is exceeded.

Fetches are incremental (KIP-227; ``fetch_sessions`` is the leader's end of a session). A full fetch names all partitions. If the
leader gives it a session, later fetches name only changes: partitions with new values, and partitions that are not fetched any
more. After any error the next fetch is a full one. The cost of building a request depends only on the partitions that ``want``
has named since the last one.

Kafka's classes are ReplicaFetcherThread, RemoteLeaderEndPoint and FetchSessionHandler.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from odradek.broker.replica.fetch_sessions import INITIAL_EPOCH, NO_SESSION_ID, next_epoch
from odradek.broker.replica.followed_partition import Followed, FollowedPartition
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replication_quota import ReplicationQuota
from odradek.client.api import Api, ClientError
from odradek.client.node_client import NodeClient
from odradek.common.logging import log as broker_log
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, error_of
from odradek.protocol.message_types.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from odradek.protocol.message_types.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.timing.driver import Wakeup
from odradek.timing.timer import Timer

Key = tuple[UUID, int]
T = TypeVar("T")


class SessionRequest(NamedTuple):
    """The fields of a Fetch request that belong to the session."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSessionHandler:
    """The session with one leader. Call ``want`` any number of times, then ``build``, then ``answered`` or ``lost``."""

    __slots__ = ("_changed", "_epoch", "_sent", "_session_id", "_wanted")

    def __init__(self) -> None:
        self._session_id = NO_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self._wanted: dict[Key, FetchPartition] = {}
        # Partitions whose latest request the leader may not know.
        self._changed: dict[Key, None] = {}
        # Each partition as the leader knows it.
        self._sent: dict[Key, FetchPartition] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether no partition is wanted."""
        return not self._wanted

    def want(self, key: Key, asked: FetchPartition | None) -> None:
        """Set how to ask for a partition (topic id, index) from now on; None stops asking."""
        if asked is None:
            self._wanted.pop(key, None)
        else:
            self._wanted[key] = asked
        self._changed[key] = None

    def build(self) -> SessionRequest:
        """Build the request for all wanted partitions."""
        if self._epoch == INITIAL_EPOCH:
            self._sent = {}
            self._changed = dict.fromkeys(self._wanted)
        named = []
        forgotten = []
        for key in self._changed:
            asked = self._wanted.get(key)
            sent = self._sent.get(key)
            if asked is not None and asked != sent:
                named.append((key, asked))
                self._sent[key] = asked
            elif asked is None and sent is not None:
                forgotten.append(key)
                del self._sent[key]
        self._changed = {}
        return SessionRequest(
            self._session_id,
            self._epoch,
            [FetchTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in _by_topic(named)],
            [
                ForgottenTopic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in _by_topic((key, key[1]) for key in forgotten)
            ],
        )

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take a response. Return False if it has a session error, and so nothing else."""
        if error_code:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION_ID
            self._epoch = INITIAL_EPOCH
            return False
        if session_id == NO_SESSION_ID:
            # There is no room for a session, or it has ended.
            self._session_id, self._epoch = NO_SESSION_ID, INITIAL_EPOCH
        else:
            self._session_id, self._epoch = session_id, next_epoch(self._epoch)
        return True

    def lost(self) -> None:
        """Give the session up after a missing response. The next fetch ends it and asks for a new one."""
        self._epoch = INITIAL_EPOCH


def _by_topic(items: Iterable[tuple[Key, T]]) -> list[tuple[UUID, list[T]]]:
    by_topic: dict[UUID, list[T]] = {}
    for (topic_id, _), item in items:
        by_topic.setdefault(topic_id, []).append(item)
    return list(by_topic.items())


# Topics are named by id, and replicas have their brokers' epochs.
_FETCH: Final[Api[FetchRequest, FetchResponse]] = Api(ApiKey.FETCH, 15)
# Has leader epochs.
_LIST_OFFSETS: Final[Api[ListOffsetsRequest, ListOffsetsResponse]] = Api(ApiKey.LIST_OFFSETS, 4)
_EARLIEST: Final = -2
_LATEST: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherConfig:
    """The settings of replica fetchers. The defaults are Kafka's.

    The fields are ``replica.fetch.min.bytes``, ``wait.max.ms``, ``max.bytes``, ``response.max.bytes`` and ``backoff.ms``.
    """

    min_bytes: int = 1
    wait_max_ms: int = 500
    max_bytes: int = 1_048_576
    response_max_bytes: int = 10_485_760
    backoff_ms: int = 1_000


class ReplicaFetcher:
    """Fetches from one leader: ``run`` works until ``close``. Loop thread only."""

    def __init__(
        self,
        leader: NodeClient,
        timer: Timer,
        node_id: int,
        broker_epoch: Callable[[], int],
        config: FetcherConfig | None = None,
        quota: ReplicationQuota | None = None,
    ) -> None:
        """``leader`` is this fetcher's own connection. ``node_id`` and ``broker_epoch`` are this broker's.

        ``quota`` is shared by all the broker's fetchers, and limits throttled partitions.
        """
        self._leader = leader
        self._timer = timer
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._config = config or FetcherConfig()
        self._quota = quota
        self._session = FetchSessionHandler()
        self._wakeup = Wakeup(timer)
        self._followed: dict[Key, FollowedPartition] = {}
        # Partitions whose request may have changed.
        self._changed: dict[Key, None] = {}
        # The times until which partitions wait.
        self._delayed: dict[Key, float] = {}
        self._is_closed = False
        self._complaint = ""

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Fetch these partitions, at their current epochs."""
        for partition in partitions:
            key = partition.topic_id, partition.index
            self._followed[key] = FollowedPartition(partition)
            self._delayed.pop(key, None)
            self._note_change(key)
            if partition.follower is not None:
                partition.follower.on_change = partial(self._note_change, key)
        self._wakeup.wake()

    def leave(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions."""
        for partition in partitions:
            self._drop((partition.topic_id, partition.index))

    @property
    def followed(self) -> list[Partition]:
        """The partitions that are fetched."""
        return [followed.partition for followed in self._followed.values()]

    def close(self) -> None:
        """End ``run``, and close the connection."""
        self._is_closed = True
        self._leader.close()
        self._wakeup.wake()

    async def run(self) -> None:
        """Fetch until closed; wait while there is nothing to fetch."""
        while not self._is_closed:
            self._ask()
            if self._session.is_empty:
                await self._wakeup.wait(self._config.backoff_ms)
            else:
                await self._fetch()

    def _note_change(self, key: Key) -> None:
        self._changed[key] = None

    def _ask(self) -> None:
        """Tell the session the new requests of changed partitions."""
        now_ms = self._timer.clock.monotonic_ms()
        for key in [key for key, until_ms in self._delayed.items() if until_ms <= now_ms]:
            del self._delayed[key]
            self._note_change(key)
        if self._quota is not None and self._quota.rate.is_limited:
            # Any of them may be held back or released as time passes.
            self._changed.update(dict.fromkeys(self._followed))
        changed, self._changed = self._changed, {}
        for key in changed:
            self._session.want(key, self._asked(key))

    def _asked(self, key: Key) -> FetchPartition | None:
        followed = self._followed.get(key)
        if followed is None or key in self._delayed:
            return None
        if self._holds_back(followed):
            self._note_change(key)
            return None
        try:
            return followed.request(self._config.max_bytes)
        except KafkaError:
            # The partition's disk has failed.
            self._drop(key)
            return None

    def _holds_back(self, followed: FollowedPartition) -> bool:
        partition = followed.partition
        return self._quota is not None and not followed.is_in_sync and self._quota.holds_back(partition.topic, partition.index)

    async def _fetch(self) -> None:
        config = self._config
        session = self._session.build()
        request = FetchRequest(
            replica_state=ReplicaState(self._node_id, self._broker_epoch()),
            max_wait_ms=config.wait_max_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.response_max_bytes,
            session_id=session.session_id,
            session_epoch=session.session_epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten,
        )
        try:
            response = await self._leader.request(_FETCH, request)
        except ClientError as error:
            self._session.lost()
            await self._back_off(error.reason)
            return
        if self._session.answered(response.error_code, response.session_id):
            self._complaint = ""
            await self._take(response)
        else:
            await self._back_off(f"the leader answered error {response.error_code}")

    async def _take(self, response: FetchResponse) -> None:
        """Apply the response, except for partitions that have a new epoch which no request has named yet.

        Otherwise the error that the old epoch is fenced would stop such a partition at its new epoch.
        """
        out_of_range = []
        for topic in response.responses:
            for data in topic.partitions:
                followed = None if topic.topic_id is None else self._followed.get((topic.topic_id, data.partition_index))
                if followed is None or not followed.is_asked:
                    continue
                if self._quota is not None and data.records:
                    self._quota.record(followed.partition.topic, data.partition_index, len(data.records))
                outcome = followed.take(data, self._timer.clock.now_ms())
                if outcome is Followed.OUT_OF_RANGE:
                    out_of_range.append(followed)
                else:
                    self._note(followed, outcome)
        for followed in out_of_range:
            await self._find_range(followed)

    def _note(self, followed: FollowedPartition, outcome: Followed) -> None:
        if not self._is_current(followed):
            return
        key = followed.partition.topic_id, followed.partition.index
        self._note_change(key)
        if outcome is Followed.STOPPED:
            self._drop(key)
        elif outcome is Followed.BACK_OFF:
            self._delayed[key] = self._timer.clock.monotonic_ms() + self._config.backoff_ms
        else:
            self._delayed.pop(key, None)

    def _is_current(self, followed: FollowedPartition) -> bool:
        """Return whether the partition is still fetched, at the same epoch."""
        return self._followed.get((followed.partition.topic_id, followed.partition.index)) is followed

    async def _find_range(self, followed: FollowedPartition) -> None:
        """Ask the leader where its log ends and begins, and adjust the follower's log."""
        try:
            end_offset = await self._offset(followed, _LATEST)
            start_offset = await self._offset(followed, _EARLIEST)
        except (ClientError, KafkaError, ValueError):
            self._note(followed, Followed.BACK_OFF)
            return
        self._note(followed, followed.begin_at(start_offset, end_offset, self._timer.clock.now_ms()))

    async def _offset(self, followed: FollowedPartition, timestamp: int) -> int:
        """Return one offset of the leader's log. Raises ClientError, KafkaError, ValueError."""
        partition = followed.partition
        asked = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[asked])]
        )
        response = await self._leader.request(_LIST_OFFSETS, request)
        [topic] = response.topics
        [answered] = topic.partitions
        if answered.error_code:
            raise KafkaError(error_of(answered.error_code), "the leader refused to list its offsets")
        return answered.offset

    async def _back_off(self, reason: str) -> None:
        if self._is_closed:
            return
        if reason != self._complaint:
            self._complaint = reason
            broker_log.warn("a leader does not answer fetches of its followers; trying again", reason=reason)
        await self._wakeup.wait(self._config.backoff_ms)

    def _drop(self, key: Key) -> None:
        self._followed.pop(key, None)
        self._delayed.pop(key, None)
        self._note_change(key)
