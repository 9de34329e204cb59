"""The routes of faults, snapshots, forks, the timeline, and clients' metrics (KIP-714)."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from odradek.http.control.answers import (
    ClientPushes,
    Done,
    Fault,
    Faults,
    Fired,
    Fork,
    Forks,
    Point,
    Push,
    Snapshot,
    Timeline,
)
from odradek.http.control.route import ControlCall, Field, Route
from odradek.testing.waiting import DEFAULT_WITHIN_S

if TYPE_CHECKING:
    from odradek.protocol.otlp_metrics import DataPoint
    from odradek.testing.client_metrics import ClientPush

_EVENTS = {
    "api": Field("string", "requests of this API"),
    "client_id": Field("string", "of this client"),
    "group": Field("string", "about this group"),
    "transactional_id": Field("string", "about this transactional id"),
    "topic": Field("string", "about this topic"),
    "error": Field("string", "requests answered with this error; ANY for any error"),
}


def _fault(number: str, call: ControlCall) -> Fault:
    fault = call.fault(number)
    fired: list[Fired] = [
        {
            "rule": each.rule,
            "action": each.action,
            "api": each.api,
            "client_id": each.client_id,
            "group": each.group,
            "transactional_id": each.transactional_id,
            "topics": list(each.topics),
        }
        for each in fault.fired
    ]
    return {"fault": number, "rule": str(fault), "hits": fault.hits, "fired": fired}


async def _faults(call: ControlCall) -> Faults:
    return {"faults": [_fault(number, call) for number in call.faults]}


async def _add_fault(call: ControlCall) -> Fault:
    words: Any = call.body
    fault = call.broker.faults.add(**words)
    number = call.held.new_id()
    call.faults[number] = fault
    return _fault(number, call)


async def _get_fault(call: ControlCall) -> Fault:
    return _fault(call.named["fault"], call)


async def _wait_for_fault(call: ControlCall) -> Fault:
    number = call.named["fault"]
    await call.fault(number).wait(call.body.get("hits", 1), within=call.body.get("within", DEFAULT_WITHIN_S))
    return _fault(number, call)


async def _remove_fault(call: ControlCall) -> Fault:
    number = call.named["fault"]
    call.fault(number).remove()
    last = _fault(number, call)
    del call.faults[number]
    return last


async def _clear_faults(call: ControlCall) -> Done:
    call.broker.faults.clear()
    call.faults.clear()
    return {}


async def _take_snapshot(call: ControlCall) -> Snapshot:
    number = call.held.new_id()
    call.held.snapshots[number] = await call.broker.snapshot()
    return {"snapshot": number}


async def _restore(call: ControlCall) -> Done:
    await call.broker.restore(call.held.snapshot(call.named["snapshot"]))
    return {}


async def _fork(call: ControlCall) -> Fork:
    fork = call.held.snapshot(call.named["snapshot"]).fork(configs=call.body.get("configs"))
    await fork.start()
    number = call.held.new_id()
    call.held.forks[number] = fork
    return {"fork": number, "bootstrap_servers": fork.bootstrap_servers}


async def _drop_snapshot(call: ControlCall) -> Done:
    call.held.snapshot(call.named["snapshot"]).close()
    del call.held.snapshots[call.named["snapshot"]]
    return {}


async def _forks(call: ControlCall) -> Forks:
    found = call.held.forks.items()
    return {"forks": [{"fork": number, "bootstrap_servers": fork.bootstrap_servers} for number, fork in found]}


async def _drop_fork(call: ControlCall) -> Done:
    fork = call.held.fork(call.named["fork"])
    await fork.__aexit__(None, None, None)
    del call.held.forks[call.named["fork"]]
    call.held.faults.pop(fork, None)
    return {}


async def _start_timeline(call: ControlCall) -> Done:
    call.broker.timeline.start(limit=call.body.get("limit"))
    return {}


async def _stop_timeline(call: ControlCall) -> Done:
    call.broker.timeline.stop()
    return {}


async def _timeline(call: ControlCall) -> Timeline:
    query: Any = call.query
    found = call.broker.timeline.where(**query)
    events: Any = [event.as_json() for event in found]
    return {"events": events, "text": str(found)}


async def _clear_timeline(call: ControlCall) -> Done:
    call.broker.timeline.clear()
    return {}


KIT_ROUTES = (
    Route("GET", "/faults", "All rules, and how often each has fired.", _faults, Faults),
    Route(
        "POST", "/faults", "Add a rule. Its fields are in the documentation: Testing, Faults.", _add_fault, Fault, open_ended=True
    ),
    Route("DELETE", "/faults", "Remove all rules.", _clear_faults, Done),
    Route("GET", "/faults/{fault}", "One rule, and the requests it has hit.", _get_fault, Fault),
    Route(
        "POST",
        "/faults/{fault}/wait",
        "Wait until the rule has fired this often.",
        _wait_for_fault,
        Fault,
        {
            "hits": Field("integer", "how often; default 1"),
            "within": Field("number", "seconds; default 10"),
        },
    ),
    Route("DELETE", "/faults/{fault}", "Remove a rule.", _remove_fault, Fault),
    Route("POST", "/snapshots", "Take a snapshot of the broker's state.", _take_snapshot, Snapshot),
    Route("POST", "/snapshots/{snapshot}/restore", "Restore the broker to the snapshot, at the same address.", _restore, Done),
    Route(
        "POST",
        "/snapshots/{snapshot}/fork",
        "Start another broker from the snapshot. All its routes are under /forks/{fork}.",
        _fork,
        Fork,
        {"configs": Field("object", "configs that override the first broker's")},
    ),
    Route("DELETE", "/snapshots/{snapshot}", "Remove a snapshot.", _drop_snapshot, Done),
    Route("GET", "/forks", "All brokers started from snapshots.", _forks, Forks),
    Route("DELETE", "/forks/{fork}", "Stop and remove a fork.", _drop_fork, Done),
    Route(
        "POST",
        "/timeline/start",
        "Start to record requests and responses.",
        _start_timeline,
        Done,
        {"limit": Field("integer", "how many of the last events to keep; default all")},
    ),
    Route("POST", "/timeline/stop", "Stop recording.", _stop_timeline, Done),
    Route("GET", "/timeline", "The recorded timeline, as events and as text.", _timeline, Timeline, query=_EVENTS),
    Route("DELETE", "/timeline", "Discard the recorded timeline.", _clear_timeline, Done),
)


async def _client_metrics(call: ControlCall) -> ClientPushes:
    query: Any = call.query
    return {"pushes": [_push(each) for each in call.broker.client_metrics(**query).pushes]}


async def _subscribe(call: ControlCall) -> Done:
    body: Any = call.body
    prefixes = [str(each) for each in body.get("metrics", [])]
    match = {name: str(pattern) for name, pattern in body.get("match", {}).items()}
    await call.broker.subscribe_client_metrics(*prefixes, interval_ms=body.get("interval_ms", 100), match=match)
    return {}


def _push(found: ClientPush) -> Push:
    return {
        "client_id": found.client_id,
        "client_instance_id": found.client_instance_id,
        "software": found.software,
        "time_ms": found.time_ms,
        "is_terminating": found.is_terminating,
        "points": [_point(each) for each in found.points],
    }


def _point(found: DataPoint) -> Point:
    value = found.value
    point: Point = {"metric": found.name, "kind": found.kind.value, "attributes": dict(found.attributes)}
    if isinstance(value, int | float):
        # JSON has no infinity or NaN.
        point["value"] = value if isfinite(value) else None
    else:
        point["count"], point["sum"] = value.count, value.total
        point["bounds"], point["counts"] = list(value.bounds), list(value.counts)
    return point


TELEMETRY_ROUTES = (
    Route(
        "GET",
        "/client-metrics",
        "The metrics that clients have pushed, in order.",
        _client_metrics,
        ClientPushes,
        query={"client_id": Field("string", "of this client")},
    ),
    Route(
        "POST",
        "/client-metrics/subscription",
        "Ask clients for their metrics.",
        _subscribe,
        Done,
        {
            "metrics": Field("array", "prefixes of metric names; default all"),
            "interval_ms": Field("integer", "milliseconds between pushes; default 100"),
            "match": Field("object", "patterns by client attribute; default all clients"),
        },
    ),
)
