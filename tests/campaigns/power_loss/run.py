"""One run of a workload: a broker on a recording disk, and what was promised as it went on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.logging import lines_to
from odradek.broker.metadata.decisions import NewTopic
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import VirtualClock
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.ledger import Ends, Ledger
from tests.campaigns.power_loss.node import DATA, Lines, Node

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from odradek.protocol.api_keys import ApiKey
    from tests.campaigns.power_loss.ledger import PartitionKey, Promises

Step = "Callable[[Run], None]"


class Run:
    """``node`` is the broker that runs now. ``steps`` has of each step its name and how many operations came before it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        flush_messages: int | None,
        disk: RecordingDisk | None = None,
        now_ms: int = 0,
        seed: int = 0,
        directories: tuple[str, ...] = (DATA,),
    ) -> None:
        self.loop = loop
        self.disk = disk or RecordingDisk()
        self.clock = VirtualClock(now_ms) if now_ms else VirtualClock()
        self.ledger = Ledger()
        self.lines = Lines()
        self.steps: list[tuple[int, str]] = []
        self.flush_messages = flush_messages
        self.directories = directories
        self._seed = seed
        self.node = self.new_node()
        self.values = 0

    def new_node(self) -> Node:
        """The next process."""
        self._seed += 1
        with lines_to(self.lines.note):
            return Node(
                self.loop,
                self.disk,
                self.clock,
                flush_messages=self.flush_messages,
                seed=self._seed,
                directories=self.directories,
            )

    def go(self, steps: Sequence[Callable[[Run], None]]) -> None:
        """Start the broker, and take all steps."""
        with lines_to(self.lines.note):
            self.node.start()
            self.acknowledge_all()
            for step in steps:
                self.steps.append((len(self.disk.operations), step.__name__))
                step(self)
                self.node.turn()
            self.steps.append((len(self.disk.operations), "the end"))

    def restart(self) -> None:
        """Stop in good order, and start again."""
        self.node.stop()
        if all(partition.log is not None and not partition.log.has_lost_sync for partition in self.node.partitions()):
            self.acknowledge_all(is_synced=True)
        self._start_again()

    def be_killed(self) -> None:
        """The process ends, and another begins on what it left."""
        self.node.vanish()
        self.disk.let_go()
        self._start_again()

    def _start_again(self) -> None:
        self.node = self.new_node()
        self.node.start()
        self.node.load_coordinators()
        self.acknowledge_all()

    def ask(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """See ``Node.ask``."""
        return self.node.ask(api_key, version, request)

    def note(self, fact: Callable[[Promises], None]) -> None:
        """Learn a fact, now."""
        self.ledger.note(len(self.disk.operations), fact)

    def new_value(self, size: int = 12) -> bytes:
        """One that no other record has."""
        self.values += 1
        return f"value-{self.values:05d}-".encode().ljust(size, b"x")

    def key(self, partition: tuple[str, int]) -> PartitionKey:
        """Its topic id and index."""
        return self.node.broker.partitions.require(*partition).topic_id, partition[1]

    def acknowledge(self, name: tuple[str, int], *, is_synced: bool = False) -> None:
        """All that a partition has was acknowledged; by its flush settings it may be ``is_synced`` by that."""
        partition = self.node.broker.partitions.get(*name)
        if partition is None or partition.log is None:
            return
        log = partition.log
        end = partition.high_watermark
        most_unsynced = log.config.flush_messages - 1
        synced = end if is_synced else min(max(end - most_unsynced, log.recovery_point, 0), end)
        key = partition.topic_id, partition.index
        start = log.log_start_offset

        def tell(promises: Promises) -> None:
            known = promises.ends.get(key, Ends(0, 0, 0))
            promises.ends[key] = Ends(end, max(synced, known.synced), start)

        self.note(tell)

    def may_start_anywhere(self, name: tuple[str, int]) -> None:
        """From now on, retention may have its way with a partition."""
        partition = self.node.broker.partitions.require(*name)
        key, end = (partition.topic_id, partition.index), partition.high_watermark

        def tell(promises: Promises) -> None:
            promises.starts_asked[key] = max(promises.starts_asked.get(key, 0), end)

        self.note(tell)

    def acknowledge_all(self, *, is_synced: bool = False) -> None:
        """The same for all partitions: nothing is under way."""
        for partition in self.node.partitions():
            self.acknowledge((partition.topic, partition.index), is_synced=is_synced)

    def create_topic(self, topic: str, partition_count: int, **configs: str) -> UUID | None:
        """Configs with underscores for dots. None where it could not be."""
        asked = [(name.replace("_", "."), value) for name, value in configs.items()]
        outcome = self.node.call(
            self.node.broker.controller.create_topics,
            [NewTopic(name=topic, partition_count=partition_count, configs=asked)],
        ).response
        if isinstance(outcome, KafkaError):
            return None
        (result,) = outcome
        if result.error is not None or result.topic_id is None:
            return None
        topic_id = result.topic_id
        self.node.tune()

        def tell(promises: Promises) -> None:
            promises.topics[topic_id] = topic, partition_count

        self.note(tell)
        return topic_id

    def delete_topic(self, topic: str) -> None:
        """And all it has."""
        known = self.node.broker.controller.image.topics.get(topic)
        if known is None:
            return
        topic_id = known.topic_id

        def end(promises: Promises) -> None:
            promises.ending.add(topic_id)
            promises.passing.add(topic)

        self.note(end)
        if isinstance(self.node.call(self.node.broker.controller.delete_topics, [topic_id]).response, KafkaError):
            return

        def tell(promises: Promises) -> None:
            promises.deleted.add(topic_id)
            promises.topics.pop(topic_id, None)

        self.note(tell)
