"""A follower's end of a fetch session: what it need not say again (KIP-227). ``fetch_sessions`` is the leader's end.

A full fetch names all partitions. If the leader gives it a session, later fetches name only what has changed: partitions that are
asked for otherwise than before, and those that are not fetched any more. After anything went wrong the next fetch is a full one.
Building a request costs the partitions that ``want`` has named since the last one.

Pure. Kafka's class is FetchSessionHandler.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar
from uuid import UUID

from odradek.broker.replica.fetch_sessions import INITIAL_EPOCH, NO_SESSION_ID, next_epoch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.fetch import FetchPartition, FetchTopic, ForgottenTopic

Key = tuple[UUID, int]
T = TypeVar("T")


class SessionRequest(NamedTuple):
    """The part of a Fetch request that is about the session."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSessionHandler:
    """The session with one leader. ``want`` as often as you like, ``build``, then ``answered`` or ``lost``, in turns."""

    __slots__ = ("_changed", "_epoch", "_sent", "_session_id", "_wanted")

    def __init__(self) -> None:
        self._session_id = NO_SESSION_ID
        self._epoch = INITIAL_EPOCH
        self._wanted: dict[Key, FetchPartition] = {}
        # Those of which the leader may not know how they are wanted now.
        self._changed: dict[Key, None] = {}
        # What the leader knows of each partition.
        self._sent: dict[Key, FetchPartition] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is wanted."""
        return not self._wanted

    def want(self, key: Key, asked: FetchPartition | None) -> None:
        """Ask for the partition of that topic id and number in this way from now on; None: no more."""
        if asked is None:
            self._wanted.pop(key, None)
        else:
            self._wanted[key] = asked
        self._changed[key] = None

    def build(self) -> SessionRequest:
        """The request for all that is wanted."""
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
        """Take a response; False where its error is the session's, and there is nothing else in it."""
        if error_code:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION_ID
            self._epoch = INITIAL_EPOCH
            return False
        if session_id == NO_SESSION_ID:
            # There is no room for one, or it has ended.
            self._session_id, self._epoch = NO_SESSION_ID, INITIAL_EPOCH
        else:
            self._session_id, self._epoch = session_id, next_epoch(self._epoch)
        return True

    def lost(self) -> None:
        """There was no response: nobody knows what the leader has. The next fetch ends the session, and asks for another."""
        self._epoch = INITIAL_EPOCH


def _by_topic(items: Iterable[tuple[Key, T]]) -> list[tuple[UUID, list[T]]]:
    by_topic: dict[UUID, list[T]] = {}
    for (topic_id, _), item in items:
        by_topic.setdefault(topic_id, []).append(item)
    return list(by_topic.items())
