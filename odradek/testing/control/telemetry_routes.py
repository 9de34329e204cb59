"""The routes of what clients measure (KIP-714)."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from odradek.testing.control.fields import Field, Json
from odradek.testing.control.route import Call, Route

if TYPE_CHECKING:
    from odradek.protocol.otlp_metrics import DataPoint
    from odradek.testing.client_metrics import ClientPush


async def _client_metrics(call: Call) -> Json:
    query: Any = call.query
    return {"pushes": [_push(each) for each in call.broker.client_metrics(**query).pushes]}


async def _subscribe(call: Call) -> Json:
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
        # JSON has no other numbers.
        shown: Json = {"value": value if isfinite(value) else None}
    else:
        shown = {"count": value.count, "sum": value.total, "bounds": list(value.bounds), "counts": list(value.counts)}
    return {"metric": found.name, "kind": found.kind.value, "attributes": dict(found.attributes), **shown}


TELEMETRY_ROUTES = (
    Route(
        "GET",
        "/client-metrics",
        "What clients have measured and pushed, in order.",
        _client_metrics,
        query={"client_id": Field("string", "of this client")},
    ),
    Route(
        "POST",
        "/client-metrics/subscription",
        "Ask clients for their metrics.",
        _subscribe,
        {
            "metrics": Field("array", "prefixes of their names; all if it is left out"),
            "interval_ms": Field("integer", "how often they push, 100 if it is left out"),
            "match": Field("object", "which clients: patterns by attribute; all if it is left out"),
        },
    ),
)
