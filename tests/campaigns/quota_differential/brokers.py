"""Throttled clients at one broker, odradek or Kafka: each as fast as it is let, for some seconds, all at the same time.

    produce    batches of as many bytes as the quota allows in a twentieth of a second
    fetch      the same, read again and again
    mutation   topics, of as many partitions as the quota allows in some seconds
    request    Metadata requests of a client whose quota is next to nothing: each is throttled for a sample, the longest time
    free       a client without a quota, which produces at a pace of its own

The clients wait for nothing but their answers: that the broker holds them up is looked at, too. Before that, those of produce and
fetch keep to the quota for as long as rates are measured over. A client that is let loose at once gets ten seconds' worth, then
next to nothing while these weigh in its rate, and then as much again; so it goes on, with Kafka as well.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, Final, NamedTuple

from odradek.controller.metadata.client_quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.raw_client import RawClient, fetch_fields, produce_fields

# ``quota.window.num`` times ``quota.window.size.seconds``.
WINDOW_S: Final = 11.0
BYTES_PER_S: Final = 400_000
PARTITIONS_PER_S: Final = 5
# Topics whose quota is used up in so many seconds: to make them takes a part of the time.
TOPIC_S: Final = 4
_BATCH_BYTES: Final = BYTES_PER_S // 20
_FREE_PACE_S: Final = 0.05
_QUOTAS: Final = {
    "produce": (PRODUCER_BYTE_RATE, float(BYTES_PER_S)),
    "fetch": (CONSUMER_BYTE_RATE, float(BYTES_PER_S)),
    "mutation": (CONTROLLER_MUTATION_RATE, float(PARTITIONS_PER_S)),
    "request": (REQUEST_PERCENTAGE, 0.0001),
}
# What a client gets a second by its quota; of a request quota, one request a sample.
EXPECTED: Final = {"produce": BYTES_PER_S, "fetch": BYTES_PER_S, "mutation": PARTITIONS_PER_S, "request": 1}
_TOPIC: Final = "quotas"
# Broker and client round their times.
_EARLY_MS: Final = 2
_TIMEOUT_S: Final = 60.0


class Times(NamedTuple):
    """How long a client is throttled before it is measured, and how long that takes."""

    window_s: float
    seconds: float


@dataclass(slots=True)
class Load:
    """What one client has seen since measuring began."""

    units: float = 0.0
    began_s: float = 0.0
    ended_s: float = 0.0
    throttles_ms: list[int] = field(default_factory=list)
    # Answers that came before the throttle time of the one before was over.
    early: int = 0
    answers: int = 0

    @property
    def per_s(self) -> float:
        """The throughput."""
        return self.units / (self.ended_s - self.began_s) if self.ended_s > self.began_s else 0.0

    @property
    def throttle_ms(self) -> float:
        """The average of the throttle times."""
        return mean(self.throttles_ms) if self.throttles_ms else 0.0


Figures = Mapping[str, Load]


def measure(address: str, seconds: float, window_s: float = WINDOW_S, left_out: Collection[str] = ()) -> Figures:
    """Set the quotas, and have all clients at work but those ``left_out``; the broker's rates are over ``window_s``."""
    host, _, port = address.partition(":")
    _prepare(host, int(port))
    works: dict[str, Callable[[RawClient, Times], Load]] = {
        "produce": _produce,
        "fetch": _fetch,
        "mutation": _create,
        "request": _ask,
        "free": _produce_freely,
    }

    names = [name for name in works if name not in left_out]

    def work(name: str) -> Load:
        with RawClient(host, int(port)) as client:
            client.socket.settimeout(_TIMEOUT_S)
            return works[name](client, Times(window_s, seconds))

    with ThreadPoolExecutor(len(names)) as threads:
        return dict(zip(names, threads.map(work, names), strict=True))


def _prepare(host: str, port: int) -> None:
    with RawClient(host, port) as client:
        client.socket.settimeout(_TIMEOUT_S)
        topic = {"name": _TOPIC, "num_partitions": 1, "replication_factor": 1}
        created = client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5_000)
        assert created.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)
        _until(lambda: client.produce_records(_TOPIC, _batch()).error_code == 0)
        entries = [
            {"entity": [{"entity_type": CLIENT_ID, "entity_name": name}], "ops": [{"key": key, "value": value, "remove": False}]}
            for name, (key, value) in _QUOTAS.items()
        ]
        altered = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
        assert not any(entry.error_code for entry in altered.entries)
        filters = [{"entity_type": CLIENT_ID, "match_type": 2, "match": None}]
        _until(lambda: len(client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=filters, strict=False).entries or ()) == 4)


def _until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _batch(size_bytes: int = _BATCH_BYTES) -> bytes:
    return build_batch([Record(timestamp=1_700_000_000_000, value=bytes(size_bytes - 100))])


def _saturate(times: Times, ask: Callable[[], tuple[float, Any]], after: int = 0) -> Load:
    """Ask again and again, and count from throttle time number ``after`` on. ``ask`` returns what was got, and the answer."""
    load = Load()
    ends_s = float("inf")
    # A client that is never throttled is not measured.
    gives_up_s = time.monotonic() + 2 * times.seconds
    free_s = 0.0
    while load.ended_s < ends_s and (load.began_s or time.monotonic() < gives_up_s):
        sent_s = time.monotonic()
        units, answer = ask()
        now_s = time.monotonic()
        throttle_ms = round(answer.throttle_time.total_seconds() * 1_000)
        if load.began_s:
            load.units += units
            load.answers += 1
            load.ended_s = now_s
            # The broker has muted the client after it was sent the request.
            load.early += now_s < free_s - _EARLY_MS / 1_000
            if throttle_ms:
                load.throttles_ms.append(throttle_ms)
        elif throttle_ms:
            after -= 1
            if after < 0:
                load.began_s, ends_s = now_s, now_s + times.seconds
        free_s = sent_s + throttle_ms / 1_000
    return load


