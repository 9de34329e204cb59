"""What an exchange is about: groups, transactional ids and topics, as its request and its answer name them.

Left out: the topics within a member's subscription and assignment, which are bytes to the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.testing.timeline.messages import structs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from odradek.testing.timeline.events import Exchange

__tracebackhide__ = True

_GROUP_FIELDS = ("group_id", "group_ids", "groups", "groups_names")
_TRANSACTIONAL_ID_FIELDS = ("transactional_id", "transactional_ids")
_TOPIC_FIELDS = ("topic", "topic_name", "topic_names", "topics")
# What FindCoordinator asks for.
_KEY_FIELDS = ("coordinator_keys", "key")
# The answers that have both a topic's id and its name.
_TELLING_IDS = frozenset({ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
_OF_GROUP, _OF_TRANSACTION = 0, 1


def groups(exchange: Exchange) -> set[str]:
    """The groups that are named."""
    return _named(exchange, _GROUP_FIELDS, _OF_GROUP)


def transactional_ids(exchange: Exchange) -> set[str]:
    """The transactional ids that are named."""
    return _named(exchange, _TRANSACTIONAL_ID_FIELDS, _OF_TRANSACTION)


def topics(exchange: Exchange, names: dict[UUID, str]) -> set[str]:
    """The topics that are named, or meant by an id that is in ``names``."""
    found: set[str] = set()
    for struct in _structs(exchange):
        found.update(_texts(struct, _TOPIC_FIELDS))
        if "Topic" in type(struct).__name__:
            found.update(_texts(struct, ("name",)))
        topic_id = getattr(struct, "topic_id", None)
        if topic_id in names:
            found.add(names[topic_id])
    return found - {""}


def topic_names(exchanges: Iterable[Exchange]) -> dict[UUID, str]:
    """The names of topics by their ids, as far as an answer has both."""
    found: dict[UUID, str] = {}
    for exchange in exchanges:
        if exchange.api in _TELLING_IDS and exchange.answer is not None:
            for struct in structs_of(exchange.answer):
                topic_id, name = getattr(struct, "topic_id", None), getattr(struct, "name", None)
                if topic_id is not None and name:
                    found[topic_id] = name
    return found


def _named(exchange: Exchange, fields: tuple[str, ...], key_type: int) -> set[str]:
    if exchange.api == ApiKey.FIND_COORDINATOR:
        if exchange.request.key_type != key_type:
            return set()
        fields = _KEY_FIELDS
    return {text for struct in _structs(exchange) for text in _texts(struct, fields)} - {""}


def _structs(exchange: Exchange) -> Iterator[Any]:
    yield from structs_of(exchange.request)
    if exchange.answer is not None:
        yield from structs_of(exchange.answer)


def _texts(struct: Any, fields: Iterable[str]) -> Iterator[str]:
    for name in fields:
        value = getattr(struct, name, None)
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, str):
                yield each
