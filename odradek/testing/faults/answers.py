"""Answers with an error code, filled in as each API's response has it: at the top, for each group, topic or partition.

The response of an API follows its request: an array of topics with an array of partitions is answered by such arrays. That is
read from the schemas; ``_SOURCES`` has the arrays whose names do not say what they answer. Where a rule is about some partitions
of a request, the others are handled as ever, and the two answers are put together.

Left out: DescribeLogDirs and AlterReplicaLogDirs answer by directories, which a request of theirs does not name; the first has a
code at the top.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.message_types.produce import PartitionProduceResponse, TopicProduceResponse
from odradek.protocol.messages import messages
from odradek.protocol.schemas import FieldSpec, load
from odradek.testing.faults.subject import PARTITION_FIELDS, TOPIC_FIELDS, partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from odradek.testing.faults.subject import Request

    # Whether a partition, or a topic without partitions, is meant.
    Means = Callable[[str, int | None], bool]

__tracebackhide__ = True

# The request's array that a response's array answers, where it has another name; the first that is there.
_SOURCES: Final = (
    "topics",
    "partitions",
    "partition_indexes",
    "groups",
    "groups_names",
    "group_ids",
    "coordinator_keys",
    "transactional_ids",
    "transactions",
    "resources",
    "topic_partitions",
    "creations",
    "filters",
)
# Two arrays of a request that one of the response answers.
_TOGETHER: Final = ("deletions", "upsertions")
# Names of one thing in requests and responses.
_SAME: Final = (TOPIC_FIELDS, PARTITION_FIELDS, ("group_id", "key", "transactional_id"), ("user", "name"))
# Arrays that name what an item is about, and have no errors of their own.
_NAMING: Final = ("entity",)
_ERROR: Final = "error_code"
# Their responses are needed for what they hold beside errors.
ANSWERED_FIRST: Final = frozenset({ApiKey.FETCH, ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
_SESSION_ERRORS: Final = frozenset({70, 71, 106})


class _Array(NamedTuple):
    """An array of a response whose items have error codes: its field, its items' class and fields, and the arrays in them."""

    field: str
    item: type[Any]
    codes: tuple[str, ...]
    inner: tuple[_Array, ...]


class _Top(NamedTuple):
    response: type[Any]
    has_code: bool
    arrays: tuple[_Array, ...]


def error_answer(request: Request, code: int, means: Means | None) -> Any:
    """The response to all of a request with this error; with ``means`` to the partitions that are meant.

    None where the API has no place for an error: the connection is all that can tell.
    """
    if request.api_key == ApiKey.PRODUCE:
        return _produce_answer(request, code, means)
    top = _top(request.api_key)
    values: dict[str, Any] = {
        array.field: _answered(array, request.message, request, code, means)
        for array in top.arrays
        if not top.has_code or request.api_key in _WITH_BOTH
    }
    if top.has_code:
        values[_ERROR] = code
    return top.response(**values) if values else None


def put_errors(request: Request, response: Any, code: int, means: Means) -> Any:
    """The response of a handler with the error in place of what it says of the partitions that are meant."""
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
    """The request without the partitions that are meant; None if nothing is left of it, or if it cannot be divided."""
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
    """Whether a request may be refused in part: its answer has codes by topic or partition, and none for all of it."""
    return api_key == ApiKey.PRODUCE or (not _top(api_key).has_code and hasattr(messages(api_key).request(), "topics"))


def joined(api_key: ApiKey, response: Any, errors: Any) -> Any:
    """A handler's response to a part of a request, together with the errors of the rest."""
    field = "responses" if api_key == ApiKey.PRODUCE else _top(api_key).arrays[0].field
    inner = (
        "partition_responses" if api_key == ApiKey.PRODUCE else next((each.field for each in _top(api_key).arrays[0].inner), "")
    )
    items = list(getattr(response, field))
    for added in getattr(errors, field):
        for position, item in enumerate(items):
            if inner and _key(item) == _key(added):
                items[position] = item._replace(**{inner: [*getattr(item, inner), *getattr(added, inner)]})
                break
        else:
            items.append(added)
    # A shared response is of a class of its own.
    plain = messages(api_key).response(*response)
    return plain._replace(**{field: items})


# A code at the top, and one for each item beside it.
_WITH_BOTH: Final = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS})


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


def _answered(array: _Array, owner: Any, request: Request, code: int, means: Means | None, topic: str = "") -> list[Any]:
    """The items of ``array`` for those that ``owner``, a part of the request, names."""
    answered = []
    for item in _source(array.field, owner):
        values: dict[str, Any] = dict.fromkeys(array.codes, code)
        for field in array.item._fields:
            if field not in values:
                value = _value(field, item)
                if value is not None:
                    values[field] = value
        name = topic or (request.name_of(item) if _is_topic(array) else "")
        if means is not None and name and not array.inner:
            partition = partition_of(item) if topic else None
            if not means(name, partition):
                continue
        if _is_topic(array) and "topic_id" in array.item._fields and values.get("topic_id") is None:
            known = request.core.controller.image.topics.get(name)
            values["topic_id"] = None if known is None else known.topic_id
        empty = False
        for inner in array.inner:
            if array.codes:
                continue
            values[inner.field] = _answered(inner, item, request, code, means, name)
            empty = not values[inner.field]
        if not empty:
            answered.append(array.item(**values))
    return answered


def _is_topic(array: _Array) -> bool:
    fields: tuple[str, ...] = array.item._fields
    return any(field in fields for field in (*TOPIC_FIELDS, "topic_id"))


def _source(field: str, owner: Any) -> Sequence[Any]:
    for name in (field, *_SOURCES):
        value = getattr(owner, name, None)
        if isinstance(value, list | tuple):
            return value
    return [item for name in _TOGETHER for item in getattr(owner, name, ())]


def _value(field: str, item: Any) -> Any:
    """What ``item`` says of a field of the response; an item that is a name or a number says it of each key."""
    if isinstance(item, str | int):
        return item if any(field in names for names in _SAME) else None
    if hasattr(item, field):
        value = getattr(item, field)
        return None if isinstance(value, list | tuple) and field not in _NAMING else value
    for names in _SAME:
        if field in names:
            for name in names:
                if hasattr(item, name):
                    return getattr(item, name)
    return None


def _key(item: Any) -> object:
    return next((getattr(item, field) for field in TOPIC_FIELDS if getattr(item, field, None)), getattr(item, "topic_id", None))


@cache
def _top(api_key: ApiKey) -> _Top:
    response = messages(api_key).response
    specs = load(api_key, NEWEST_VERSION[api_key], "response").fields
    return _Top(response, _ERROR in response._fields, tuple(_arrays(api_key, specs)))


def _arrays(api_key: ApiKey, specs: tuple[FieldSpec, ...]) -> list[_Array]:
    found = []
    for spec in specs:
        if spec.layout is None or not spec.is_array:
            continue
        inner = spec.layout.fields
        codes = tuple(each.name for each in inner if each.is_error_code)
        below = tuple(_arrays(api_key, inner))
        if codes or below:
            found.append(_Array(spec.name, messages(api_key).classes["response"][spec.layout.name], codes, below))
    return found
