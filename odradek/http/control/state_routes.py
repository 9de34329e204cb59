"""The routes of the control API for a broker's state, time and life cycle. They run on the broker's loop.

A broker's state is JSON. Bytes are text if they are valid UTF-8, otherwise base64 in a field named ``..._base64``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.http.control.answers import (
    BrokerState,
    ClockState,
    Done,
    Group,
    GroupPartition,
    Groups,
    Header,
    LogLine,
    LogLines,
    Member,
    Partition,
    PartitionOffsets,
    Record,
    Records,
    Topic,
    Topics,
    Transaction,
    Transactions,
)
from odradek.http.control.route import BadRequest, ControlCall, Field, Json, Missing, Route, check
from odradek.protocol.texts import decode_base64, encode_base64, utf8_or_none
from odradek.testing.records import NewTopic
from odradek.testing.waiting import DEFAULT_WITHIN_S

if TYPE_CHECKING:
    from odradek.testing import in_process, state
    from odradek.testing.records import StoredRecord

_ROW = {
    "key": Field("string", "the key, as UTF-8"),
    "key_base64": Field("string", "the key, if it is not text"),
    "value": Field("string", "the value, as UTF-8; null and other JSON are also allowed"),
    "value_base64": Field("string", "the value, if it is not text"),
    "headers": Field("object", "the headers: an object of names and texts"),
}


def _topic_json(found: state.Topic) -> Topic:
    """Return a topic as JSON."""
    partitions: list[PartitionOffsets] = [
        {"partition": index, "start_offset": found.start_offsets[index], "end_offset": end}
        for index, end in found.end_offsets.items()
    ]
    return {"name": found.name, "partitions": partitions}


def _group_json(found: state.Group) -> Group:
    """Return a group as JSON."""
    members: list[Member] = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": [_partition(each) for each in member.partitions],
        }
        for member in found.members
    ]
    partitions: list[GroupPartition] = [
        {**_partition(each), "offset": found.offsets.get(each), "lag": lag} for each, lag in found.lag.items()
    ]
    return {
        "group_id": found.group_id,
        "type": found.group_type,
        "state": found.state,
        "protocol": found.protocol,
        "members": members,
        "partitions": partitions,
        "lag": found.total_lag,
        "acknowledged": found.acknowledged,
        "in_flight": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "first_offset": each.first_offset,
                "last_offset": each.last_offset,
                "state": each.state,
                "delivery_count": each.delivery_count,
                "member_id": each.member_id,
                "client_id": each.client_id,
                "lock_left_ms": each.lock_left_ms,
            }
            for each in found.in_flight
        ],
        "tasks": [
            {
                "subtopology_id": each.subtopology_id,
                "partition": each.partition,
                "active": each.active,
                "standby": list(each.standby),
                "warmup": list(each.warmup),
                "moves_to": each.moves_to,
            }
            for each in found.tasks
        ],
    }


def _transaction_json(found: state.Transaction) -> Transaction:
    """Return a transactional id as JSON."""
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "partitions": [_partition(each) for each in found.partitions],
    }


def _record_json(found: StoredRecord) -> Record:
    """Return a record as JSON."""
    return {
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": found.timestamp,
        **_key_json(found.key),
        **_value_json(found.value),
        "headers": [_header_json(name, value) for name, value in found.headers],
    }


def _line_json(found: in_process.LogLine) -> LogLine:
    """Return a line of the broker's log as JSON."""
    return {"level": found.level, "text": str(found)}


def _row_of(asked: object) -> tuple[object, object, dict[str, object]]:
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
        return decode_base64(encoded)
    except ValueError as error:
        raise BadRequest(f"{name}_base64: {error}") from error


class _Key(TypedDict, total=False):
    key: str | None
    key_base64: str


class _Value(TypedDict, total=False):
    value: str | None
    value_base64: str


def _key_json(content: bytes | None) -> _Key:
    text = utf8_or_none(content)
    return {"key": text} if content is None or text is not None else {"key_base64": encode_base64(content)}


def _value_json(content: bytes | None) -> _Value:
    text = utf8_or_none(content)
    return {"value": text} if content is None or text is not None else {"value_base64": encode_base64(content)}


def _header_json(name: str, content: bytes | None) -> Header:
    return {"name": name, **_value_json(content)}


def _partition(partition: state.Partition) -> Partition:
    return {"topic": partition[0], "partition": partition[1]}


_ISOLATION = Field("string", "the isolation level of the read", choices=("read_uncommitted", "read_committed"))
_UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds")


async def _broker_state(call: ControlCall) -> BrokerState:
    return {"bootstrap_servers": call.broker.bootstrap_servers, "is_running": call.broker.is_running}


async def _topics(call: ControlCall) -> Topics:
    return {"topics": [_topic_json(each) for each in (await call.broker.topics).values()]}


async def _create_topic(call: ControlCall) -> Topic:
    name = call.body["name"]
    if name in INTERNAL_TOPICS:
        raise BadRequest(f"{name} is an internal topic: records cannot be written to it here")
    await call.broker.create_topics({name: NewTopic(call.body.get("partitions"), call.body.get("configs", {}))})
    return _topic_json((await call.broker.topics)[name])


async def _records(call: ControlCall) -> Records:
    isolation: Any = call.query.get("isolation_level", "read_uncommitted")
    found = await call.broker.records(call.named["topic"], isolation_level=isolation)
    return {"records": [_record_json(each) for each in found]}


