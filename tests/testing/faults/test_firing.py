"""Which requests a rule fires at, and what is told of it."""

import kafka
import pytest

from odradek.testing import Broker
from tests.testing.faults.librdkafka import Librdkafka

WITHIN_S = 10


@pytest.fixture(scope="module")
def shared():
    with Broker(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture
def broker(shared):
    yield shared
    shared.faults.clear()


@pytest.fixture
def client(broker):
    with kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop", retries=0) as client:
        yield client


def produced(client, count):
    """Whether each of so many records was taken."""
    taken = []
    for _ in range(count):
        sent = client.send("orders", b"1")
        try:
            sent.get(WITHIN_S)
        except kafka.errors.KafkaError:
            taken.append(False)
        else:
            taken.append(True)
    return taken


def test_nothing_has_fired_before_there_is_a_rule():
    with Broker() as broker:
        assert broker.faults.fired == []


@pytest.mark.parametrize(
    ("when", "taken"),
    [
        ({"nth": 2}, [True, False, True, True]),
        ({"times": 2}, [False, False, True, True]),
        ({"after": 1, "times": 1}, [True, False, True, True]),
        ({"client_id": "another"}, [True, True, True, True]),
        ({"predicate": lambda request: request.message.acks == 0}, [True, True, True, True]),
        ({"predicate": lambda request: request.topics == ["orders"]}, [False, False, False, False]),
        ({"probability": 1}, [False, False, False, False]),
    ],
)
def test_a_rule_fires_at_some_of_what_it_means(broker, client, when, taken):
    with broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS", **when) as fault:
        assert produced(client, 4) == taken
    assert fault.hits == taken.count(False)


def test_chance_is_repeated_by_its_seed(broker, client):
    found = []
    for _ in range(2):
        with broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS", probability=0.5, seed=7):
            found.append(produced(client, 12))
    assert found[0] == found[1]
    assert 0 < found[0].count(True) < 12


def test_a_rule_without_an_action_observes(broker, client):
    before = len(broker.faults.fired)
    with broker.faults.add(api="Produce", topic="orders") as fault:
        assert produced(client, 2) == [True, True]
        fault.wait(2)
    [first, second] = broker.faults.fired[before:]
    assert (first.api, first.client_id, first.topics, first.action) == ("Produce", "shop", ("orders",), None)
    assert fault.fired == [first, second]


def test_a_request_that_one_rule_has_the_next_does_not_see(broker, client):
    observer = broker.faults.add(api="Produce")
    first = broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS", times=1)
    second = broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS", times=1)
    assert produced(client, 3) == [False, False, True]
    assert [each.hits for each in (observer, first, second)] == [3, 1, 1]


def test_a_rule_that_does_not_fire_says_how_often_it_has(broker):
    fault = broker.faults.add(api="Produce", topic="nobody's")
    with pytest.raises(
        AssertionError, match=r"waited 0\.01 s for 1 of the rule api=PRODUCE, topic=\"nobody's\"; it fired 0 times"
    ):
        fault.wait(within=0.01)


def test_what_the_test_asks_itself_no_rule_meets(broker):
    fault = broker.faults.add(error="UNKNOWN_SERVER_ERROR")
    broker.produce("orders", ["a row"])
    assert broker.records("orders")[-1].text == "a row"
    assert "orders" in broker.topics
    assert fault.hits == 0


def test_a_broker_without_rules_has_no_gate():
    with Broker() as other:
        gates = lambda: other._thread.broker.core.dispatcher._gate  # noqa: E731
        assert gates() is None
        with other.faults.add(api="Produce"):
            assert gates() is not None
        assert gates() is None


def test_what_a_rule_holds_up_is_carried_out_when_the_broker_stops():
    with Broker(topics={"orders": 1}) as broker:
        client = Librdkafka(broker)
        fault = broker.faults.add(api="Produce", stall=True, times=1)
        client.send("orders", b"1")
        fault.wait()
        broker.stop()
        broker.start()
        client.wait()
        assert [record.value for record in broker.records("orders")] == [b"1"]
