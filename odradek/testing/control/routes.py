"""The routes of the control interface for a broker's state, time and life cycle. They run on the broker's loop."""

from __future__ import annotations

from typing import Any

from odradek.controller.metadata.topic import INTERNAL_TOPICS
from odradek.testing.control import rendering
from odradek.testing.control.kit_routes import KIT_ROUTES, TELEMETRY_ROUTES
from odradek.testing.control.route import BadRequest, Call, Field, Json, Missing, Route
from odradek.testing.topics import NewTopic
from odradek.testing.waiting import DEFAULT_WITHIN_S

_ISOLATION = Field("string", "the isolation level of the read", choices=("read_uncommitted", "read_committed"))
_UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds")


async def _ready(call: Call) -> Json:
    return {"bootstrap_servers": call.broker.bootstrap_servers, "is_running": call.broker.is_running}


async def _topics(call: Call) -> Json:
    return {"topics": [rendering.topic(each) for each in (await call.broker.topics).values()]}


async def _create_topic(call: Call) -> Json:
    name = call.body["name"]
    if name in INTERNAL_TOPICS:
        raise BadRequest(f"{name} is an internal topic: records cannot be written to it here")
    await call.broker.create_topics({name: NewTopic(call.body.get("partitions"), call.body.get("configs", {}))})
    return rendering.topic((await call.broker.topics)[name])


async def _records(call: Call) -> Json:
    isolation: Any = call.query.get("isolation_level", "read_uncommitted")
    found = await call.broker.records(call.named["topic"], isolation_level=isolation)
    return {"records": [rendering.record(each) for each in found]}


async def _produce(call: Call) -> Json:
    rows = [rendering.row(each) for each in call.body["records"]]
    written = await call.broker.produce(call.named["topic"], rows, partition=call.body.get("partition"))
    return {"records": [rendering.record(each) for each in written]}


async def _groups(call: Call) -> Json:
    return {"groups": [rendering.group(each) for each in (await call.broker.groups).values()]}


async def _group(call: Call) -> Json:
    found = (await call.broker.groups).get(call.named["group"])
    if found is None:
        raise Missing(f"there is no group {call.named['group']!r}")
    return rendering.group(found)


async def _transactions(call: Call) -> Json:
    return {"transactions": [rendering.transaction(each) for each in (await call.broker.transactions).values()]}


async def _wait(call: Call) -> Json:
    condition: Any = {name: value for name, value in call.body.items() if name != "within"}
    await call.broker.wait_for(within=call.body.get("within", DEFAULT_WITHIN_S), **condition)
    return {}


async def _clock(call: Call) -> Json:
    clock = call.broker.clock
    return {"now_ms": clock.now_ms(), "is_frozen": clock.is_frozen, "speed": clock.speed}


async def _advance(call: Call) -> Json:
    duration: Any = call.body
    await call.broker.clock.advance(**duration)
    return await _clock(call)


async def _freeze(call: Call) -> Json:
    call.broker.clock.freeze()
    return await _clock(call)


async def _resume(call: Call) -> Json:
    call.broker.clock.resume()
    return await _clock(call)


async def _speed(call: Call) -> Json:
    call.broker.clock.speed = call.body["speed"]
    return await _clock(call)


async def _stop(call: Call) -> Json:
    await call.broker.stop()
    return await _ready(call)


async def _kill(call: Call) -> Json:
    call.broker.kill()
    return await _ready(call)


async def _start(call: Call) -> Json:
    await call.broker.start()
    return await _ready(call)


async def _log(call: Call) -> Json:
    return {"lines": [rendering.line(each) for each in call.broker.lines]}


ROUTES = (
    Route("GET", "/ready", "Wait until clients can connect. Returns the address.", _ready, is_open=True),
    Route("GET", "/topics", "All topics, with their offsets.", _topics),
    Route(
        "POST",
        "/topics",
        "Create a topic if it does not exist. 422 if it exists with other partitions or configs.",
        _create_topic,
        {
            "name": Field("string", "its name", is_required=True),
            "partitions": Field("integer", "number of partitions; default num.partitions"),
            "configs": Field("object", "its configs: an object of names and values"),
        },
    ),
    Route("GET", "/topics/{topic}/records", "All records of a topic.", _records, query={"isolation_level": _ISOLATION}),
    Route(
        "POST",
        "/topics/{topic}/records",
        "Write records. Returns them with partitions and offsets.",
        _produce,
        {
            "records": Field(
                "array", "objects with key, value and headers; key_base64, value_base64 for bytes", is_required=True
            ),
            "partition": Field("integer", "the partition to write to; default: by key, or in turn"),
        },
    ),
    Route("GET", "/groups", "All groups, with members, offsets and lag.", _groups),
    Route("GET", "/groups/{group}", "One group.", _group),
    Route("GET", "/transactions", "All transactional ids, with the state of their transactions.", _transactions),
    Route(
        "POST",
        "/wait",
        "Wait for a state of a group, transactional id, topic or client. A 409 has the actual state.",
        _wait,
        {
            "group": Field("string", "a group"),
            "transactional_id": Field("string", "or a transactional id"),
            "topic": Field("string", "or a topic"),
            "state": Field("string", "the state to wait for"),
            "members": Field("integer", "of a group: the number of members to wait for"),
            "lag": Field("integer", "of a group: the largest lag to accept"),
            "records": Field("integer", "of a topic: the least number of records"),
            "isolation_level": _ISOLATION,
            "client_id": Field("string", "or a client that pushes its metrics"),
            "pushes": Field("integer", "of a client: the least number of pushes"),
            "metric": Field("string", "of a client: the name of a metric to wait for"),
            "within": Field("number", "seconds; default 10"),
        },
    ),
    Route("GET", "/clock", "The broker's time.", _clock),
    Route(
        "POST",
        "/clock/advance",
        "Advance the broker's time. Timers that became due have run when this answers.",
        _advance,
        {unit: Field("number", f"number of {unit}") for unit in _UNITS},
    ),
    Route("POST", "/clock/freeze", "Stop the broker's time.", _freeze),
    Route("POST", "/clock/resume", "Resume the broker's time.", _resume),
    Route(
        "POST",
        "/clock/speed",
        "Set the speed of the broker's time.",
        _speed,
        {"speed": Field("number", "speed relative to the machine's clock", is_required=True)},
    ),
    Route("POST", "/broker/stop", "Stop the broker cleanly. This interface keeps running.", _stop),
    Route("POST", "/broker/kill", "Kill the broker like kill -9. This interface keeps running.", _kill),
    Route("POST", "/broker/start", "Start the broker again, at the same address.", _start),
    Route("GET", "/log", "The latest lines of the broker's log.", _log),
    *KIT_ROUTES,
    *TELEMETRY_ROUTES,
)
