"""What can be asked of a broker over HTTP: what the kit does in Python, and the same refusals in words."""

import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError

from odradek.common.logging import log
from odradek.http.control import ROUTES
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer_beside


async def test_a_broker_says_where_it_is_without_a_token(control, broker):
    status, answer = await control("GET", "/ready", token="")
    assert (status, answer) == (200, {"bootstrap_servers": broker.bootstrap_servers, "is_running": True})


async def test_nothing_else_is_said_without_the_token(control):
    for route in ROUTES:
        status, answer = await control(route.method, route.path.replace("{", "").replace("}", ""), token="a guess")
        assert (status, "token" in answer["error"]) == (401, True), route.path


async def test_each_cause_of_a_refusal_is_a_line_and_not_for_ever(control, capsys):
    for _ in range(15):
        assert (await control("GET", "/topics", token="a guess"))[0] == 401
    await control.done("GET", "/topics")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["peer"], line["cause"]) for line in lines] == [
        ("HTTP request refused", "127.0.0.1", "its token is wrong")
    ] * 10
    assert "a guess" not in json.dumps(lines)


async def test_records_go_in_and_come_out(control):
    rows = [{"key": "a", "value": {"total": 12}, "headers": {"h": "1"}}, {"key": "b", "value": None}, {"value_base64": "/w=="}]
    written = await control.done("POST", "/topics/orders/records", {"records": rows})
    assert [record["value"] for record in written["records"][:2]] == ['{"total": 12}', None]
    found = (await control.done("GET", "/topics/orders/records"))["records"]
    assert sorted(json.dumps(each) for each in found) == sorted(json.dumps(each) for each in written["records"])
    assert [each["value_base64"] for each in found if "value_base64" in each] == ["/w=="]
    assert next(each for each in found if each["key"] == "a")["headers"] == [{"name": "h", "value": "1"}]


async def test_a_topic_is_made_with_its_configs(control, broker):
    made = await control.done("POST", "/topics", {"name": "prices", "partitions": 3, "configs": {"cleanup.policy": "compact"}})
    assert [each["partition"] for each in made["partitions"]] == [0, 1, 2]
    assert broker.core.partitions.get("prices", 0).log.config.is_compacted
    assert [topic["name"] for topic in (await control.done("GET", "/topics"))["topics"]] == ["orders", "prices"]


async def test_a_topic_that_is_there_as_asked_for_is_no_refusal(control):
    same = {"name": "orders", "partitions": 2, "configs": {"retention.ms": 604800000, "cleanup.policy": "delete"}}
    for asked in ({"name": "orders"}, same):
        assert len((await control.done("POST", "/topics", asked))["partitions"]) == 2


async def test_groups_are_waited_for_and_looked_at(control, broker):
    await broker.produce("orders", ["an order"])
    async with AIOKafkaConsumer(
        "orders", group_id="billing", auto_offset_reset="earliest", bootstrap_servers=broker.bootstrap_servers
    ) as consumer:
        await control.done("POST", "/wait", {"group": "billing", "state": "Stable", "members": 1})
        await consumer.getone()
        await consumer.commit()
        group = await control.done("GET", "/groups/billing")
        assert (group["type"], group["in_flight"]) == ("classic", [])
        assert (group["state"], group["lag"], len(group["members"][0]["partitions"])) == ("Stable", 0, 2)
        assert await control.done("GET", "/groups") == {"groups": [group]}


async def test_the_records_that_a_share_group_has_in_flight_are_told(control, broker):
    await broker.create_topics({TOPIC: 1})
    await broker.produce(TOPIC, ["a", "b"])
    await asyncio.to_thread(set_group_configs, broker.bootstrap_servers)
    async with share_consumer_beside(broker, "worker") as worker:
        await asyncio.to_thread(polled, worker)
        group = await control.done("GET", f"/groups/{GROUP}")
        [held] = group["in_flight"]
        assert (group["type"], held["member_id"]) == ("share", group["members"][0]["member_id"])
        assert (held["first_offset"], held["last_offset"], held["state"], held["client_id"]) == (0, 1, "ACQUIRED", "worker")
        assert 0 < held["lock_left_ms"] <= 30_000
        await control.done("POST", "/clock/advance", {"seconds": 30})
        [free] = (await control.done("GET", f"/groups/{GROUP}"))["in_flight"]
        changed = {"state": "AVAILABLE", "member_id": None, "client_id": None, "lock_left_ms": None}
        assert free == held | changed
    async with share_consumer_beside(broker, "other") as other:
        for message in await asyncio.to_thread(polled, other):
            other.acknowledge(message)
        await asyncio.to_thread(other.commit_sync, 20)
        await control.done("POST", "/wait", {"group": GROUP, "acknowledged": 2, "lag": 0})
        assert (await control.done("GET", f"/groups/{GROUP}"))["acknowledged"] == 2


