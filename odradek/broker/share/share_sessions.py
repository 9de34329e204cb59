"""The share sessions of this broker: one for each member of a share group that fetches here (KIP-932).

A session keeps the partitions that its member fetches, so that a request names changes only. Its epoch rises with each request.

    epoch 0      begins a session, and ends the member's former one
    epoch -1     ends the session: the member's records are released
    otherwise    must be the session's epoch

A session also ends when its connection is lost. Unlike fetch sessions, these are never evicted: with too many of them, a new one
is refused. Kafka's classes are ShareSessionCache, ShareSession and CachedSharePartition.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.broker.replica.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.protocol.message_types.share_fetch import PartitionData


class TopicIdPartition(NamedTuple):
    """A partition, by its topic's id."""

    topic_id: UUID
    partition: int


class ShareSessionKey(NamedTuple):
    """The group and the member."""

    group_id: str
    member_id: str


class ShareSession:
    """One member's session. ``connection`` identifies the connection that has begun it; None for callers in process."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection: object) -> None:
        self.key = key
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.connection = connection
        # In the order of the fetches. True for a partition that the next response must name, whatever it has.
        self.partitions: dict[TopicIdPartition, bool] = dict.fromkeys(partitions, False)

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add and remove partitions."""
        for partition in added:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def is_told(self, partition: TopicIdPartition, data: "PartitionData") -> bool:
        """Return whether a response names a partition: if it is new, has records or an error. Notes that it does."""
        has_records = bool(data.records)
        must_name = has_records or self.partitions.get(partition, False) or data.error_code != ErrorCode.NONE
        if must_name and partition in self.partitions:
            if has_records:
                # Partitions with records go to the end, so that the others have their turn.
                del self.partitions[partition]
            self.partitions[partition] = data.error_code != ErrorCode.NONE
        return must_name


class ShareSessionCache:
    """All share sessions. Loop thread only.

    ``on_member_gone`` is called with the session of a member whose connection is lost. ``on_group_gone`` is called with a group
    that has no session left, after a connection was lost.
    """

    __slots__ = ("_by_connection", "_group_sizes", "_most", "_sessions", "evictions", "on_group_gone", "on_member_gone")

    def __init__(
        self,
        most_sessions: Callable[[], int],
        on_member_gone: Callable[[ShareSession], object],
        on_group_gone: Callable[[str], object],
    ) -> None:
        self.on_member_gone = on_member_gone
        self.on_group_gone = on_group_gone
        # The number of sessions that ended with their connections.
        self.evictions = 0
        self._most = most_sessions
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        # The key of the newest session of each connection, which may have ended.
        self._by_connection: dict[object, ShareSessionKey] = {}
        self._group_sizes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Return the number of partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        """Return a member's session, or None."""
        return self._sessions.get(ShareSessionKey(group_id, member_id))

    def has_group(self, group_id: str) -> bool:
        """Return whether a member of the group has a session."""
        return self._group_sizes.get(group_id, 0) > 0

    def begin(self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition], connection: object) -> ShareSession:
        """Begin a session, in place of the member's former one. KafkaError: SHARE_SESSION_LIMIT_REACHED."""
        key = ShareSessionKey(group_id, member_id)
        self.remove(key)
        if len(self._sessions) >= self._most():
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED, f"there are {len(self._sessions)} share sessions")
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        if connection is not None:
            self._by_connection[connection] = key
        self._group_sizes[group_id] = self._group_sizes.get(group_id, 0) + 1
        return session

    def advance(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session of a request with ``epoch``, whose next epoch is one higher, unless it is the final one.

        KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self.get(group_id, member_id)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, f"{member_id} of {group_id} has no share session here")
        if epoch == FINAL_EPOCH:
            return session
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"the epoch is {epoch}, but should be {session.epoch}")
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: ShareSessionKey) -> ShareSession | None:
        """End a session, and return it; None if there is none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._group_sizes[key.group_id] -= 1
        return session

    def remove_all(self) -> None:
        """End all sessions: share groups have been switched off."""
        self._sessions.clear()
        self._by_connection.clear()
        self._group_sizes.clear()

    def connection_lost(self, connection: object) -> None:
        """End the session of a lost connection."""
        key = self._by_connection.pop(connection, None)
        if key is None:
            return
        session = self._sessions.get(key)
        if session is not None and session.connection is connection:
            self.evictions += 1
            self.remove(key)
            self.on_member_gone(session)
        if not self.has_group(key.group_id):
            self._group_sizes.pop(key.group_id, None)
            self.on_group_gone(key.group_id)

    def sessions(self) -> Sequence[ShareSession]:
        """Return all sessions."""
        return list(self._sessions.values())
