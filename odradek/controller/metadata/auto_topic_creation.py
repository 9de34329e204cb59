"""Topics that the broker creates itself: those that clients ask the metadata of, and internal topics.

Clients wait only for the first few. As in Kafka's AutoTopicCreationManager, a name is in flight until its topic exists, and is
not created twice. A client that does not find its topic in the answer asks again. Here the answer has topics that take only a few
milliseconds.

A topic counts as created by the first client that asked for it, and against its mutation quota (KIP-599). A topic above the quota
is not created. The client gets the usual error for a missing topic, and is not throttled.

Internal topics have the configs that Kafka's coordinators require.
"""

from collections.abc import Callable, Generator, Iterable
from itertools import islice, takewhile
from typing import Any, Final

from odradek.common.config import BrokerConfig
from odradek.common.context import RequestContext
from odradek.common.logging import LineLimit, log
from odradek.controller.metadata.cluster_metadata import ClusterMetadata
from odradek.controller.metadata.decisions import MAX_PARTITIONS_PER_REQUEST, NewTopic, Take, TopicResult
from odradek.controller.metadata.topic import (
    CONSUMER_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
    topic_name_error,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST, Slices

_MIN_ISR: Final = "min.insync.replicas"


def internal_topic(name: str, config: BrokerConfig) -> NewTopic:
    """Return the topic for ``name``, one of INTERNAL_TOPICS, on one broker: one replica, whatever is configured."""
    if name not in INTERNAL_TOPICS:
        raise ValueError(f"{name} is not an internal topic")
    if name == CONSUMER_OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config["offsets.topic.num.partitions"],
            replication_factor=1,
            configs=(
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(config["offsets.topic.segment.bytes"])),
                ("compression.type", "producer"),
            ),
        )
    if name == SHARE_GROUP_STATE_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config["share.coordinator.state.topic.num.partitions"],
            replication_factor=1,
            configs=(
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config["share.coordinator.state.topic.segment.bytes"])),
                (_MIN_ISR, "1"),
                ("retention.ms", "-1"),
            ),
        )
    return NewTopic(
        name=name,
        partition_count=config["transaction.state.log.num.partitions"],
        replication_factor=1,
        configs=(
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "uncompressed"),
            ("cleanup.policy", "compact"),
            (_MIN_ISR, "1"),
            ("segment.bytes", str(config["transaction.state.log.segment.bytes"])),
        ),
    )


def replicated_internal_topic(name: str, config: BrokerConfig) -> NewTopic:
    """Return the internal topic for a cluster of several brokers."""
    topic = internal_topic(name, config)
    if name == CONSUMER_OFFSETS_TOPIC:
        return topic._replace(replication_factor=config["offsets.topic.replication.factor"])
    if name == SHARE_GROUP_STATE_TOPIC:
        factor = config["share.coordinator.state.topic.replication.factor"]
        in_sync = config["share.coordinator.state.topic.min.isr"]
    else:
        factor = config["transaction.state.log.replication.factor"]
        in_sync = config["transaction.state.log.min.isr"]
    configs = [(key, str(in_sync) if key == _MIN_ISR else value) for key, value in topic.configs]
    return topic._replace(replication_factor=factor, configs=configs)


# The number of partitions in one commit of the controller: some milliseconds.
_BATCH_PARTITIONS: Final = 4
# The version of the CreateTopics request that stands for a client's other request.
_CREATE_VERSION: Final = 7


def creation_context(asked: RequestContext) -> RequestContext:
    """Return the context of the CreateTopics request that stands for a client's other request."""
    return RequestContext(ApiKey.CREATE_TOPICS, _CREATE_VERSION, asked.correlation_id, asked.client_id, asked.session)


class AutoTopicCreation:
    """Creates topics of one broker in slices. Loop thread only."""

    def __init__(
        self,
        controller: ClusterMetadata,
        partitions_of_a_topic: int,
        slices: Slices,
        *,
        take_of: Callable[[RequestContext], Take | None],
        line_limit: LineLimit,
    ) -> None:
        """Take ``take_of``, which returns a request's access to its client's mutation quota; None if no quota applies."""
        self._controller = controller
        self._slices = slices
        self._take_of = take_of
        self._line_limit = line_limit
        self._batch = max(_BATCH_PARTITIONS // partitions_of_a_topic, 1)
        # The most topics that Kafka's controller creates for one request, and so for one Metadata request.
        self._most_in_flight = max(MAX_PARTITIONS_PER_REQUEST // partitions_of_a_topic, 1)
        # The topics in flight, each with the request that first asked for it.
        self._in_flight: dict[str, RequestContext] = {}
        self._is_creating = False

    def create(self, names: Iterable[str], asked: RequestContext) -> dict[str, ErrorCode]:
        """Create missing topics: some at once, some soon, none beyond the limit of topics in flight.

        ``asked`` is the client's request. Return the errors known so far, by topic name.
        """
        refused: dict[str, ErrorCode] = {}
        context = creation_context(asked)
        for name in names:
            error = topic_name_error(name)
            if error is not None:
                refused[name] = error.code
            elif len(self._in_flight) < self._most_in_flight:
                self._in_flight.setdefault(name, context)
        if self._in_flight and not self._is_creating:
            self._is_creating = True
            self._slices.run(self._create(refused), HEAVIEST).when_done(_tell_failure)
        return refused

    def _create(self, refused: dict[str, ErrorCode]) -> Generator[Reply[Any] | None, Any, None]:
        try:
            while self._in_flight:
                batch, context = self._next_batch()
                outcome = yield self._controller.auto_create(batch, context, self._take_of(context))
                for name in batch:
                    del self._in_flight[name]
                if isinstance(outcome, KafkaError):
                    refused.update(dict.fromkeys(batch, outcome.code))
                else:
                    refused.update(self._refused(outcome, context))
        finally:
            self._is_creating = False

    def _next_batch(self) -> tuple[list[str], RequestContext]:
        """Return the next topics, all asked for by one request."""
        context = next(iter(self._in_flight.values()))
        of_one_request = takewhile(lambda name: self._in_flight[name] is context, self._in_flight)
        return list(islice(of_one_request, self._batch)), context

    def _refused(self, results: Iterable[TopicResult], context: RequestContext) -> dict[str, ErrorCode]:
        """Return why topics were not created, as far as clients may know."""
        refused = {result.name: result.error.code for result in results if result.error is not None}
        for name in [name for name, code in refused.items() if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED]:
            del refused[name]
            principal, client_id = context.session.principal, context.client_id
            extra_fields = self._line_limit.admit(("topic not created", principal, client_id))
            if extra_fields is not None:
                fields = {"topic": name, "principal": principal, "client_id": client_id, **extra_fields}
                log.warn("topic not created", cause="the client changed too many partitions recently", **fields)
        return refused


def _tell_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        log.error("cannot create topics automatically", outcome)