async def _produce(call: ControlCall) -> Records:
    rows = [_row_of(each) for each in call.body["records"]]
    written = await call.broker.produce(call.named["topic"], rows, partition=call.body.get("partition"))
    return {"records": [_record_json(each) for each in written]}


async def _groups(call: ControlCall) -> Groups:
    return {"groups": [_group_json(each) for each in (await call.broker.groups).values()]}


async def _group(call: ControlCall) -> Group:
    found = (await call.broker.groups).get(call.named["group"])
    if found is None:
        raise Missing(f"there is no group {call.named['group']!r}")
    return _group_json(found)


async def _transactions(call: ControlCall) -> Transactions:
    return {"transactions": [_transaction_json(each) for each in (await call.broker.transactions).values()]}


async def _wait(call: ControlCall) -> Done:
    condition: Any = {name: value for name, value in call.body.items() if name != "within"}
    await call.broker.wait_for(within=call.body.get("within", DEFAULT_WITHIN_S), **condition)
    return {}


async def _clock(call: ControlCall) -> ClockState:
    clock = call.broker.clock
    return {"now_ms": clock.now_ms(), "is_frozen": clock.is_frozen, "speed": clock.speed}


async def _advance(call: ControlCall) -> ClockState:
    duration: Any = call.body
    await call.broker.clock.advance(**duration)
    return await _clock(call)


async def _freeze(call: ControlCall) -> ClockState:
    call.broker.clock.freeze()
    return await _clock(call)


async def _resume(call: ControlCall) -> ClockState:
    call.broker.clock.resume()
    return await _clock(call)


async def _speed(call: ControlCall) -> ClockState:
    call.broker.clock.speed = call.body["speed"]
    return await _clock(call)


async def _stop(call: ControlCall) -> BrokerState:
    await call.broker.stop()
    return await _broker_state(call)


async def _kill(call: ControlCall) -> BrokerState:
    call.broker.kill()
    return await _broker_state(call)


async def _start(call: ControlCall) -> BrokerState:
    await call.broker.start()
    return await _broker_state(call)


async def _log(call: ControlCall) -> LogLines:
    return {"lines": [_line_json(each) for each in call.broker.lines]}


STATE_ROUTES = (
    Route("GET", "/broker", "The broker's address, and whether it runs.", _broker_state, BrokerState),
    Route("GET", "/topics", "All topics, with their offsets.", _topics, Topics),
    Route(
        "POST",
        "/topics",
        "Create a topic if it does not exist. 422 if it exists with other partitions or configs.",
        _create_topic,
        Topic,
        {
            "name": Field("string", "its name", is_required=True),
            "partitions": Field("integer", "number of partitions; default num.partitions"),
            "configs": Field("object", "its configs: an object of names and values"),
        },
    ),
    Route("GET", "/topics/{topic}/records", "All records of a topic.", _records, Records, query={"isolation_level": _ISOLATION}),
    Route(
        "POST",
        "/topics/{topic}/records",
        "Write records. Returns them with partitions and offsets.",
        _produce,
        Records,
        {
            "records": Field(
                "array", "objects with key, value and headers; key_base64, value_base64 for bytes", is_required=True
            ),
            "partition": Field("integer", "the partition to write to; default: by key, or in turn"),
        },
    ),
    Route("GET", "/groups", "All groups, with members, offsets and lag.", _groups, Groups),
    Route("GET", "/groups/{group}", "One group.", _group, Group),
    Route("GET", "/transactions", "All transactional ids, with the state of their transactions.", _transactions, Transactions),
    Route(
        "POST",
        "/wait",
        "Wait for a state of a group, transactional id, topic or client. A 409 has the actual state.",
        _wait,
        Done,
        {
            "group": Field("string", "a group"),
            "transactional_id": Field("string", "or a transactional id"),
            "topic": Field("string", "or a topic"),
            "state": Field("string", "the state to wait for"),
            "members": Field("integer", "of a group: the number of members to wait for"),
            "lag": Field("integer", "of a group: the largest lag to accept"),
            "acknowledged": Field("integer", "of a share group: the least number of records accepted since the broker started"),
            "records": Field("integer", "of a topic: the least number of records"),
            "isolation_level": _ISOLATION,
            "client_id": Field("string", "or a client that pushes its metrics"),
            "pushes": Field("integer", "of a client: the least number of pushes"),
            "metric": Field("string", "of a client: the name of a metric to wait for"),
            "within": Field("number", "seconds; default 10"),
        },
    ),
    Route("GET", "/clock", "The broker's time.", _clock, ClockState),
    Route(
        "POST",
        "/clock/advance",
        "Advance the broker's time. Timers that became due have run when this answers.",
        _advance,
        ClockState,
        {unit: Field("number", f"number of {unit}") for unit in _UNITS},
    ),
    Route("POST", "/clock/freeze", "Stop the broker's time.", _freeze, ClockState),
    Route("POST", "/clock/resume", "Resume the broker's time.", _resume, ClockState),
    Route(
        "POST",
        "/clock/speed",
        "Set the speed of the broker's time.",
        _speed,
        ClockState,
        {"speed": Field("number", "speed relative to the machine's clock", is_required=True)},
    ),
    Route("POST", "/broker/stop", "Stop the broker cleanly. This interface keeps running.", _stop, BrokerState),
    Route("POST", "/broker/kill", "Kill the broker like kill -9. This interface keeps running.", _kill, BrokerState),
    Route("POST", "/broker/start", "Start the broker again, at the same address.", _start, BrokerState),
    Route("GET", "/log", "The latest lines of the broker's log.", _log, LogLines),
)
