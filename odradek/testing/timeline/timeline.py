"""A timeline: events in order, to be filtered, printed, drawn, saved and loaded.

An exchange concerns the groups, transactional ids and topics in its request and its answer. Topics inside a member's
subscription or assignment do not count: these are bytes to the protocol.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing.timeline.events import DEFAULT_WIDTH, Decision, Exchange, event_from_json, line
from odradek.testing.timeline.messages import structs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from odradek.testing.timeline.events import Event


_GROUP_FIELDS = ("group_id", "group_ids", "groups", "groups_names")
_TRANSACTIONAL_ID_FIELDS = ("transactional_id", "transactional_ids")
_TOPIC_FIELDS = ("topic", "topic_name", "topic_names", "topics")
# The fields of FindCoordinator.
_KEY_FIELDS = ("coordinator_keys", "key")
# Answers with both a topic's id and its name.
_TELLING_IDS = frozenset({ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
_OF_GROUP, _OF_TRANSACTION = 0, 1


def groups(exchange: Exchange) -> set[str]:
    """Return the groups in an exchange."""
    return _named(exchange, _GROUP_FIELDS, _OF_GROUP)


def transactional_ids(exchange: Exchange) -> set[str]:
    """Return the transactional ids in an exchange."""
    return _named(exchange, _TRANSACTIONAL_ID_FIELDS, _OF_TRANSACTION)


def topics(exchange: Exchange, names: dict[UUID, str]) -> set[str]:
    """Return the topics in an exchange, by name or by an id that is in ``names``."""
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
    """Return the names of topics by id, from the answers that have both."""
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


__tracebackhide__ = True

_FORMAT = {"odradek_timeline": 1}


class Timeline:
    """An immutable sequence of events."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: tuple[Event, ...] = tuple(events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __str__(self) -> str:
        return self.text()

    @property
    def events(self) -> tuple[Event, ...]:
        """Return all events, in the order in which they began."""
        return self._events

    @property
    def exchanges(self) -> list[Exchange]:
        """Return the requests with their outcomes."""
        return [event for event in self.events if isinstance(event, Exchange)]

    @property
    def decisions(self) -> list[Decision]:
        """Return the coordinators' decisions."""
        return [event for event in self.events if isinstance(event, Decision)]

    def where(
        self,
        *,
        api: ApiKey | str | None = None,
        client_id: str | None = None,
        connection: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
    ) -> Timeline:
        """Return the events that match all arguments.

        ``api`` is "JOIN_GROUP" or "JoinGroup". ``error`` is the name of an error in the answer, or "ANY". Decisions match on
        ``group`` and ``transactional_id`` only: any other argument leaves them out. Raises ValueError for an unknown API or
        error.
        """
        if error not in (None, "ANY") and error not in ErrorCode.__members__:
            raise ValueError(
                f'{error!r} is not an error code; use a name such as {ErrorCode.NOT_COORDINATOR.name}, or "ANY" for any error'
            )
        key = None if api is None else _api_key(api)
        events = self.events
        names = {} if topic is None else topic_names(self.exchanges)

        def is_asked_for(event: Event) -> bool:
            if isinstance(event, Decision):
                return (
                    (group is None or event.about.get("group") == group)
                    and (transactional_id is None or event.about.get("transactional_id") == transactional_id)
                    and (api, client_id, connection, topic, error) == (None,) * 5
                )
            return (
                (key is None or event.api is key)
                and (client_id is None or event.client_id == client_id)
                and (connection is None or event.connection == connection)
                and (group is None or group in groups(event))
                and (transactional_id is None or transactional_id in transactional_ids(event))
                and (topic is None or topic in topics(event, names))
                and (error is None or (bool(event.errors) if error == "ANY" else error in event.errors))
            )

        return Timeline(filter(is_asked_for, events))

    def text(self, width: int | None = DEFAULT_WIDTH) -> str:
        """Return a line for each event. Requests are cut to fit ``width``, unless it is None."""
        return "\n".join(line(event, width) for event in self.events)

    def html(self) -> str:
        """Return a sequence diagram as a self-contained HTML page."""
        from odradek.testing.timeline.diagram import page  # 2.2 ms

        return page(self.events)

    def save_html(self, path: Path | str) -> None:
        """Write ``html()`` to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def save(self, path: Path | str) -> None:
        """Write JSON lines to a file: one with the format's version, and one for each event."""
        with Path(path).open("w", encoding="utf-8") as file:
            lines = (_FORMAT, *(event.as_json() for event in self.events))
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in lines)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file that ``save`` has written. Raises OSError, and ValueError with the line number for other content."""
        events = []
        with Path(path).open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                try:
                    read = json.loads(text)
                    if number > 1:
                        events.append(event_from_json(read))
                    elif read != _FORMAT:
                        raise ValueError(f"not a timeline: its first line must be {json.dumps(_FORMAT)}")  # noqa: TRY301
                except ValueError as error:
                    raise ValueError(f"{path}, line {number}: {error}") from error
        return cls(events)


def _api_key(api: object) -> ApiKey:
    if isinstance(api, ApiKey):
        return api
    name = str(api).replace("_", "").upper()
    for key in ApiKey:
        if key.name.replace("_", "") == name:
            return key
    raise ValueError(f"{api!r} is not an API; use a name such as {ApiKey.JOIN_GROUP.name} or JoinGroup")
