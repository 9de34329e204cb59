"""Topics that clients ask the metadata of, and that are not there yet: created, but not all while the client waits.

As in Kafka's AutoTopicCreationManager, a name is in flight until its topic is there, what is in flight is not created twice, and
a client that does not find its topic in the answer asks again. Here topics that take a few milliseconds are in the answer.

A topic counts as created by the client that asked for it first: its mutation quota holds (KIP-599). A topic above the quota is
not created, and the client is told what it is told of any topic that is not there; it is not throttled for it.
"""

from collections.abc import Callable, Generator, Iterable
from itertools import islice, takewhile
from typing import Any, Final

from odradek.common.context import RequestContext
from odradek.common.logging import LineLimit, log
from odradek.controller.metadata.cluster_metadata import ClusterMetadata
from odradek.controller.metadata.decisions import MAX_PARTITIONS_PER_REQUEST, Take, TopicResult
from odradek.controller.metadata.topic import validate_topic_name
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST, Slices

# Of one commit of the controller: some milliseconds.
_BATCH_PARTITIONS: Final = 4
# Of the CreateTopics request that stands for a client's Metadata request.
_CREATE_VERSION: Final = 7


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
        """``take_of`` is what a request takes of its client's mutation quota by; None where no quota holds."""
        self._controller = controller
        self._slices = slices
        self._take_of = take_of
        self._line_limit = line_limit
        self._batch = max(_BATCH_PARTITIONS // partitions_of_a_topic, 1)
        # What Kafka's controller creates for one request, and so of one Metadata request, at most.
        self._most_in_flight = max(MAX_PARTITIONS_PER_REQUEST // partitions_of_a_topic, 1)
        # By name, on whose behalf.
        self._in_flight: dict[str, RequestContext] = {}
        self._is_creating = False

    def create(self, names: Iterable[str], asked: RequestContext) -> dict[str, ErrorCode]:
        """Create the topics that are not there: some at once, some soon, none beyond what may be in flight.

        ``asked`` is the client's request. Returns why topics cannot be there, by name, as far as that is known by now.
        """
        refused: dict[str, ErrorCode] = {}
        context = RequestContext(ApiKey.CREATE_TOPICS, _CREATE_VERSION, asked.correlation_id, asked.client_id, asked.session)
        for name in names:
            try:
                validate_topic_name(name)
            except KafkaError as error:
                refused[name] = error.code
                continue
            if len(self._in_flight) < self._most_in_flight:
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
        """The next topics, all asked for by one request."""
        context = next(iter(self._in_flight.values()))
        of_one_request = takewhile(lambda name: self._in_flight[name] is context, self._in_flight)
        return list(islice(of_one_request, self._batch)), context

    def _refused(self, results: Iterable[TopicResult], context: RequestContext) -> dict[str, ErrorCode]:
        """Why topics were not created, as far as clients are told."""
        refused = {result.name: result.error.code for result in results if result.error is not None}
        for name in [name for name, code in refused.items() if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED]:
            del refused[name]
            principal, client_id = context.session.principal, context.client_id
            left_out = self._line_limit.left_out(("topic not created", principal, client_id))
            if left_out is not None:
                fields = {"topic": name, "principal": principal, "client_id": client_id, **left_out}
                log.warn("topic not created", cause="the client has changed too many partitions of late", **fields)
        return refused


def _tell_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        log.error("topics cannot be created", outcome)
