"""What clients measure, over HTTP."""

from odradek.broker.telemetry.received import Push
from odradek.protocol.otlp_metrics import Buckets, ClientMetrics, DataPoint, MetricKind

WHO = {"client_instance_id": "id", "client_software_name": "software", "client_software_version": "1"}


def pushed(client_id, *points):
    return Push(None, WHO | {"client_id": client_id}, ClientMetrics({}, points), 5, False)


async def test_what_clients_have_pushed_is_told_in_order(control, broker):
    gauge = DataPoint("m", MetricKind.GAUGE, {"topic": "t"}, 1.5, 0)
    histogram = DataPoint("h", MetricKind.HISTOGRAM, {}, Buckets(3, 9.0, (1.0,), (1, 2)), 0)
    broker.client_pushes += [pushed("a", gauge), pushed("b", gauge._replace(value=float("nan"))), pushed("a", histogram)]
    found = (await control.done("GET", "/client-metrics?client_id=a"))["pushes"]
    assert [each.pop("points") for each in found] == [
        [{"metric": "m", "kind": "gauge", "attributes": {"topic": "t"}, "value": 1.5}],
        [{"metric": "h", "kind": "histogram", "attributes": {}, "count": 3, "sum": 9.0, "bounds": [1.0], "counts": [1, 2]}],
    ]
    told = {"client_id": "a", "client_instance_id": "id", "software": "software 1", "time_ms": 5, "is_terminating": False}
    assert found == [told, told]
    every = (await control.done("GET", "/client-metrics"))["pushes"]
    assert [each["points"][0].get("value") for each in every] == [1.5, None, None]
    await control.done("POST", "/wait", {"client_id": "a", "pushes": 2, "metric": "h"})


async def test_clients_are_asked(control, broker):
    asked = {"metrics": ["a", "b"], "interval_ms": 500, "match": {"client_id": "x"}}
    await control.done("POST", "/client-metrics/subscription", asked)
    configs = broker.core.controller.image.configs(16, "odradek-testing")
    assert configs == {"metrics": "a,b", "interval.ms": "500", "match": "client_id=x"}
    status, answer = await control("POST", "/client-metrics/subscription", {"interval_ms": 1})
    assert (status, answer["code"]) == (422, "INVALID_REQUEST")
