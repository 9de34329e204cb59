"""The common part of the five APIs for the state of share partitions: each partition of a request is asked for by itself.

As in Kafka, a request without a group, without topics, or with a topic without partitions is answered by an empty response. A
partition that is named twice is asked for twice, and has one answer, the last.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from odradek.broker.large import now_or_later
from odradek.coordinator.share.state import SharePartitionKey
from odradek.protocol.errors import KafkaError
from odradek.timing.reply import Reply, all_of

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.coordinator.share.requests import ShareStateRequest

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


class Conversions(NamedTuple, Generic[ResponseT]):
    """The conversions of one API.

    ``ask`` converts an item of the request. ``answer`` converts a partition's number and the outcome into an item of the
    response, and ``refuse`` an error. ``respond`` makes the response out of (topic id, items).
    """

    ask: "Callable[[SharePartitionKey, Any], ShareStateRequest]"
    answer: Callable[[int, Any], object]
    refuse: Callable[[int, int, str | None], object]
    respond: Callable[[list[tuple[UUID | None, list[Any]]]], ResponseT]


def answer_each(
    services: "ShareStateServices", request: StateRequest, convert: Conversions[ResponseT]
) -> ResponseT | Reply[ResponseT]:
    """Ask the share coordinator for each partition of ``request``. Return the response, or a Reply of it."""
    if not request.group_id or any(not topic.partitions for topic in request.topics):
        return convert.respond([])
    places = [(topic.topic_id, item) for topic in request.topics for item in topic.partitions]
    asked: Reply[list[object]] = all_of(
        [
            services.shares.ask(convert.ask(SharePartitionKey(request.group_id, topic_id or _NO_TOPIC, item.partition), item))
            for topic_id, item in places
        ]
    )
    asked.is_decided = True

    def response(outcomes: list[object]) -> ResponseT:
        topics: dict[UUID | None, dict[int, Any]] = {}
        for (topic_id, item), outcome in zip(places, outcomes, strict=True):
            topics.setdefault(topic_id, {})[item.partition] = _item(convert, item.partition, outcome)
        return convert.respond([(topic_id, list(items.values())) for topic_id, items in topics.items()])

    return now_or_later(asked.then(response))


def _item(convert: Conversions[Any], partition: int, outcome: object) -> object:
    if isinstance(outcome, KafkaError):
        return convert.refuse(partition, outcome.code, outcome.reason or None)
    return convert.answer(partition, outcome)
