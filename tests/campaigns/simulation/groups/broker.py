"""A broker whose groups are simulated: all of it is real, but for the time and the logs of its group coordinator.

Those logs fail, hold their high watermark back and lose their tail, as no disk of one broker does. The coordinator is started,
stopped, killed and started again; logs and clock go on without it. A request that comes while it is down has no answer.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any

from odradek.broker.coordination.streams_internal_topics import StreamsInternalTopics
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.decisions import NewPartitions, NewTopic
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.group.streams.groups import StreamsGroupServices
from odradek.coordinator.runtime.result import decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.states import ShardState
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.campaigns.simulation.groups.checks import GroupChecks
from tests.campaigns.simulation.groups.history import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random
    from uuid import UUID

    from odradek.broker.start.server import Broker
    from odradek.controller.cluster.controller import Controller
    from odradek.coordinator.group.config import GroupConfig
    from odradek.coordinator.group.consumer.groups import ConsumerGroupServices
    from odradek.coordinator.group.streams.groups import StreamsGroupConfig
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from odradek.protocol.api_keys import ApiKey
    from tests.campaigns.simulation.groups.logs import SimulatedLogs

MOST_PARTITIONS = 8
RETENTION_MS = 900_000
RETENTION_CHECK_INTERVAL_MS = 30_000
_CREATED_WITHIN_MS = 30


class Reports:
    """The broker's log, which nobody reads."""

    def info(self, event: str, **fields: object) -> None:
        """See ``GroupReports``."""

    def warn(self, event: str, **fields: object) -> None:
        """See ``GroupReports``."""


REPORTS = Reports()


def _open_core(topics: Mapping[str, int]) -> Broker:
    """A broker in memory, whose own time stands still, with these topics of so many partitions."""
    in_process = SocketlessBroker(clock=VirtualClock(), background="inline", seed=0)
    in_process.start_now()
    in_process.core.controller.create_topics([NewTopic(name=name, partition_count=count) for name, count in topics.items()])
    return in_process.core


class Topics:
    """``ids`` by name, ``names`` by id, of what there is now."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.ids: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {}
        self.look()

    def look(self) -> None:
        """Look at the topics again, as others have changed them."""
        topics = self._controller.image.topics
        self.ids = {name: topic.topic_id for name, topic in topics.items()}
        self.names = {topic_id: name for name, topic_id in self.ids.items()}

    def count(self, name: str) -> int:
        """The number of partitions; 0 for a topic that is not there."""
        topic = self._controller.image.topics.get(name)
        return 0 if topic is None else len(topic.partitions)

    def matching(self, pattern: str) -> list[str]:
        """The topics that a regular expression matches as a whole."""
        return [name for name in self.ids if re.fullmatch(pattern, name)]

    def create(self, name: str, count: int) -> None:
        """Make a topic."""
        self._controller.create_topics([NewTopic(name=name, partition_count=count)])
        self.look()

    def grow(self, name: str, rng: Random) -> None:
        """Give a topic more partitions."""
        count = self.count(name)
        if 0 < count < MOST_PARTITIONS:
            self._controller.create_partitions(
                [NewPartitions(name=name, partition_count=rng.randint(count + 1, MOST_PARTITIONS))]
            )

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics, and what groups have committed for them."""
        self._controller.delete_topics([self.ids[name] for name in names])
        self.look()


class ShardNotes:
    """What the simulation knows of one shard, from a load to the next unload."""

    def __init__(self, shard: GroupShard) -> None:
        self.shard = shard
        self.told = Told()
        self.checks = GroupChecks()
        self.has_failed = False


