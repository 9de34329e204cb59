"""Topics that clients ask the metadata of, and that are not there yet: created, but not all while the client waits.

As in Kafka's AutoTopicCreationManager, a name is in flight until its topic is there, what is in flight is not created twice, and
a client that does not find its topic in the answer asks again. Here topics that take a few milliseconds are in the answer.
"""

from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any, Final

from odradek.broker.logging import log
from odradek.broker.metadata.cluster_metadata import ClusterMetadata
from odradek.broker.metadata.decisions import MAX_PARTITIONS_PER_REQUEST
from odradek.broker.metadata.topic_names import validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from odradek.timing.slices import HEAVIEST, Slices

# Of one commit of the controller: some milliseconds.
_BATCH_PARTITIONS: Final = 4


class AutoTopicCreation:
    """Creates topics of one broker in slices. Loop thread only."""

    def __init__(self, controller: ClusterMetadata, partitions_of_a_topic: int, slices: Slices) -> None:
        self._controller = controller
        self._slices = slices
        self._batch = max(_BATCH_PARTITIONS // partitions_of_a_topic, 1)
        # What Kafka's controller creates for one request, and so of one Metadata request, at most.
        self._most_in_flight = max(MAX_PARTITIONS_PER_REQUEST // partitions_of_a_topic, 1)
        self._in_flight: dict[str, None] = {}
        self._is_creating = False

    def create(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create the topics that are not there: some at once, some soon, none beyond what may be in flight.

        Returns why topics cannot be there, by name, as far as that is known by now.
        """
        refused: dict[str, ErrorCode] = {}
        for name in names:
            try:
                validate_topic_name(name)
            except KafkaError as error:
                refused[name] = error.code
                continue
            if len(self._in_flight) < self._most_in_flight:
                self._in_flight[name] = None
        if self._in_flight and not self._is_creating:
            self._is_creating = True
            self._slices.run(self._create(refused), HEAVIEST).when_done(_tell_failure)
        return refused

    def _create(self, refused: dict[str, ErrorCode]) -> Generator[Reply[Any] | None, Any, None]:
        try:
            while self._in_flight:
                batch = list(islice(self._in_flight, self._batch))
                outcome = yield self._controller.auto_create(batch)
                for name in batch:
                    del self._in_flight[name]
                if isinstance(outcome, KafkaError):
                    refused.update(dict.fromkeys(batch, outcome.code))
                else:
                    refused.update({result.name: result.error.code for result in outcome if result.error is not None})
        finally:
            self._is_creating = False


def _tell_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        log.error("topics cannot be created", outcome)
