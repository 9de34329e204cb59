"""A broker for transactions: the real one, but for its listeners, and for clock, disk and event loop, which are simulated.

It is started, stopped, killed and started again on the same disk, each time as another ``Server``.

Left out: what a broker does now and then by the clock; its logs are flushed and compacted when they are told to.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.broker.start.server import Broker
from odradek.broker.start.shared_server import SharedServer
from odradek.broker.start.storage_start import Joined, OwnCluster, Replicas, lead_partitions, lock_directories, open_logs
from odradek.common.config import BrokerConfig, load
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.states import ShardState
from odradek.timing.background import InlineBackground
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from odradek.broker.replica.partition import Partition
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.protocol.api_keys import ApiKey
    from odradek.timing.clock import VirtualClock
    from tests.campaigns.simulation.transactions.disk import SimulatedDisk
    from tests.campaigns.simulation.transactions.plan import Plan

COORDINATORS_TOPICS = (TRANSACTION_STATE_TOPIC, CONSUMER_OFFSETS_TOPIC)


@cache
def _config(transaction_shards: int, group_shards: int, abort_interval_ms: int, expiration_ms: int) -> BrokerConfig:
    return load(
        overrides={
            "log.dirs": "/data",
            "transaction.two.phase.commit.enable": "true",
            "log.cleaner.enable": "false",
            "log.cleaner.min.cleanable.ratio": "0.01",
            "log.cleaner.delete.retention.ms": "300",
            "transaction.state.log.num.partitions": str(transaction_shards),
            "offsets.topic.num.partitions": str(group_shards),
            "group.min.session.timeout.ms": "100",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(abort_interval_ms),
            "transactional.id.expiration.ms": str(expiration_ms),
            "transaction.remove.expired.transaction.cleanup.interval.ms": str(expiration_ms // 3),
        }
    )


class _Housekeeping:
    """Deleted directories stay."""

    def remove_deleted_after(self, delay_ms: float) -> None:
        """Not at all."""


class Loop:
    """The event loop: ``turn`` runs what was to be called soon."""

    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()

    def turn(self) -> None:
        """What is called soon from now on is for the next turn."""
        for _ in range(len(self.soon)):
            self.soon.popleft()()


class Server(Broker):
    """One process of the broker, from its start to its end, without listeners: requests come by ``ask``."""

    def __init__(
        self,
        plan: Plan,
        clock: VirtualClock,
        disk: SimulatedDisk,
        random: Random,
        epochs: dict[tuple[str, int], int],
        on_append: Callable[[Partition], None],
    ) -> None:
        """Open the logs on the disk. ``epochs`` has the current leader epochs of partitions, and is kept up to date.

        ``on_append`` is called with the partition of each append.
        """
        config = _config(plan.transaction_shards, plan.group_shards, plan.abort_interval_ms, plan.expiration_ms)
        self.loop = Loop()
        soon = self.loop.soon.append
        shared = SharedServer(config, clock=clock, background=InlineBackground(), file_system=disk, random=random, call_soon=soon)
        replicas = Replicas(shared.timer)
        replicas.wake_fetches = on_append
        locked = lock_directories(shared, replicas)
        cluster = OwnCluster(shared, locked, {})
        open_logs(shared, locked.log_manager, cluster.metadata)
        joined = Joined(replicas, locked, cluster, {})
        super().__init__(shared, joined, lead_partitions(shared, joined, cast("Any", _Housekeeping())))
        self._plan = plan
        self._disk = disk
        self._epochs = epochs
        for partition in self.partitions:
            self._settle(partition)
        for topic in COORDINATORS_TOPICS:
            self.controller.ensure_internal_topic(topic)
            for partition in self.partitions.of_topic(topic).values():
                self._settle(partition)

    def create(self, topic: str, partition_count: int) -> None:
        """A topic for producers."""
        self.controller.create_topics([NewTopic(name=topic, partition_count=partition_count)])
        for partition in self.partitions.of_topic(topic).values():
            self._settle(partition)

    def _settle(self, partition: Partition) -> None:
        key = partition.topic, partition.index
        partition.leader_epoch = self._epochs[key] = max(self._epochs.get(key, 0), partition.leader_epoch)
        if partition.log is not None:
            partition.log.config = replace(partition.log.config, segment_bytes=self._plan.segment_bytes)

    def flush(self) -> None:
        """Sync what is due, and write down what is synced."""
        now_ms = self.clock.now_ms()
        for log, task in self.log_manager.flusher.tasks(now_ms):
            task.run()
            self.log_manager.flusher.finished(log, task, None, now_ms)
        self.log_manager.checkpoints.write()

    def compact(self) -> int:
        """Compact what is worth it; how many logs were."""
        cleaner = LogCleaner(self.config, self.log_manager, self.timer, self.background)
        cleaner.clean_due()
        return cleaner.cleans

    def close(self) -> None:
        """In good order; as ``stop`` does."""
        self.transactions.close()
        self.groups.close()
        self.timer.close()
        self.controller.close()
        self.log_manager.shutdown(now_ms=self.clock.now_ms())

    def vanish(self) -> None:
        """The process is gone: nobody is told anything, nothing is written."""
        self.timer.close()
        self.loop.soon.clear()
        self.log_manager.release()
        self._disk._locks.clear()

    def ask(self, api_key: ApiKey, version: int, request: Any, answered: Callable[[Any], None]) -> bool:
        """One request, and what to do with its response, now or later. Returns whether its effects are there."""
        context = RequestContext(api_key, version, 0, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
        outcome = self.dispatcher.call(context, request)
        if isinstance(outcome, Reply):
            outcome.when_done(answered)
            return outcome.done or outcome.is_decided
        answered(outcome)
        return True

    def runtimes(self) -> Iterator[tuple[str, CoordinatorRuntime[Any]]]:
        """Those that are made, with their topics."""
        if self.transactions.has_runtime:
            yield TRANSACTION_STATE_TOPIC, self.transactions.runtime
        if self.groups.has_runtime:
            yield CONSUMER_OFFSETS_TOPIC, self.groups.runtime

    def active(self) -> Iterator[tuple[str, HostedShard[Any]]]:
        """The shards that are loaded, with their topics."""
        for topic, runtime in self.runtimes():
            for hosted in runtime._hosted.values():
                if hosted.state is ShardState.ACTIVE:
                    yield topic, hosted

    def load(self, topic: str, index: int, *, at_higher_epoch: bool) -> None:
        """Lead a coordinator's partition, from now on or at a higher epoch than before."""
        partition = self.partitions.require(topic, index)
        if at_higher_epoch:
            self._epochs[topic, index] += 1
            self._settle(partition)
        for name, runtime in self.runtimes():
            if name == topic:
                runtime.start_loading(index, partition.leader_epoch)
