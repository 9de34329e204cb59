"""Answers with an error code (``protocol.error_answers``) to requests, or to some of the partitions that they name.

If a rule matches only some partitions of a request, the others are handled as usual. The two answers are then merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_answers import TOPIC_FIELDS, error_answer, partition_of, places_of
from odradek.protocol.message_types.produce import PartitionProduceResponse, TopicProduceResponse
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from odradek.testing.faults.subject import Request

    # Return whether a rule matches a partition, or a topic without partitions.
    Means = Callable[[str, int | None], bool]

__tracebackhide__ = True

# These need the handler's response, for the fields that are no errors.
ANSWERED_FIRST: Final = frozenset({ApiKey.FETCH, ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
_SESSION_ERRORS: Final = frozenset({70, 71, 106})


def answer_error(request: Request, code: int, means: Means | None) -> Any:
    """Return the response with this error for the whole request, or only for the partitions that ``means`` matches.

    None if the API has no place for an error: then the connection has to be closed.
    """
    if request.api_key == ApiKey.PRODUCE:
        return _produce_answer(request, code, means)
    message = request.message if means is None else without(request, lambda topic, partition: not means(topic, partition))
    return error_answer(request.api_key, message, code)


def put_errors(request: Request, response: Any, code: int, means: Means) -> Any:
    """Return a handler's response with the error in place of the results of matched partitions."""
    if request.api_key == ApiKey.FETCH:
        return _fetch_answer(request, response, code, means)
    topics = []
    for topic in response.topics:
        if not any(means(topic.name or "", each.partition_index) for each in topic.partitions) and not means(
            topic.name or "", None
        ):
            topics.append(topic)
        else:
            topics.append(topic._replace(error_code=code, partitions=()))
    return response._replace(topics=topics)


def without(request: Request, means: Means) -> Any:
    """Return the request without the matched partitions; None if nothing is left of it, or if it cannot be divided."""
    message = request.message
    field = "topics"
    if not hasattr(message, field):
        return None
    if request.api_key == ApiKey.PRODUCE:
        produced = []
        for key, batches in message.topics:
            name = request.topic_named(key)
            left = [each for each in batches if not means(name, each[0])]
            if left:
                produced.append((key, left))
        return message._replace(topics=produced) if produced else None
    topics = []
    for topic in message.topics or ():
        name = request.name_of(topic)
        inner = next((each for each in ("partitions", "partition_indexes") if hasattr(topic, each)), None)
        if inner is None:
            if not means(name, None):
                topics.append(topic)
            continue
        left = [each for each in getattr(topic, inner) if not means(name, partition_of(each))]
        if left:
            topics.append(topic._replace(**{inner: left}))
    return message._replace(topics=topics) if topics else None


def can_divide(api_key: ApiKey) -> bool:
    """Return whether a request may be refused in part: its answer has codes by topic or partition, and none for the whole."""
    return api_key == ApiKey.PRODUCE or (not places_of(api_key).has_code and hasattr(messages(api_key).request(), "topics"))


def joined(api_key: ApiKey, response: Any, errors: Any) -> Any:
    """Return a handler's response to a part of a request, merged with the errors of the rest."""
    field = "responses" if api_key == ApiKey.PRODUCE else places_of(api_key).arrays[0].field
    inner = (
        "partition_responses"
        if api_key == ApiKey.PRODUCE
        else next((each.field for each in places_of(api_key).arrays[0].inner), "")
    )
    items = list(getattr(response, field))
    for added in getattr(errors, field):
        for position, item in enumerate(items):
            if inner and _key(item) == _key(added):
                items[position] = item._replace(**{inner: [*getattr(item, inner), *getattr(added, inner)]})
                break
        else:
            items.append(added)
    # A shared response has a class of its own.
    plain = messages(api_key).response(*response)
    return plain._replace(**{field: items})


def _produce_answer(request: Request, code: int, means: Means | None) -> Any:
    response = messages(ApiKey.PRODUCE).response
    topics = []
    for key, batches in request.message.topics:
        name = request.topic_named(key)
        hit = [index for index, _ in batches if means is None or means(name, index)]
        if hit:
            topics.append(
                TopicProduceResponse(
                    topic_id=_topic_id(request, key),
                    name=name,
                    partition_responses=[PartitionProduceResponse(index=each, error_code=code, base_offset=-1) for each in hit],
                )
            )
    return response(responses=topics)


def _topic_id(request: Request, key: str | bytes) -> UUID | None:
    from uuid import UUID

    if isinstance(key, bytes):
        return UUID(bytes=key)
    topic = request.core.controller.image.topics.get(key)
    return None if topic is None else topic.topic_id


def _fetch_answer(request: Request, response: Any, code: int, means: Means) -> Any:
    if response.error_code:
        return response
    if code in _SESSION_ERRORS:
        return messages(ApiKey.FETCH).response(error_code=code)
    fetch = messages(ApiKey.FETCH)
    hit: dict[str, list[int]] = {}
    for name, partition in request.partitions:
        if partition is not None and means(name, partition):
            hit.setdefault(name, []).append(partition)
    topics = []
    for topic in response.responses:
        name = topic.topic or request.topic_named(topic.topic_id)
        left = [each for each in topic.partitions if each.partition_index not in hit.get(name, ())]
        if left:
            topics.append(topic._replace(partitions=left))
    for name, partitions in hit.items():
        known = request.core.controller.image.topics.get(name)
        errors = [
            fetch.PartitionData(partition_index=each, error_code=code, high_watermark=-1, aborted_transactions=None, records=b"")
            for each in partitions
        ]
        topic_id = None if known is None else known.topic_id
        topics.append(fetch.FetchableTopicResponse(topic_id=topic_id, topic=name, partitions=errors))
    return response._replace(responses=topics)


def _key(item: Any) -> object:
    return next((getattr(item, field) for field in TOPIC_FIELDS if getattr(item, field, None)), getattr(item, "topic_id", None))
