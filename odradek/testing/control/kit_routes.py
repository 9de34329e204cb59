"""The routes of faults, snapshots, forks, the timeline, and clients' metrics (KIP-714)."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from odradek.testing.control.route import ControlCall, Field, Json, Route
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


def _fault(number: str, call: ControlCall) -> Json:
    fault = call.fault(number)
    return {"fault": number, "rule": str(fault), "hits": fault.hits, "fired": [each._asdict() for each in fault.fired]}


async def _faults(call: ControlCall) -> Json:
    return {"faults": [_fault(number, call) for number in call.faults]}


async def _add_fault(call: ControlCall) -> Json:
    words: Any = call.body
    fault = call.broker.faults.add(**words)
    number = call.held.new_id()
    call.faults[number] = fault
    return _fault(number, call)


async def _get_fault(call: ControlCall) -> Json:
    return _fault(call.named["fault"], call)


async def _wait_for_fault(call: ControlCall) -> Json:
    number = call.named["fault"]
    await call.fault(number).wait(call.body.get("hits", 1), within=call.body.get("within", DEFAULT_WITHIN_S))
    return _fault(number, call)


async def _remove_fault(call: ControlCall) -> Json:
    number = call.named["fault"]
    call.fault(number).remove()
    last = _fault(number, call)
    del call.faults[number]
    return last


async def _clear_faults(call: ControlCall) -> Json:
    call.broker.faults.clear()
    call.faults.clear()
    return {}


async def _take_snapshot(call: ControlCall) -> Json:
    number = call.held.new_id()
    call.held.snapshots[number] = await call.broker.snapshot()
    return {"snapshot": number}


async def _restore(call: ControlCall) -> Json:
    await call.broker.restore(call.held.snapshot(call.named["snapshot"]))
    return {}


async def _fork(call: ControlCall) -> Json:
    fork = call.held.snapshot(call.named["snapshot"]).fork(configs=call.body.get("configs"))
    await fork.start()
    number = call.held.new_id()
    call.held.forks[number] = fork
    return {"fork": number, "bootstrap_servers": fork.bootstrap_servers}


async def _drop_snapshot(call: ControlCall) -> Json:
    call.held.snapshot(call.named["snapshot"]).close()
    del call.held.snapshots[call.named["snapshot"]]
    return {}


async def _forks(call: ControlCall) -> Json:
    found = call.held.forks.items()
    return {"forks": [{"fork": number, "bootstrap_servers": fork.bootstrap_servers} for number, fork in found]}


async def _drop_fork(call: ControlCall) -> Json:
    fork = call.held.fork(call.named["fork"])
    await fork.__aexit__(None, None, None)
    del call.held.forks[call.named["fork"]]
    call.held.faults.pop(fork, None)
    return {}


async def _start_timeline(call: ControlCall) -> Json:
    call.broker.timeline.start(limit=call.body.get("limit"))
    return {}


async def _stop_timeline(call: ControlCall) -> Json:
    call.broker.timeline.stop()
    return {}


async def _timeline(call: ControlCall) -> Json:
    query: Any = call.query
    found = call.broker.timeline.where(**query)
    return {"events": [event.as_json() for event in found], "text": str(found)}


async def _clear_timeline(call: ControlCall) -> Json:
    call.broker.timeline.clear()
    return {}


KIT_ROUTES = (
    Route("GET", "/faults", "All rules, and how often each has fired.", _faults),
    Route("POST", "/faults", "Add a rule. Its fields are in the documentation: Testing, Faults.", _add_fault, open_ended=True),
    Route("DELETE", "/faults", "Remove all rules.", _clear_faults),
    Route("GET", "/faults/{fault}", "One rule, and the requests it has hit.", _get_fault),
    Route(
        "POST",
        "/faults/{fault}/wait",
        "Wait until the rule has fired this often.",
        _wait_for_fault,
        {
            "hits": Field("integer", "how often; default 1"),
            "within": Field("number", "seconds; default 10"),
        },
    ),
    Route("DELETE", "/faults/{fault}", "Remove a rule.", _remove_fault),
    Route("POST", "/snapshots", "Take a snapshot of the broker's state.", _take_snapshot),
    Route("POST", "/snapshots/{snapshot}/restore", "Restore the broker to the snapshot, at the same address.", _restore),
    Route(
        "POST",
        "/snapshots/{snapshot}/fork",
        "Start another broker from the snapshot. All its routes are under /forks/{fork}.",
        _fork,
        {"configs": Field("object", "configs that override the first broker's")},
    ),
    Route("DELETE", "/snapshots/{snapshot}", "Remove a snapshot.", _drop_snapshot),
    Route("GET", "/forks", "All brokers started from snapshots.", _forks),
    Route("DELETE", "/forks/{fork}", "Stop and remove a fork.", _drop_fork),
    Route(
        "POST",
        "/timeline/start",
        "Start to record requests and responses.",
        _start_timeline,
        {"limit": Field("integer", "how many of the last events to keep; default all")},
    ),
    Route("POST", "/timeline/stop", "Stop recording.", _stop_timeline),
    Route("GET", "/timeline", "The recorded timeline, as events and as text.", _timeline, query=_EVENTS),
    Route("DELETE", "/timeline", "Discard the recorded timeline.", _clear_timeline),
)


async def _client_metrics(call: ControlCall) -> Json:
    query: Any = call.query
    return {"pushes": [_push(each) for each in call.broker.client_metrics(**query).pushes]}


async def _subscribe(call: ControlCall) -> Json:
    body: Any = call.body
    prefixes = [str(each) for each in body.get("metrics", [])]
    match = {name: str(pattern) for name, pattern in body.get("match", {}).items()}
    await call.broker.subscribe_client_metrics(*prefixes, interval_ms=body.get("interval_ms", 100), match=match)
    return {}


def _push(found: ClientPush) -> Json:
    return {
        "client_id": found.client_id,
        "client_instance_id": found.client_instance_id,
        "software": found.software,
        "time_ms": found.time_ms,
        "is_terminating": found.is_terminating,
        "points": [_point(each) for each in found.points],
    }


def _point(found: DataPoint) -> Json:
    value = found.value
    if isinstance(value, int | float):
        # JSON has no infinity or NaN.
        shown: Json = {"value": value if isfinite(value) else None}
    else:
        shown = {"count": value.count, "sum": value.total, "bounds": list(value.bounds), "counts": list(value.counts)}
    return {"metric": found.name, "kind": found.kind.value, "attributes": dict(found.attributes), **shown}


TELEMETRY_ROUTES = (
    Route(
        "GET",
        "/client-metrics",
        "The metrics that clients have pushed, in order.",
        _client_metrics,
        query={"client_id": Field("string", "of this client")},
    ),
    Route(
        "POST",
        "/client-metrics/subscription",
        "Ask clients for their metrics.",
        _subscribe,
        {
            "metrics": Field("array", "prefixes of metric names; default all"),
            "interval_ms": Field("integer", "milliseconds between pushes; default 100"),
            "match": Field("object", "patterns by client attribute; default all clients"),
        },
    ),
)
