"""The broker's fetchers: ``num.replica.fetchers`` for each leader that it follows (Kafka: ReplicaFetcherManager).

A partition always belongs to the same fetcher of its leader. A fetcher begins with its first partition and ends with its last. A
leader that returns under another address gets new fetchers.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple
from zlib import crc32

from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replica_fetcher import FetcherConfig, ReplicaFetcher
from odradek.broker.replica.replication_quota import ReplicationQuota
from odradek.client.node_client import ClientConfig, Connect, NodeClient
from odradek.common.logging import log as broker_log
from odradek.controller.quorum.leader_discovery import Address
from odradek.timing.timer import Timer

# A leader's id, and the number of one of its fetchers.
Place = tuple[int, int]

# Responses are limited to ``replica.fetch.response.max.bytes``, unless a single batch is larger.
_LARGEST_RESPONSE_BYTES = 1 << 30


class _Running(NamedTuple):
    """A fetcher, the address it is connected to, and its task."""

    address: Address
    fetcher: ReplicaFetcher
    task: asyncio.Task[None]


class ReplicaFetchers:
    """The fetchers of one broker. Loop thread only."""

    def __init__(
        self,
        connect: Callable[[Address], Connect],
        timer: Timer,
        random: Random,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        address_of: Callable[[int], Address | None],
        config: FetcherConfig,
        request_timeout_ms: int,
        count: Callable[[], int] = lambda: 1,
        quota: ReplicationQuota | None = None,
    ) -> None:
        """``address_of`` returns where brokers reach a broker, None if it is not alive.

        ``request_timeout_ms`` is ``replica.socket.timeout.ms``, and ``count`` returns ``num.replica.fetchers``.
        """
        self._connect = connect
        self._timer = timer
        self._random = random
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._address_of = address_of
        self._config = config
        self._request_timeout_ms = request_timeout_ms
        self._count = count
        self._quota = quota
        self._running: dict[Place, _Running] = {}
        # The tasks of closed fetchers.
        self._ended: set[asyncio.Task[None]] = set()

    @property
    def leaders(self) -> dict[int, list[Partition]]:
        """The fetched partitions by leader."""
        found: dict[int, list[Partition]] = {}
        for (leader_id, _), running in self._running.items():
            found.setdefault(leader_id, []).extend(running.fetcher.followed)
        return found

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Fetch each partition from its current leader. If the leader is not alive, wait until the metadata change."""
        count = self._count()
        by_place: dict[Place, list[Partition]] = {}
        for partition in partitions:
            if partition.follower is not None:
                by_place.setdefault(_place(partition, count), []).append(partition)
        moved = {id(partition) for followed in by_place.values() for partition in followed}
        for place, running in list(self._running.items()):
            if self._address_of(place[0]) != running.address:
                # Its partitions get a new fetcher, or wait.
                waiting = [each for each in running.fetcher.followed if id(each) not in moved]
                by_place.setdefault(place, []).extend(waiting)
                self._end(place)
            else:
                running.fetcher.leave([each for each in running.fetcher.followed if id(each) in moved])
        for place, followed in by_place.items():
            found = self._fetcher_of(place)
            if found is not None:
                found.follow(followed)
        self._end_idle()

    def resize(self) -> None:
        """Apply a changed ``num.replica.fetchers``."""
        count = self._count()
        displaced = [
            partition
            for place, running in self._running.items()
            for partition in running.fetcher.followed
            if _place(partition, count) != place
        ]
        if displaced:
            self.follow(displaced)

    def leave(self, partitions: Iterable[Partition]) -> None:
        """Stop fetching these partitions: this broker leads them now, or has no replica any more."""
        left = list(partitions)
        for running in self._running.values():
            running.fetcher.leave(left)
        self._end_idle()

    async def close(self) -> None:
        """Stop all fetchers, and wait for their tasks."""
        self.end()
        await asyncio.gather(*self._ended, return_exceptions=True)

    def end(self) -> None:
        """Stop all fetchers without waiting for their tasks."""
        for place in list(self._running):
            self._end(place)

    def _fetcher_of(self, place: Place) -> ReplicaFetcher | None:
        running = self._running.get(place)
        if running is not None:
            return running.fetcher
        address = self._address_of(place[0])
        if address is None:
            return None
        config = ClientConfig(
            client_id=f"broker-{self._node_id}-fetcher",
            request_timeout_ms=self._request_timeout_ms,
            max_response_bytes=_LARGEST_RESPONSE_BYTES,
        )
        client = NodeClient(self._connect(address), self._timer, self._random, config)
        fetcher = ReplicaFetcher(client, self._timer, self._node_id, self._broker_epoch, self._config, self._quota)
        task = asyncio.get_running_loop().create_task(fetcher.run())
        task.add_done_callback(_tell_failure)
        self._running[place] = _Running(address, fetcher, task)
        return fetcher

    def _end_idle(self) -> None:
        for place in [place for place, running in self._running.items() if not running.fetcher.followed]:
            self._end(place)

    def _end(self, place: Place) -> None:
        running = self._running.pop(place)
        running.fetcher.close()
        self._ended.add(running.task)
        running.task.add_done_callback(self._ended.discard)


def _place(partition: Partition, count: int) -> Place:
    return partition.leader_id, (crc32(partition.topic.encode()) + partition.index) % count


def _tell_failure(task: asyncio.Task[None]) -> None:
    """Log an error that ended a fetcher. A fetcher that is closed ends without one."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        broker_log.error("a replica fetcher failed", error)
