"""One run of a workload: a broker on a recording disk, and what was promised as it went on."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from odradek.common.logging import lines_to
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.timing.clock import VirtualClock
from odradek.timing.seeded_background import SeededBackground
from tests.campaigns.power_loss.clients import Talk, ask
from tests.campaigns.power_loss.disk import RecordingDisk
from tests.campaigns.power_loss.ledger import Ends, Ledger
from tests.campaigns.power_loss.node import DATA, Lines, Node

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
    from uuid import UUID

    from tests.campaigns.power_loss.ledger import PartitionKey, Promises
    from tests.campaigns.power_loss.node import Question

_CREATE = messages(ApiKey.CREATE_TOPICS)
_DELETE = messages(ApiKey.DELETE_TOPICS)
_ANYWHERE = _NEVER = 2**62
# How fast threads are, as the probability of a further step in a turn of the loop.
_PACES = (0.1, 0.4, 0.8)

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
        threads: str | None = None,
    ) -> None:
        """``threads`` is the seed of how long work is interleaved with the loop; without it, all is done within the call."""
        self.loop = loop
        self.disk = disk or RecordingDisk()
        self.clock = VirtualClock(now_ms) if now_ms else VirtualClock()
        self.ledger = Ledger()
        self.lines = Lines()
        self.steps: list[tuple[int, str]] = []
        self.flush_messages = flush_messages
        self.directories = directories
        self.topic_ids: dict[str, UUID] = {}
        # The ``flush.messages`` of each topic.
        self._flush_settings: dict[str, int] = {}
        # The clients under way.
        self.talks: list[Talk] = []
        self._threads = threads
        self._seed = seed
        self.node = self.new_node()
        self.values = 0

    def new_node(self) -> Node:
        """The next process."""
        self._seed += 1
        background = None
        if self._threads is not None:
            rng = Random(f"{self._threads}-{self._seed}")
            background = SeededBackground(rng, is_fine=True, step_chance=rng.choice(_PACES))
            self.disk.pause = background.pause
        with lines_to(self.lines.note):
            return Node(
                self.loop,
                self.disk,
                self.clock,
                flush_messages=self.flush_messages,
                seed=self._seed,
                directories=self.directories,
                background=background,
            )

    def go(self, steps: Sequence[Callable[[Run], None]]) -> None:
        """Start the broker, and take all steps."""
        with lines_to(self.lines.note):
            self.node.start()
            for step in steps:
                self.steps.append((len(self.disk.operations), step.__name__))
                step(self)
                self.node.turn()
            self.steps.append((len(self.disk.operations), "the end"))

    def restart(self) -> None:
        """Stop in good order, and start again."""
        self.node.stop()
        self._let_go()
        self.are_synced(self.ends_of(self.topic_ids))
        self._start_again()

    def be_killed(self) -> None:
        """The process ends, and another begins on what it left."""
        self.node.vanish()
        self._let_go()
        self._start_again()

    def _let_go(self) -> None:
        for talk in self.talks:
            talk.close()
        self.disk.let_go()

    def _start_again(self) -> None:
        self.node = self.new_node()
        self.node.start()
        self.node.load_coordinators()

    def begin(self, client: Coroutine[Question, Any, Any]) -> Talk:
        """Let a client begin, and go on while others do."""
        self.talks = [talk for talk in self.talks if not talk.is_over]
        talk = Talk(self.node, client)
        self.talks.append(talk)
        return talk

    def do(self, client: Coroutine[Question, Any, Any]) -> Any:
        """Wait for a client; returns what it returns. Raises Unanswered."""
        talk = self.begin(client)
        self.node.wait_until(lambda: talk.is_over, "a client")
        talk.ensure_good()
        return talk.result

    def wait_for_all(self) -> None:
        """Wait for all clients, and for the work in threads. Raises Unanswered."""
        self.node.wait_until(lambda: all(talk.is_over for talk in self.talks), "a client")
        for talk in self.talks:
            talk.ensure_good()
        self.node.settle()

    def note(self, fact: Callable[[Promises], None]) -> None:
        """Learn a fact, now."""
        self.ledger.note(len(self.disk.operations), fact)

    def new_value(self, size: int = 12) -> bytes:
        """One that no other record has."""
        self.values += 1
        return f"value-{self.values:05d}-".encode().ljust(size, b"x")

    def learn_topics(self) -> None:
        """Take the topics from the broker: one that was started on what another left."""
        topics = self.node.broker.controller.image.topics
        self.topic_ids = {name: topic.topic_id for name, topic in topics.items()}

    def key(self, partition: tuple[str, int]) -> PartitionKey:
        """Its topic id, as CreateTopics was answered with it, and index."""
        return self.topic_ids[partition[0]], partition[1]

    def acknowledge(self, name: tuple[str, int], end: int) -> None:
        """The records below ``end`` were acknowledged, or shown to a consumer.

        By the topic's ``flush.messages`` all of them are on disk but the last ones.
        """
        key = self.key(name)
        synced = max(end - self._flush_settings.get(name[0], _NEVER) + 1, 0)

        def tell(promises: Promises) -> None:
            known = promises.ends.get(key, Ends(0, 0))
            promises.ends[key] = Ends(max(end, known.acknowledged), max(synced, known.synced))

        self.note(tell)

    def ends_of(self, topics: Container[str]) -> dict[PartitionKey, int]:
        """Up to where records of ``topics`` are acknowledged by now."""
        ids = {topic_id for topic, topic_id in self.topic_ids.items() if topic in topics}
        return {key: ends.acknowledged for key, ends in self.ledger.promises.ends.items() if key[0] in ids}

    def are_synced(self, synced: Mapping[PartitionKey, int]) -> None:
        """The records below these offsets survive a loss of power from now on."""

        def tell(promises: Promises) -> None:
            for key, end in synced.items():
                known = promises.ends[key]
                promises.ends[key] = known._replace(synced=max(end, known.synced))

        self.note(tell)

    def may_start_anywhere(self, name: tuple[str, int]) -> None:
        """From now on, retention may have its way with a partition."""
        key = self.key(name)

        def tell(promises: Promises) -> None:
            promises.starts_asked[key] = _ANYWHERE

        self.note(tell)

    async def create_topic(self, topic: str, partition_count: int, **configs: str) -> UUID | None:
        """Configs with underscores for dots. None where it could not be. To be awaited by a client."""
        asked = [_CREATE.CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        known = _CREATE.CreatableTopic(name=topic, num_partitions=partition_count, replication_factor=1, configs=asked)
        response = await ask(ApiKey.CREATE_TOPICS, 7, _CREATE.CreateTopicsRequest(topics=[known], timeout_ms=1_000))
        (result,) = response.topics
        if result.error_code != ErrorCode.NONE:
            return None
        topic_id: UUID = result.topic_id
        self.topic_ids[topic] = topic_id
        self._flush_settings[topic] = int(configs.get("flush_messages", self.flush_messages or _NEVER))
        self.node.tune()

        def tell(promises: Promises) -> None:
            promises.topics[topic_id] = topic, partition_count

        self.note(tell)
        return topic_id

    async def delete_topic(self, topic: str) -> None:
        """And all it has. To be awaited by a client."""
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is None:
            return

        def end(promises: Promises) -> None:
            promises.ending.add(topic_id)
            promises.passing.add(topic)

        self.note(end)
        asked = _DELETE.DeleteTopicsRequest(topics=[_DELETE.DeleteTopicState(topic_id=topic_id)], timeout_ms=1_000)
        response = await ask(ApiKey.DELETE_TOPICS, 6, asked)
        if response.responses[0].error_code != ErrorCode.NONE:
            self.topic_ids.setdefault(topic, topic_id)
            return

        def tell(promises: Promises) -> None:
            promises.deleted.add(topic_id)
            promises.topics.pop(topic_id, None)

        self.note(tell)
