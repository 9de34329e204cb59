"""The common part of the five APIs for the state of share partitions: each partition of a request is asked for by itself.

As in Kafka, a request without a group, without topics, or with a topic without partitions is answered by an empty response. A
partition that is named twice is asked for twice, and has one answer, the last.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from odradek.broker.large import Pieces, now_or_later
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import KafkaError
from odradek.timing.reply import Reply, all_of

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.coordinator.share.requests import ShareStateRequest

PIECES: Final = Pieces(("topics", "partitions"), ("results", "partitions"))
RULE: Final = on_cluster(AclOperation.CLUSTER_ACTION)
_NO_TOPIC: Final = UUID(int=0)

ResponseT = TypeVar("ResponseT")


class StateRequest(Protocol):
    """A request of one of these APIs. Its topics have a ``topic_id`` and ``partitions``."""

    @property
    def group_id(self) -> str:
        """The share group."""

    @property
    def topics(self) -> Sequence[Any]:
        """The topics."""


class ShareStateApi(NamedTuple, Generic[ResponseT]):
    """One of these APIs, by its conversions.

    ``ask`` converts an item of the request. ``answer`` converts a partition's number and the outcome into an item of the
    response, and ``refuse`` an error. ``respond`` makes the response out of (topic id, items).
    """

    ask: "Callable[[SharePartitionKey, Any], ShareStateRequest]"
    answer: Callable[[int, Any], object]
    refuse: Callable[[int, int, str | None], object]
    respond: Callable[[list[tuple[UUID | None, list[Any]]]], ResponseT]

    def handle(
        self, services: "ShareStateServices", _context: "RequestContext", request: StateRequest
    ) -> ResponseT | Reply[ResponseT]:
        """Ask the share coordinator for each partition of ``request``."""
        if not request.group_id or any(not topic.partitions for topic in request.topics):
            return self.respond([])
        places = [(topic.topic_id, item) for topic in request.topics for item in topic.partitions]
        asked: Reply[list[object]] = all_of(
            [
                services.shares.ask(self.ask(SharePartitionKey(request.group_id, topic_id or _NO_TOPIC, item.partition), item))
                for topic_id, item in places
            ]
        )
        asked.is_decided = True

        def response(outcomes: list[object]) -> ResponseT:
            topics: dict[UUID | None, dict[int, Any]] = {}
            for (topic_id, item), outcome in zip(places, outcomes, strict=True):
                topics.setdefault(topic_id, {})[item.partition] = self._item(item.partition, outcome)
            return self.respond([(topic_id, list(items.values())) for topic_id, items in topics.items()])

        return now_or_later(asked.then(response))

    def _item(self, partition: int, outcome: object) -> object:
        if isinstance(outcome, KafkaError):
            return self.refuse(partition, outcome.code, outcome.reason or None)
        return self.answer(partition, outcome)