def _keep_to(times: Times, ask: Callable[[], tuple[float, Any]]) -> None:
    """Ask at the pace of the quota."""
    due_s = time.monotonic()
    ends_s = due_s + times.window_s
    while due_s < ends_s:
        time.sleep(max(0.0, due_s - time.monotonic()))
        units, _ = ask()
        due_s += units / BYTES_PER_S


def _produce(client: RawClient, times: Times) -> Load:
    batch = _batch()

    def ask() -> tuple[float, Any]:
        answer = client.call(ApiKey.PRODUCE, 9, client_id="produce", **produce_fields(_TOPIC, batch))
        assert answer.responses[0].partition_responses[0].error_code == 0
        return len(batch), answer

    _keep_to(times, ask)
    return _saturate(times, ask)


def _fetch(client: RawClient, times: Times) -> Load:
    def ask() -> tuple[float, Any]:
        fields = fetch_fields(_TOPIC, 0, partition_max_bytes=_BATCH_BYTES)
        answer = client.call(ApiKey.FETCH, 12, client_id="fetch", **fields)
        assert not any(each.error_code for topic in answer.responses for each in topic.partitions)
        return sum(len(each.records or b"") for topic in answer.responses for each in topic.partitions), answer

    _keep_to(times, ask)
    return _saturate(times, ask)


def _create(client: RawClient, times: Times) -> Load:
    partitions = PARTITIONS_PER_S * TOPIC_S
    number = 0

    def ask() -> tuple[float, Any]:
        nonlocal number
        number += 1
        topic = {"name": f"made-{number}", "num_partitions": partitions, "replication_factor": 1}
        # Only validated, which counts the same: the brokers have no topics to make.
        answer = client.call(ApiKey.CREATE_TOPICS, 7, client_id="mutation", topics=[topic], timeout_ms=30_000, validate_only=True)
        error_code = answer.topics[0].error_code
        assert error_code in (0, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        return 0 if error_code else partitions, answer

    # The first debt is a part of a topic.
    return _saturate(times, ask, after=1)


def _ask(client: RawClient, times: Times) -> Load:
    return _saturate(times, lambda: (1, client.call(ApiKey.METADATA, 9, client_id="request", topics=[])))


def _produce_freely(client: RawClient, times: Times) -> Load:
    """At its own pace; ``units`` are the requests whose answers took no longer than that."""
    batch = _batch(1_000)
    load = Load(began_s=time.monotonic())
    due_s = load.began_s
    while due_s < load.began_s + times.window_s + times.seconds:
        time.sleep(max(0.0, due_s - time.monotonic()))
        # One that is late, itself or by the machine, does not make those behind it late.
        sent_s = time.monotonic()
        answer = client.call(ApiKey.PRODUCE, 9, client_id="free", **produce_fields(_TOPIC, batch))
        due_s += _FREE_PACE_S
        load.answers += 1
        load.units += time.monotonic() - sent_s < _FREE_PACE_S
        if answer.throttle_time:
            load.throttles_ms.append(round(answer.throttle_time.total_seconds() * 1_000))
    load.ended_s = time.monotonic()
    return load


def problems(ours: Figures, kafkas: Figures, *, rate_percent: float = 5, throttle_percent: float = 10) -> list[str]:
    """In words, where a client did not get its quota, or was throttled otherwise than by Kafka."""
    found = []
    for name in ours.keys() - {"free"}:
        expected = EXPECTED[name]
        for whose, load in (("odradek", ours[name]), ("Kafka", kafkas[name])):
            if abs(load.per_s / expected - 1) * 100 > rate_percent:
                found.append(f"{whose}, {name}: {load.per_s:.2f} a second, not {expected}")
            if load.early:
                found.append(f"{whose}, {name}: {load.early} of {load.answers} answers came while the client was muted")
        told, theirs = ours[name].throttle_ms, kafkas[name].throttle_ms
        if not theirs or abs(told / theirs - 1) * 100 > throttle_percent:
            found.append(f"{name}: throttled for {told:.0f} ms by odradek, for {theirs:.0f} ms by Kafka")
    free = ours["free"]
    if free.throttles_ms:
        found.append(f"the client without a quota was throttled {len(free.throttles_ms)} times")
    if free.units < 0.95 * free.answers:
        found.append(f"the client without a quota had {free.units:.0f} of {free.answers} answers in time")
    return found


def table(ours: Figures, kafkas: Figures) -> list[str]:
    """The figures in lines."""
    lines = [f"{'':10}{'quota':>10}{'odradek':>12}{'Kafka':>12}{'throttled':>14}{'by Kafka':>12}"]
    for name, expected in EXPECTED.items():
        one, other = ours[name], kafkas[name]
        rates = f"{expected:>10}{one.per_s:>12.2f}{other.per_s:>12.2f}"
        lines.append(f"{name:10}{rates}{one.throttle_ms:>11.0f} ms{other.throttle_ms:>9.0f} ms")
    for whose, figures in (("odradek", ours), ("Kafka", kafkas)):
        free = figures["free"]
        told = f"{free.units:.0f} of {free.answers} answers in time, {len(free.throttles_ms)} throttle times"
        lines.append(f"without a quota at {whose}: {told}")
    return lines
