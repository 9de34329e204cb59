"""Values that no route can do anything with: each is refused in words, and none is a fault of the broker's."""

import json

import pytest

from odradek.http.control import ROUTES

VALUES = [1e308, float("nan"), float("inf"), -1, 10**30, 0, 0.5, True, None, "", "x", "\ud800", "\0", [], [None], {}, {"": None}]
ENDING = {"/broker/stop", "/broker/kill", "/snapshots/{snapshot}/restore", "/faults/{fault}/wait"}
# What a route must have beside the value that is tried, and what keeps an answer from being waited for.
BESIDE = {
    "/topics": {"name": "orders"},
    "/topics/{topic}/records": {"records": [{"value": "v"}]},
    "/wait": {"topic": "orders", "within": 0},
    "/snapshots/{snapshot}/fork": {"configs": {}},
}


def bodies(route):
    beside = BESIDE.get(route.path, {})
    for name in route.body:
        yield from ({**beside, name: value} for value in VALUES)
        yield from ({**beside, name: {"k": value}} for value in VALUES)
        yield from ({**beside, name: [{"value": value}, {"key": value}, {"headers": {"h": value}}]} for value in VALUES)
    if route.open_ended:
        yield from ({name: value} for name in ("self", "api", "times", "delay_ms", "seed", "split", "topic") for value in VALUES)


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "POST" and route.path not in ENDING], ids=lambda route: route.path
)
async def test_no_value_is_a_fault_of_the_broker(control, capfd, route):
    snapshot = (await control.done("POST", "/snapshots"))["snapshot"]
    path = route.path.replace("{topic}", "orders").replace("{snapshot}", snapshot)
    for body in bodies(route):
        status, answer = await control("POST", path, body)
        assert status in {200, 400, 404, 409, 422}, (body, answer)
        if "fork" in answer:
            await control.done("DELETE", f"/forks/{answer['fork']}")
        if "\\ud800" in json.dumps(body):
            assert (status, answer["error"]) == (400, "the body has half of a surrogate pair, which is not a character")
    assert "Traceback" not in capfd.readouterr().err
    assert (await control.done("GET", "/ready"))["is_running"]


@pytest.mark.parametrize("data", [b'{"name": "\\uD800"}', b'{"name": "\xed\xa0\x80"}', b'{"name": "\\udfff\\ud800"}'])
async def test_half_of_a_character_is_refused_however_it_is_written(control, data):
    status, answer = await control("POST", "/topics", data=data)
    assert (status, answer["error"]) == (400, "the body has half of a surrogate pair, which is not a character")
    assert (await control("POST", "/topics", data=b'{"name": "no \\ud83d\\ude00"}'))[0] == 422
