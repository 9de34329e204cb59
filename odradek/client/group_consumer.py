"""A consumer in a group: joins it, fetches its partitions, commits what the caller has done, and leaves.

    while ...:
        await consumer.keep_up()            joins, and joins again after each rebalance
        fetched = await consumer.fetcher.next(...)
        consumer.done[fetched.partition] = fetched.next_offset
    await consumer.close()

Offsets are committed every COMMIT_INTERVAL_MS, before a rebalance, and at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from odradek.client.api import ClientError, RequestRefused
from odradek.client.cluster_client import ClusterClient
from odradek.client.fetcher import Fetcher
from odradek.client.group_member import HEARTBEAT_INTERVAL_MS, GroupMember
from odradek.client.known_cluster import Partition

COMMIT_INTERVAL_MS: Final = 5_000
# The longest wait for records: after it a caller notices a rebalance.
NOTICE_MS: Final = 250


class GroupConsumer:
    """A consumer of ``topics``. ``begin_at`` gives the positions of partitions without a committed offset. Loop thread only."""

    def __init__(
        self,
        cluster: ClusterClient,
        fetcher: Fetcher,
        member: GroupMember,
        begin_at: Callable[[Iterable[Partition]], Awaitable[dict[Partition, int]]],
    ) -> None:
        self.fetcher = fetcher
        # The offset after the last record that the caller is done with.
        self.done: dict[Partition, int] = {}
        self._cluster = cluster
        self._member = member
        self._begin_at = begin_at
        self._must_join = True
        self._committed: dict[Partition, int] = {}
        self._next_commit_ms = 0.0
        self._heartbeats: asyncio.Task[None] | None = None

    async def keep_up(self) -> bool:
        """Join if the group is rebalancing, and commit when it is time. Return whether the partitions are new.

        Raises ClientError.
        """
        if self._heartbeats is not None and self._heartbeats.done():
            # It ends with an error only.
            self._heartbeats.result()
        now_ms = self._cluster.timer.clock.monotonic_ms()
        if not self._must_join:
            if now_ms >= self._next_commit_ms:
                self._next_commit_ms = now_ms + COMMIT_INTERVAL_MS
                await self._commit()
            return False
        await self._commit()
        self.fetcher.assign({})
        assigned = await self._member.join()
        self._must_join = False
        committed = await self._member.committed(assigned)
        without = [partition for partition in assigned if partition not in committed]
        positions = {**committed, **(await self._begin_at(without) if without else {})}
        self.done, self._committed = dict(committed), dict(committed)
        self.fetcher.assign(positions)
        self._next_commit_ms = now_ms + COMMIT_INTERVAL_MS
        if self._heartbeats is None:
            self._heartbeats = asyncio.get_running_loop().create_task(self._beat())
        return True

    async def close(self) -> None:
        """Commit, and leave the group. Raises ClientError."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            # Not awaited itself, so that a cancelled close does not take its own end for that of the task.
            [outcome] = await asyncio.gather(self._heartbeats, return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(outcome, ClientError):
                raise outcome
        await self._commit()
        await self._member.leave()

    async def _commit(self) -> None:
        new = {partition: offset for partition, offset in self.done.items() if self._committed.get(partition) != offset}
        try:
            await self._member.commit(new)
        except RequestRefused:
            # The group has rebalanced without this member: others read these records again.
            self._must_join = True
        else:
            self._committed.update(new)

    async def _beat(self) -> None:
        while True:
            await self._cluster.sleep(HEARTBEAT_INTERVAL_MS)
            if not self._must_join and not await self._member.heartbeat():
                self._must_join = True
