"""What a test is told of what its clients have measured."""

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.otlp_metrics import ClientMetrics as Pushed
from odradek.protocol.otlp_metrics import DataPoint, MetricKind
from odradek.testing import Broker, ClientMetrics, ClientPush, NotReached


def point(name, value, **attributes):
    shown = {key.replace("_", "."): str(each) for key, each in attributes.items()}
    return DataPoint(name, MetricKind.SUM, shown, value, 0, is_delta=True, is_monotonic=True)


def push(*points, client_id="app"):
    return ClientPush(client_id, "id", "software 1", 0, False, points, {})


MEASURED = ClientMetrics(
    (
        push(point("sent", 1, node_id=1), point("sent", 10, node_id=2)),
        push(point("sent", 2, node_id=1), point("lag", 5)),
    )
)


def test_the_last_value_is_that_of_the_last_push_that_has_one():
    assert MEASURED.value("sent") == 2
    assert MEASURED.value("sent", node_id=2) == 10
    assert MEASURED.value("sent", **{"node.id": "1"}) == 2
    assert MEASURED.value("sent", node_id=3) is None
    assert MEASURED.value("nothing") is None


def test_values_are_in_the_order_in_which_they_were_pushed():
    assert MEASURED.values("sent", node_id=1) == [1, 2]
    assert MEASURED.values("sent") == [1, 10, 2]
    assert MEASURED.total("sent") == 13
    assert MEASURED.names == ["lag", "sent"]


def test_a_push_tells_its_own():
    assert MEASURED.pushes[0].value("sent", node_id=2) == 10
    assert MEASURED.pushes[0].value("lag") is None
    assert str(MEASURED).splitlines() == ["client 'app' (software 1): 2 data points"] * 2
    assert str(ClientMetrics(())) == "nothing was pushed"


def test_a_subscription_that_cannot_be_is_refused():
    with Broker() as broker, pytest.raises(KafkaError, match="interval must be between") as refused:
        broker.subscribe_client_metrics(interval_ms=1)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


async def test_waiting_tells_who_has_pushed_instead():
    async with Broker() as broker:
        await broker.subscribe_client_metrics("a", "b", match={"client_id": "x"}, name="mine")
        assert broker.core.controller.image.configs(16, "mine") == {
            "metrics": "a,b",
            "interval.ms": "100",
            "match": "client_id=x",
        }
        with pytest.raises(NotReached, match="no push of that client; clients that have pushed: none"):
            await broker.wait_for(client_id="app", within=0)
        with pytest.raises(TypeError, match="metric, pushes"):
            await broker.wait_for(client_id="app", lag=0)


def test_pushes_outlive_their_client_and_its_broker():
    with Broker() as broker:
        kept = broker._thread.broker.client_pushes
        attributes = {
            "client_id": "app",
            "client_instance_id": "id",
            "client_software_name": None,
            "client_software_version": None,
        }
        from odradek.broker.telemetry.received import Push

        kept.append(Push(None, attributes, Pushed({}, (point("sent", 1),)), 5, True))
        broker.stop()
        broker.start()
        [told] = broker.client_metrics("app").pushes
        assert (told.time_ms, told.is_terminating, told.software, told.value("sent")) == (5, True, "", 1)
        assert broker.client_metrics("other").pushes == ()
