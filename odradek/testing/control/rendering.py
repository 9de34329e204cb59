"""A broker's state as JSON. Bytes are text if they are valid UTF-8, otherwise base64 in a field named ``..._base64``."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

from odradek.testing.control.route import BadRequest, Field, Json, check

if TYPE_CHECKING:
    from odradek.testing.in_process import LogLine
    from odradek.testing.records import StoredRecord
    from odradek.testing.state import Group, Partition, Topic, Transaction

_ROW = {
    "key": Field("string", "the key, as UTF-8"),
    "key_base64": Field("string", "the key, if it is not text"),
    "value": Field("string", "the value, as UTF-8; null and other JSON are also allowed"),
    "value_base64": Field("string", "the value, if it is not text"),
    "headers": Field("object", "the headers: an object of names and texts"),
}


def topic(found: Topic) -> Json:
    """Return a topic as JSON."""
    partitions = [
        {"partition": index, "start_offset": found.start_offsets[index], "end_offset": end}
        for index, end in found.end_offsets.items()
    ]
    return {"name": found.name, "partitions": partitions}


def group(found: Group) -> Json:
    """Return a group as JSON."""
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": [_partition(each) for each in member.partitions],
        }
        for member in found.members
    ]
    partitions = [{**_partition(each), "offset": found.offsets.get(each), "lag": lag} for each, lag in found.lag.items()]
    return {
        "group_id": found.group_id,
        "state": found.state,
        "protocol": found.protocol,
        "members": members,
        "partitions": partitions,
        "lag": found.total_lag,
    }


def transaction(found: Transaction) -> Json:
    """Return a transactional id as JSON."""
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "partitions": [_partition(each) for each in found.partitions],
    }


def record(found: StoredRecord) -> Json:
    """Return a record as JSON."""
    return {
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": found.timestamp,
        **_content("key", found.key),
        **_content("value", found.value),
        "headers": [{"name": name, **_content("value", value)} for name, value in found.headers],
    }


def line(found: LogLine) -> Json:
    """Return a line of the broker's log as JSON."""
    return {"level": found.level, "text": str(found)}


def row(asked: object) -> tuple[object, object, dict[str, object]]:
    """Return key, value and headers of a record to write. Raises BadRequest."""
    if not isinstance(asked, dict):
        raise BadRequest(f"a record must be an object with key, value and headers, not {asked!r}")
    # Key and value are not checked: any JSON may be a value.
    check(_ROW, {name: content for name, content in asked.items() if name not in ("key", "value")}, "a record")
    return _given("key", asked), _given("value", asked), asked.get("headers", {})


def _given(name: str, asked: Json) -> object:
    encoded = asked.get(f"{name}_base64")
    if encoded is None:
        return asked.get(name)
    try:
        return b64decode(encoded, validate=True)
    except Base64Error as error:
        raise BadRequest(f"{name}_base64: {error}") from error


def _content(name: str, content: bytes | None) -> Json:
    try:
        return {name: None if content is None else content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(content or b"").decode()}


def _partition(partition: Partition) -> Json:
    return {"topic": partition[0], "partition": partition[1]}
