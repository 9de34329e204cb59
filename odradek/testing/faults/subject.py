"""The subjects of a request: its groups, transactional ids, topics and partitions.

They are read from the fields that name them. All APIs use the same field names (``group_id``, ``topics`` of ``partitions``,
...), so one walk serves all but two. Produce requests are decoded by hand in the broker, and a Fetch request has most of its
partitions in its session only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.error_answers import TOPIC_FIELDS, partition_of
from odradek.protocol.schemas import Layout, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.common.context import RequestContext

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
