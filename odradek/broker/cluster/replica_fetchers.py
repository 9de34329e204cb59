"""The fetchers of a broker, one for each leader that it follows (Kafka: ReplicaFetcherManager).

A partition is with the fetcher of its leader, at the epoch of that leader. A fetcher begins with the first partition and ends
with the last. A leader that has come back under another address has another fetcher.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random

from odradek.broker.logging import log as broker_log
from odradek.broker.quorum.leader_discovery import Address
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replica_fetcher import FetcherConfig, ReplicaFetcher
from odradek.client.config import ClientConfig
from odradek.client.node_client import Connect, NodeClient
from odradek.timing.timer import Timer

# A response takes no more than ``replica.fetch.response.max.bytes``, and a batch that is larger than that.
_LARGEST_RESPONSE_BYTES = 1 << 30


class _Running:
    """A fetcher, what it is connected to, and its task."""

    __slots__ = ("address", "fetcher", "task")

    def __init__(self, address: Address, fetcher: ReplicaFetcher, task: asyncio.Task[None]) -> None:
        self.address = address
        self.fetcher = fetcher
        self.task = task


class ReplicaFetchers:
    """Loop thread only."""

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
    ) -> None:
        """``address_of`` tells where brokers reach a broker, None where it is not alive; ``replica.socket.timeout.ms``."""
        self._connect = connect
        self._timer = timer
        self._random = random
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._address_of = address_of
        self._config = config
        self._request_timeout_ms = request_timeout_ms
        self._running: dict[int, _Running] = {}
        # Of fetchers that are closed.
        self._ended: set[asyncio.Task[None]] = set()

    @property
    def leaders(self) -> dict[int, list[Partition]]:
        """What is fetched, by leader."""
        return {leader_id: running.fetcher.followed for leader_id, running in self._running.items()}

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Fetch each from the leader that it follows now. Those whose leader is not alive wait: the metadata will tell."""
        by_leader: dict[int, list[Partition]] = {}
        for partition in partitions:
            if partition.follower is not None:
                by_leader.setdefault(partition.leader_id, []).append(partition)
        moved = {id(partition) for followed in by_leader.values() for partition in followed}
        for leader_id, running in list(self._running.items()):
            if self._address_of(leader_id) != running.address:
                # All that it fetched is fetched by another one, or waits.
                waiting = [each for each in running.fetcher.followed if id(each) not in moved]
                by_leader.setdefault(leader_id, []).extend(waiting)
                self._end(leader_id)
            else:
                running.fetcher.leave([each for each in running.fetcher.followed if id(each) in moved])
        for leader_id, followed in by_leader.items():
            found = self._fetcher_of(leader_id)
            if found is not None:
                found.follow(followed)
        self._end_idle()

    def leave(self, partitions: Iterable[Partition]) -> None:
        """Fetch these no more: this broker leads them now, or has no replica any more."""
        left = list(partitions)
        for running in self._running.values():
            running.fetcher.leave(left)
        self._end_idle()

    async def close(self) -> None:
        """Fetch nothing any more."""
        self.end()
        for task in list(self._ended):
            with suppress(asyncio.CancelledError, Exception):
                await task

    def end(self) -> None:
        """The same, without waiting for what is under way."""
        for leader_id in list(self._running):
            self._end(leader_id)

    def _fetcher_of(self, leader_id: int) -> ReplicaFetcher | None:
        running = self._running.get(leader_id)
        if running is not None:
            return running.fetcher
        address = self._address_of(leader_id)
        if address is None:
            return None
        config = ClientConfig(
            client_id=f"broker-{self._node_id}-fetcher",
            request_timeout_ms=self._request_timeout_ms,
            max_response_bytes=_LARGEST_RESPONSE_BYTES,
        )
        client = NodeClient(self._connect(address), self._timer, self._random, config)
        fetcher = ReplicaFetcher(client, self._timer, self._node_id, self._broker_epoch, self._config)
        task = asyncio.get_running_loop().create_task(fetcher.run())
        task.add_done_callback(_tell_failure)
        self._running[leader_id] = _Running(address, fetcher, task)
        return fetcher

    def _end_idle(self) -> None:
        for leader_id in [leader_id for leader_id, running in self._running.items() if not running.fetcher.followed]:
            self._end(leader_id)

    def _end(self, leader_id: int) -> None:
        running = self._running.pop(leader_id)
        running.fetcher.close()
        self._ended.add(running.task)
        running.task.add_done_callback(self._ended.discard)


def _tell_failure(task: asyncio.Task[None]) -> None:
    """A fetcher ends when it is closed, and otherwise by a fault of ours."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        broker_log.error("a fetcher has failed", error)
