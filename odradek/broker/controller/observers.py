"""How far the observers of a quorum's leader are, as DescribeQuorum tells it (KIP-836). Kafka's class is LeaderState."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

# One that has not fetched for so long is forgotten, as by Kafka.
_SESSION_MS: Final = 300_000

ObserverKey = tuple[int, UUID | None]


@dataclass(slots=True)
class Observer:
    """Where an observer's log ends, and two times, -1 where there was none: of the last fetch, and of being caught up."""

    log_end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    # The leader's log end offset at the last fetch. A fetch from that offset shows that the observer was caught up then.
    leader_end_offset: int = -1


class Observers:
    """By node and the id of its directory. Times are those of the wall clock."""

    def __init__(self) -> None:
        self._known: dict[ObserverKey, Observer] = {}

    def fetched(self, key: ObserverKey, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """An observer, which has all in front of ``offset``, asks for more."""
        observer = self._known.setdefault(key, Observer())
        if offset >= leader_end_offset:
            observer.last_caught_up_ms = max(observer.last_caught_up_ms, now_ms)
        elif 0 < observer.leader_end_offset <= offset:
            observer.last_caught_up_ms = max(observer.last_caught_up_ms, observer.last_fetch_ms)
        observer.leader_end_offset = leader_end_offset
        observer.last_fetch_ms = max(observer.last_fetch_ms, now_ms)
        observer.log_end_offset = offset

    def known(self, now_ms: int) -> Iterator[tuple[ObserverKey, Observer]]:
        """The observers that have fetched lately."""
        silent = [key for key, observer in self._known.items() if now_ms - observer.last_fetch_ms >= _SESSION_MS]
        for key in silent:
            del self._known[key]
        yield from sorted(self._known.items(), key=lambda each: each[0][0])