class SimulatedBroker:
    """``config`` may change while it runs; ``notes`` has the last shard of each partition that there was.

    ``consumer_services`` changes what consumer groups are given of the broker; ``streams_config`` is that of a streams group.
    """

    def __init__(
        self,
        clock: VirtualClock,
        logs: SimulatedLogs,
        topics: Mapping[str, int],
        config: GroupConfig,
        load_buffer_bytes: int,
        on_fault: Callable[[str, Exception], None],
        consumer_services: Callable[[ConsumerGroupServices], ConsumerGroupServices],
        streams_config: Callable[[str], StreamsGroupConfig],
    ) -> None:
        self.config = config
        self.notes: dict[int, ShardNotes] = {}
        self.timer: Timer | None = None
        self._clock = clock
        self._logs = logs
        self._load_buffer_bytes = load_buffer_bytes
        self._on_fault = on_fault
        self._ids = count(1)
        self._epochs = dict.fromkeys(range(logs.partition_count), 0)
        self._runtime: CoordinatorRuntime[GroupShard] | None = None
        self._consumer_services = consumer_services
        self._streams_config = streams_config
        self._core = _open_core(topics)
        self._groups = self._core.groups
        self.topics = Topics(self._core.controller)

    @property
    def is_up(self) -> bool:
        """Whether somebody answers."""
        return self._runtime is not None

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]:
        """Of a broker that is up."""
        if self._runtime is None:
            raise AssertionError("the broker is down")
        return self._runtime

    def start(self) -> None:
        """Load all there is."""
        self.timer = Timer(self._clock)
        self._runtime = self._groups._runtime = CoordinatorRuntime(
            "group",
            self._logs,
            self._make_shard,
            decode_group_record,
            self.timer,
            on_fault=self._on_fault,
            load_buffer_bytes=self._load_buffer_bytes,
        )
        self._groups._internal_topics = StreamsInternalTopics(self._core.controller, self.timer, self._create)
        for partition in self._epochs:
            self.load(partition)

    def _create(self, create: Callable[[], None]) -> None:
        """Have the controller create internal topics. A broker that is killed before has not asked it to."""

        def run() -> None:
            create()
            self.topics.look()

        assert self.timer is not None
        self.timer.call_after(_CREATED_WITHIN_MS, run)

    def kill(self) -> None:
        """It is gone: nobody is told anything, and the logs are all there is."""
        if self.timer is not None:
            self.timer.close()
        self.timer = self._runtime = self._groups._runtime = None
        self._logs.soon.clear()
        for partition in self._epochs:
            self._logs.on_high_watermark(partition, None)

    def load(self, partition: int) -> None:
        """Lead the partition, at a higher epoch than before."""
        self._epochs[partition] += 1
        self.runtime.start_loading(partition, self._epochs[partition])

    def unload(self, partition: int) -> None:
        """Lead the partition no longer."""
        self.runtime.unload(partition)

    def load_failed_ones(self) -> None:
        """Try again what could not be read."""
        for partition, state in self.runtime.states().items():
            if state is ShardState.FAILED:
                self.load(partition)

    def ask(self, api_key: ApiKey, version: int, client_id: str, request: Any, answered: Callable[[Any], None]) -> None:
        """One request, and what to do with its response, now or later."""
        context = RequestContext(api_key, version, 0, client_id, Session("PLAINTEXT", ("127.0.0.1", 1)))
        outcome = self._core.dispatcher.call(context, request)
        if isinstance(outcome, Reply):
            outcome.when_done(answered)
        else:
            answered(outcome)

    def active(self) -> list[HostedShard[GroupShard]]:
        """The shards that are loaded."""
        if self._runtime is None:
            return []
        return [hosted for hosted in self._runtime._hosted.values() if hosted.state is ShardState.ACTIVE]

    def active_shard(self, partition: int) -> HostedShard[GroupShard] | None:
        """The shard of one partition, where it is loaded."""
        hosted = None if self._runtime is None else self._runtime._hosted.get(partition)
        return hosted if hosted is not None and hosted.state is ShardState.ACTIVE else None

    def _make_shard(self, partition: int, context: ShardContext) -> GroupShard:
        shard = GroupShard(
            context,
            config=lambda: self.config,
            reports=REPORTS,
            new_id=lambda: str(next(self._ids)),
            offset_config=OffsetConfig(
                offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=RETENTION_CHECK_INTERVAL_MS
            ),
            consumer_services=lambda: self._consumer_services(self._groups._shards()._consumer_services()),
            streams_services=lambda: StreamsGroupServices(
                topics=self._groups._shards()._consumer_services().topics, config_of=self._streams_config
            ),
        )
        self.notes[partition] = ShardNotes(shard)
        return shard