async def test_what_was_waited_for_in_vain_is_said_with_what_there_was(control):
    status, answer = await control("POST", "/wait", {"topic": "orders", "records": 1, "within": 0.05})
    assert (status, answer["error"]) == (409, "waited 0.05 s for topic='orders', records=1; there is a topic with 0 records")


async def test_the_brokers_time_is_moved(control, broker):
    before = (await control.done("POST", "/clock/freeze"))["now_ms"]
    assert await control.done("POST", "/clock/advance", {"days": 7}) == {
        "now_ms": before + 7 * 24 * 3600 * 1000,
        "is_frozen": True,
        "speed": 1.0,
    }
    await control.done("POST", "/clock/speed", {"speed": 60})
    assert (await control.done("POST", "/clock/resume"))["speed"] == broker.clock.speed == 60


async def test_a_fault_meets_a_client_until_it_is_removed(control, broker):
    rule = {"api": "Produce", "topic": "orders", "error": "TOPIC_AUTHORIZATION_FAILED"}
    made = await control.done("POST", "/faults", rule)
    assert made["hits"] == 0
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait("orders", b"an order")
    waited = await control.done("POST", f"/faults/{made['fault']}/wait", {"hits": 1})
    assert waited["fired"][0]["api"] == "Produce"
    assert (await control.done("GET", "/faults"))["faults"][0]["hits"] >= 1
    await control.done("DELETE", f"/faults/{made['fault']}")
    assert (await control("GET", f"/faults/{made['fault']}"))[0] == 404
    assert broker.faults.rules == ()


async def test_a_fork_goes_its_own_way_and_the_first_goes_back(control, broker):
    await broker.produce("orders", ["first"])
    number = (await control.done("POST", "/snapshots"))["snapshot"]
    fork = await control.done("POST", f"/snapshots/{number}/fork")
    assert fork["bootstrap_servers"] != broker.bootstrap_servers
    await control.done("POST", f"/forks/{fork['fork']}/topics/orders/records", {"records": [{"value": "second"}]})
    assert len((await control.done("GET", f"/forks/{fork['fork']}/topics/orders/records"))["records"]) == 2
    assert len(await broker.records("orders")) == 1
    await broker.produce("orders", ["third"])
    await control.done("POST", f"/snapshots/{number}/restore")
    assert [record.text for record in await broker.records("orders")] == ["first"]
    assert await control.done("GET", "/forks") == {"forks": [fork]}
    await control.done("DELETE", f"/forks/{fork['fork']}")
    assert (await control("GET", f"/forks/{fork['fork']}/topics"))[0] == 404
    await control.done("DELETE", f"/snapshots/{number}")
    assert (await control("POST", f"/snapshots/{number}/fork"))[0] == 404


async def test_the_rules_of_a_broker_and_of_its_forks_are_apart(control, broker):
    number = (await control.done("POST", "/snapshots"))["snapshot"]
    fork = f"/forks/{(await control.done('POST', f'/snapshots/{number}/fork'))['fork']}"
    rules = {place: (await control.done("POST", f"{place}/faults", {"api": "Fetch", "stall": True})) for place in ("", fork)}
    for place, rule in rules.items():
        assert await control.done("GET", f"{place}/faults") == {"faults": [rule]}
    assert (await control("DELETE", f"{fork}/faults/{rules['']['fault']}"))[0] == 404
    await control.done("DELETE", f"{fork}/faults")
    assert await control.done("GET", f"{fork}/faults") == {"faults": []}
    assert await control.done("GET", "/faults") == {"faults": [rules[""]]}
    assert len(broker.faults.rules) == 1


async def test_what_a_client_said_is_told(control, broker):
    await control.done("POST", "/timeline/start")
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="till") as producer:
        await producer.send_and_wait("orders", b"an order")
    told = await control.done("GET", "/timeline?api=Produce&client_id=till")
    assert [(event["api"], event["outcome"]) for event in told["events"]] == [("PRODUCE", "answered")]
    assert "PRODUCE" in told["text"]
    await control.done("POST", "/timeline/stop")
    await control.done("DELETE", "/timeline")
    assert (await control.done("GET", "/timeline"))["events"] == []


