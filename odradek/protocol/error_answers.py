"""Responses that report one error for a whole request: at the top or, without a place there, for each item.

A response mirrors its request: an array of topics with arrays of partitions is answered by the same arrays. The tables of fields
show which ones. ``_SOURCES`` has the arrays whose names differ, and ``_BESIDE`` the values that Kafka sends along with an error
if they differ from the fields' defaults. Source: ``getErrorResponse`` of the requests of Apache Kafka 4.4.

Left out: Produce, whose request has a handwritten reader (``produce_request``), and errors for each directory of DescribeLogDirs,
as requests do not name directories. It has a code at the top.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.messages import FieldSpec, load, messages

# Names of the same thing in requests and responses.
TOPIC_FIELDS: Final = ("name", "topic", "topic_name")
PARTITION_FIELDS: Final = ("partition_index", "partition", "index", "partition_id")
_SAME: Final = (TOPIC_FIELDS, PARTITION_FIELDS, ("group_id", "key", "transactional_id"), ("user", "name"))
# The request's arrays that a response's array may answer under another name. The first existing one counts.
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
# Two arrays of a request that share one array of the response, which has each name once.
_TOGETHER: Final = ("deletions", "upsertions")
# Further fields that identify an item.
_NAMING: Final = ("topic_id", "resource_type", "resource_name", "producer_id", "member_id", "group_instance_id", "entity")
_ERROR: Final = "error_code"
_REASON: Final = "error_message"
# APIs with a code at the top and one for each item.
_WITH_BOTH: Final = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ELECT_LEADERS, ApiKey.ALTER_PARTITION_REASSIGNMENTS})
_BESIDE: Final[Mapping[ApiKey, Mapping[str, object]]] = {
    ApiKey.INIT_PRODUCER_ID: {"producer_id": -1, "producer_epoch": -1},
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"entries": None},
    ApiKey.DELETE_RECORDS: {"low_watermark": -1},
    ApiKey.OFFSET_FETCH: {"committed_offset": -1, "metadata": ""},
    ApiKey.FIND_COORDINATOR: {"node_id": -1, "port": -1},
    # Null tells a member of a streams group to keep its tasks; an empty list would take them away.
    ApiKey.STREAMS_GROUP_HEARTBEAT: dict.fromkeys(
        ("active_tasks", "standby_tasks", "warmup_tasks", "partitions_by_user_endpoint")
    ),
}


class Array(NamedTuple):
    """An array of a response whose items have error codes: its field, its items' class and fields, and its inner arrays."""

    field: str
    item: type[Any]
    codes: tuple[str, ...]
    inner: "tuple[Array, ...]"


class Places(NamedTuple):
    """The places of a response's error codes: at its top, and in its arrays."""

    response: type[Any]
    has_code: bool
    arrays: tuple[Array, ...]


@cache
def places_of(api_key: ApiKey) -> Places:
    """Return the places for an error in an API's response."""
    response = messages(api_key).response
    specs = load(api_key, NEWEST_VERSION[api_key], "response").fields
    return Places(response, _ERROR in response._fields, tuple(_arrays(api_key, specs)))


def _arrays(api_key: ApiKey, specs: tuple[FieldSpec, ...]) -> list[Array]:
    found = []
    for spec in specs:
        if spec.layout is None or not spec.is_array:
            continue
        inner = spec.layout.fields
        codes = tuple(each.name for each in inner if each.is_error_code)
        below = tuple(_arrays(api_key, inner))
        if codes or below:
            found.append(Array(spec.name, messages(api_key).classes["response"][spec.layout.name], codes, below))
    return found


def error_answer(api_key: ApiKey, request: Any, code: int, reason: str | None = None) -> Any:
    """Return the response to all of ``request`` with this code, and the reason if there is a place for it.

    Returns None if the API has no place for an error. Only closing the connection can show the error then.
    """
    places = places_of(api_key)
    values: dict[str, Any] = {
        array.field: _answered(api_key, array, request, code, reason)
        for array in places.arrays
        if not places.has_code or api_key in _WITH_BOTH
    }
    if places.has_code:
        values |= _with_codes(places.response, (_ERROR,), api_key, code, reason)
    values |= _beside(api_key, request, code, reason)
    return places.response(**values) if values else None


def _beside(api_key: ApiKey, request: Any, code: int, reason: str | None) -> dict[str, Any]:
    """Return the arrays that Kafka fills even if the error is at the top."""
    classes = messages(api_key)
    if api_key is ApiKey.LIST_PARTITION_REASSIGNMENTS:
        topics = [
            classes.OngoingTopicReassignment(
                name=topic.name,
                partitions=[classes.OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ]
        return {"topics": topics}
    if api_key is ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
        result = classes.DescribeUserScramCredentialsResult(user="", error_code=code, error_message=reason)
        return {"results": [result] * len(request.users or ())}
    return {}


def error_items(api_key: ApiKey, request: Any, field: str, code: int, reason: str | None = None) -> list[Any]:
    """Return the items of the response's array ``field``, each with this code, for everything that ``request`` names."""
    [array] = (each for each in places_of(api_key).arrays if each.field == field)
    return _answered(api_key, array, request, code, reason)


def _with_codes(of: type[Any], codes: Sequence[str], api_key: ApiKey, code: int, reason: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {field: value for field, value in _BESIDE.get(api_key, {}).items() if field in of._fields}
    if reason is not None and _REASON in of._fields:
        values[_REASON] = reason
    return values | dict.fromkeys(codes, code)


def _answered(api_key: ApiKey, array: Array, owner: Any, code: int, reason: str | None) -> list[Any]:
    """Return the items of ``array`` for everything named by ``owner``, a part of the request."""
    answered = []
    for item in _source(array.field, owner):
        values = _with_codes(array.item, array.codes, api_key, code, reason) if array.codes else {}
        for field in array.item._fields:
            if field not in values and (value := _value(field, item)) is not None:
                values[field] = value
        if not array.codes:
            values |= {inner.field: _answered(api_key, inner, item, code, reason) for inner in array.inner}
        answered.append(array.item(**values))
    return answered


def _source(field: str, owner: Any) -> Sequence[Any]:
    for name in (field, *_SOURCES):
        value = getattr(owner, name, None)
        if isinstance(value, list | tuple):
            return value
    if hasattr(owner, "dirs"):
        return [topic for directory in owner.dirs for topic in directory.topics]
    named = {item.name: item for name in _TOGETHER for item in getattr(owner, name, ())}
    return [named[name] for name in sorted(named)]


def _value(field: str, item: Any) -> Any:
    """Return the value of ``item`` for a response's field. An item that is a name or a number is the value itself."""
    if isinstance(item, str | int):
        return item if any(field in names for names in _SAME) else None
    if field in _NAMING:
        return getattr(item, field, None)
    for names in _SAME:
        if field in names:
            for name in (field, *names):
                if hasattr(item, name):
                    return getattr(item, name)
    return None


def partition_of(item: Any) -> int | None:
    """Return the partition that an item of a topic's ``partitions`` names."""
    partition: int | None = _value("partition_index", item)
    return partition
