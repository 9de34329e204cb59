"""A request as a rule sees it: the groups, transactional ids, topics and partitions it names, and its answer with an error.

The names are read from the fields that have them. All APIs use the same field names (``group_id``, ``topics`` of
``partitions``, ...), so one walk serves all but two. Produce requests are decoded by hand in the broker, and a Fetch request
has most of its partitions in its session only. So has a ShareFetch.

An error is put into the answer to the whole request (``protocol.error_answers``), or to some of the partitions that it names.
If a rule matches only some partitions, the others are handled as usual, and the two answers are merged.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from odradek.broker.replica.fetch_sessions import INITIAL_EPOCH
from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.error_answers import TOPIC_FIELDS, error_answer, partition_of, places_of
from odradek.protocol.message_types.produce import PartitionProduceResponse, TopicProduceResponse
from odradek.protocol.messages import Layout, load, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.common.context import RequestContext

    # Return whether a rule matches a partition, or a topic without partitions.
    Means = Callable[[str, int | None], bool]

__tracebackhide__ = True

_GROUP_FIELDS: Final = ("group_id",)
_GROUPS_FIELDS: Final = ("groups", "groups_names", "group_ids")
_TRANSACTION_FIELDS: Final = ("transactional_id",)
_TRANSACTIONS_FIELDS: Final = ("transactional_ids",)
_TOPICS_FIELDS: Final = ("topics", "topic_partitions")
_PARTITIONS_FIELDS: Final = ("partitions", "partition_indexes")
_GROUP_KEY: Final = 0
_TRANSACTION_KEY: Final = 1
# From this version on, Fetch names topics by id.
_FETCH_BY_ID: Final = 13


class Request:
    """One request as a rule sees it. ``message`` is the canonical message, valid until its answer is made."""

    __slots__ = ("api_key", "client_id", "context", "core", "groups", "message", "partitions", "transactional_ids")

    def __init__(self, core: BrokerCore, context: RequestContext, message: Any) -> None:
        self.core = core
        self.context = context
        self.message = message
        self.api_key = context.api_key
        self.client_id = context.client_id
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []
        # (topic, partition); None for a topic without partitions, or whose partitions the request makes.
        self.partitions: list[tuple[str, int | None]] = []
        match self.api_key:
            case ApiKey.PRODUCE:
                self._read_produce()
            case ApiKey.FETCH:
                self._read_fetch()
            case ApiKey.SHARE_FETCH:
                self._walk(message)
                self._read_share_session()
            case ApiKey.FIND_COORDINATOR:
                keys = {_GROUP_KEY: self.groups, _TRANSACTION_KEY: self.transactional_ids}.get(message.key_type)
                if keys is not None:
                    keys += message.coordinator_keys
            case _:
                self._walk(message)

    @property
    def topics(self) -> list[str]:
        """Return the topics, each once."""
        return list(dict.fromkeys(topic for topic, _ in self.partitions))

    def topic_named(self, key: str | bytes | UUID | None) -> str:
        """Return the topic's name for a name or an id; "" for an unknown id."""
        if isinstance(key, str):
            return key
        topic_id = UUID(bytes=key) if isinstance(key, bytes) else key
        topic = None if topic_id is None else self.core.controller.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def name_of(self, item: Any) -> str:
        """Return the topic of an item of a request's ``topics``."""
        if isinstance(item, str):
            return item
        for field in TOPIC_FIELDS:
            name: str | None = getattr(item, field, None)
            if name:
                return name
        return self.topic_named(getattr(item, "topic_id", None))

    def _read_produce(self) -> None:
        if self.message.transactional_id is not None:
            self.transactional_ids.append(self.message.transactional_id)
        for key, batches in self.message.topics:
            name = self.topic_named(key)
            self.partitions += [(name, index) for index, _ in batches]

    def _read_fetch(self) -> None:
        by_id = self.context.version >= _FETCH_BY_ID
        named = {
            (self.topic_named(topic.topic_id if by_id else topic.topic), each.partition): None
            for topic in self.message.topics
            for each in topic.partitions
        }
        for key, partition in self.core.fetch_sessions.fetched(self.message.session_id):
            named.setdefault((self.topic_named(key), partition))
        self.partitions += named

    def _read_share_session(self) -> None:
        """Add the partitions of the member's session. A request names them when they change, and all of them at epoch 0."""
        shares, message = self.core.share_partitions_so_far, self.message
        session = None if shares is None else shares.sessions.get(message.group_id, message.member_id)
        if session is not None and message.share_session_epoch != INITIAL_EPOCH:
            named = dict.fromkeys(self.partitions)
            for topic_id, partition in session.partitions:
                named.setdefault((self.topic_named(topic_id), partition))
            self.partitions = list(named)

    def _walk(self, item: Any) -> None:
        fields = getattr(item, "_fields", ())
        for field in fields:
            value = getattr(item, field)
            if value is None:
                continue
            if field in _GROUP_FIELDS:
                self.groups.append(value)
            elif field in _TRANSACTION_FIELDS:
                self.transactional_ids.append(value)
            elif field in _TRANSACTIONS_FIELDS:
                self.transactional_ids += value
            elif field in _GROUPS_FIELDS and value and isinstance(value[0], str):
                self.groups += value
            elif field in _TOPICS_FIELDS:
                self.partitions += [place for topic in value for place in self._places(topic)]
            elif isinstance(value, list | tuple):
                for each in value:
                    self._walk(each)

    def _places(self, topic: Any) -> Iterator[tuple[str, int | None]]:
        name = self.name_of(topic)
        found = False
        for field in _PARTITIONS_FIELDS:
            for each in getattr(topic, field, None) or ():
                found = True
                yield name, partition_of(each)
        if not found:
            yield name, None


@cache
def named_by(api_key: ApiKey) -> frozenset[str]:
    """Return the rule keys that an API's requests can match: a subset of group, transactional_id and topic."""
    match api_key:
        case ApiKey.PRODUCE:
            return frozenset({"transactional_id", "topic"})
        case ApiKey.FIND_COORDINATOR:
            return frozenset({"group", "transactional_id"})
    return frozenset(_named_in(load(api_key, NEWEST_VERSION[api_key], "request")))


def _named_in(layout: Layout) -> Iterator[str]:
    """Yield the keys, reading the same fields as ``Request._walk``."""
    for spec in layout.fields:
        if spec.name in _GROUP_FIELDS or (spec.name in _GROUPS_FIELDS and spec.layout is None):
            yield "group"
        elif spec.name in (*_TRANSACTION_FIELDS, *_TRANSACTIONS_FIELDS):
            yield "transactional_id"
        elif spec.name in _TOPICS_FIELDS:
            yield "topic"
        elif spec.is_array and spec.layout is not None:
            yield from _named_in(spec.layout)


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