async def test_a_broker_is_killed_and_comes_back_where_it_was(control, broker):
    address = broker.bootstrap_servers
    await broker.produce("orders", ["an order"])
    assert (await control.done("POST", "/broker/kill"))["is_running"] is False
    status, answer = await control("GET", "/topics")
    assert (status, answer["error"]) == (409, "the broker is not running: POST /v1/broker/start starts it")
    assert await control.done("POST", "/broker/start") == {"bootstrap_servers": address, "is_running": True}
    assert [record.text for record in await broker.records("orders")] == ["an order"]
    await control.done("POST", "/broker/stop")
    await control.done("POST", "/broker/start")


async def test_the_log_is_told(control, broker):
    with broker.noting():
        log.warn("a thing happened", topic="orders")
    assert (await control.done("GET", "/log"))["lines"][-1] == {
        "level": "warning",
        "text": "warning: a thing happened topic=orders",
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "mentions"),
    [
        ("GET", "/nowhere", None, 404, "/openapi.json"),
        ("DELETE", "/topics", None, 405, "GET, POST"),
        ("POST", "/topics", {"name": "t", "partition": 1}, 400, "'partition'; allowed: name, partitions, configs"),
        ("POST", "/topics", {"partitions": 1}, 400, "must have 'name'"),
        ("POST", "/topics", {"name": 7}, 400, "of type string"),
        ("POST", "/topics", {"name": "a/b"}, 422, "a/b"),
        ("POST", "/topics", {"name": "orders", "partitions": 3}, 422, "it has 2 partitions, not 3"),
        ("POST", "/topics", {"name": "orders", "configs": {"retention.ms": 5}}, 422, "its retention.ms is 604800000, not 5"),
        ("POST", "/topics", {"name": "orders", "configs": {"retention": 5}}, 422, "its retention is None, not 5"),
        ("POST", "/topics", {"name": "__consumer_offsets"}, 400, "is an internal topic"),
        ("GET", "/topics/missing/records", None, 404, "topics: orders"),
        ("GET", "/topics/orders/records?isolation_level=none", None, 400, "read_committed"),
        ("POST", "/topics/orders/records", {"records": [{"vlue": 1}]}, 400, "'vlue'"),
        ("POST", "/topics/orders/records", {"records": [{"value_base64": "?"}]}, 400, "value_base64"),
        ("POST", "/wait", {"state": "Stable"}, 400, "group, transactional_id, topic"),
        ("POST", "/clock/advance", {"days": -1}, 400, "time cannot go back"),
        ("POST", "/clock/speed", {"speed": 0}, 400, "above 0"),
        ("POST", "/clock/speed", {"speed": 1e308}, 400, "at most 1,000,000,000"),
        ("POST", "/clock/advance", {"days": 1e308}, 400, "not a valid duration"),
        ("POST", "/wait", {"topic": "orders", "within": 1e308}, 400, "within must be from 0 to 86400 seconds"),
        ("POST", "/wait", {"group": "g", "state": "stable"}, 400, "Stable"),
        ("POST", "/faults", {"api": "Prodce"}, 400, "Prodce"),
        ("GET", "/groups/billing", None, 404, "billing"),
        ("POST", "/snapshots/9/restore", None, 404, "snapshots: none"),
        ("GET", "/timeline?api=Nothing", None, 400, "Nothing"),
    ],
)
async def test_what_cannot_be_done_is_refused_in_words(control, method, path, body, status, mentions):
    found, answer = await control(method, path, body)
    assert (found, mentions in answer["error"]) == (status, True), answer


async def test_a_fault_of_the_interface_is_told_and_it_goes_on(control, broker, monkeypatch, capfd):
    with monkeypatch.context() as patched:
        patched.setattr(broker.timeline, "clear", lambda: {}["nothing"])
        assert await control("DELETE", "/timeline") == (500, {"error": "KeyError: the broker's log says more"})
    assert "DELETE /v1/timeline" in capfd.readouterr().err
    await control.done("DELETE", "/timeline")


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_refused(control, data):
    status, answer = await control("POST", "/wait", data=data)
    assert (status, "the body " in answer["error"]) == (400, True)


async def test_the_description_has_every_route(control):
    status, described = await control("GET", "/openapi.json", token="")
    assert (status, described["openapi"]) == (200, "3.1.0")
    told = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert told == {("GET", "/ready"), ("GET", "/metrics"), *((route.method, f"/v1{route.path}") for route in ROUTES)}
    operations = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(operations) == len(set(operations))
