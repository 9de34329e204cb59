"""The internal topics of streams groups, created when a heartbeat finds them missing (KIP-1071).

As in Kafka's AutoTopicCreationManager, a topic is in flight until the controller has answered, and is not created twice. An error
is kept for as long as the caller says. Meanwhile the topic is not asked for again, and members are told of the error.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.common.logging import log
from odradek.controller.metadata.auto_topic_creation import creation_context
from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.common.context import RequestContext
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.controller.metadata.decisions import TopicResult
    from odradek.coordinator.group.streams.configured_topology import ConfiguredInternalTopic
    from odradek.timing.timer import Timer


class StreamsInternalTopics:
    """Creates the internal topics of one broker's streams groups. Loop thread only."""

    __slots__ = ("_call_soon", "_controller", "_errors", "_in_flight", "_timer")

    def __init__(self, controller: ClusterMetadata, timer: Timer, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._controller = controller
        self._timer = timer
        self._call_soon = call_soon
        self._in_flight: set[str] = set()
        # The error of each topic, and the time until which it counts.
        self._errors: dict[str, tuple[str, float]] = {}

    def create(self, topics: Iterable[ConfiguredInternalTopic], context: RequestContext, error_lifetime_ms: int) -> None:
        """Create topics in the next turn of the loop, for the client that sent the heartbeat ``context``."""
        self._forget_old_errors()
        wanted = [topic for topic in topics if topic.name not in self._errors and topic.name not in self._in_flight]
        if wanted:
            self._in_flight.update(topic.name for topic in wanted)
            self._call_soon(partial(self._create, wanted, context, error_lifetime_ms))

    def errors(self, topics: Iterable[ConfiguredInternalTopic]) -> dict[str, str]:
        """Return the errors of those of the topics that could not be created."""
        self._forget_old_errors()
        return {topic.name: self._errors[topic.name][0] for topic in topics if topic.name in self._errors}

    def _forget_old_errors(self) -> None:
        now_ms = self._timer.clock.monotonic_ms()
        for name in [name for name, (_, until_ms) in self._errors.items() if until_ms <= now_ms]:
            del self._errors[name]

    def _create(self, topics: Sequence[ConfiguredInternalTopic], context: RequestContext, error_lifetime_ms: int) -> None:
        new = [
            NewTopic(topic.name, topic.partition_count, topic.replication_factor or -1, (), tuple(topic.configs))
            for topic in topics
        ]
        reply = self._controller.auto_create(new, creation_context(context))
        reply.when_done(partial(self._created, [topic.name for topic in topics], error_lifetime_ms))

    def _created(self, names: Sequence[str], error_lifetime_ms: int, outcome: list[TopicResult] | KafkaError) -> None:
        self._in_flight.difference_update(names)
        if isinstance(outcome, KafkaError):
            errors = dict.fromkeys(names, outcome)
        else:
            errors = {result.name: result.error for result in outcome if result.error is not None}
        until_ms = self._timer.clock.monotonic_ms() + error_lifetime_ms
        for name, error in errors.items():
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                continue
            self._errors[name] = (error.reason or error.code.name, until_ms)
            log.warn("cannot create an internal topic of a streams group", topic=name, error=error.code.name, reason=error.reason)
