"""Metrics of client quotas: usage and throttle times. Without quotas there are no values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading
    from odradek.broker.quotas.client_quota_manager import ClientQuotaManager

_CLIENT = ("user", "client_id")


def _of_client(kind: str, attribute: str, what: str) -> Metric:
    name = f"kafka_server_{kind.lower()}_{attribute.replace('-', '_')}"
    return Metric(name, Kind.GAUGE, _CLIENT, f"kafka.server:type={kind},user=,client-id= ({attribute})", what)


def _of_kind(kind: str, attribute: str, what: str) -> Metric:
    name = f"kafka_server_{kind.lower()}_{attribute.replace('-', '_')}"
    return Metric(name, Kind.GAUGE, (), f"kafka.server:type={kind} ({attribute})", what)


def _throttled(kind: str) -> tuple[Metric, Metric]:
    return (
        _of_client(kind, "throttle-time", "The average throttle time in the last minute, in ms."),
        _of_kind(kind, "queue-size", "The number of throttle times in progress."),
    )


PRODUCE_RATE = _of_client(
    "Produce",
    "byte-rate",
    "Bytes per second of Produce requests. With an empty label, all users, or all client ids, share the quota.",
)
PRODUCE_THROTTLED = _throttled("Produce")
FETCH_RATE = _of_client("Fetch", "byte-rate", "Bytes per second of Fetch responses.")
FETCH_THROTTLED = _throttled("Fetch")
REQUEST_TIME = _of_client("Request", "request-time", "The share of the event loop's time that requests take, in percent.")
REQUEST_THROTTLED = _throttled("Request")
EXEMPT_TIME = _of_kind(
    "Request",
    "exempt-request-time",
    "The share of the event loop's time that requests exempt from client quotas take, in percent.",
)
TOKENS = _of_client("ControllerMutation", "tokens", "Partition changes that are allowed at once. Below 0: overdrawn changes.")
MUTATION_RATE = _of_client("ControllerMutation", "mutation-rate", "Partitions created and deleted per second.")
MUTATION_THROTTLED = _throttled("ControllerMutation")


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    managers = broker.quotas.managers
    now_ms = 0 if managers is None else managers.now_ms()
    rated = (
        (PRODUCE_RATE, PRODUCE_THROTTLED, None if managers is None else managers.produce),
        (FETCH_RATE, FETCH_THROTTLED, None if managers is None else managers.fetch),
        (REQUEST_TIME, REQUEST_THROTTLED, None if managers is None else managers.request),
        (MUTATION_RATE, MUTATION_THROTTLED, None if managers is None else managers.mutation),
    )
    for rate, throttled, manager in rated:
        yield from _read_kind(rate, throttled, manager, now_ms)
    yield EXEMPT_TIME, [] if managers is None else [((), managers.exempt.per_s(now_ms))]
    of_mutations = [] if managers is None else managers.mutation.sensors(now_ms)
    yield TOKENS, [(owner, sensor.bucket.tokens(sensor.limit, now_ms)) for owner, sensor in of_mutations]


def _read_kind(
    rate: Metric, throttled: tuple[Metric, Metric], manager: ClientQuotaManager | None, now_ms: int
) -> Iterator[Reading]:
    throttle_time, queue_size = throttled
    sensors = [] if manager is None else list(manager.sensors(now_ms))
    yield rate, [(owner, sensor.samples.per_s(now_ms)) for owner, sensor in sensors]
    averages = ((owner, sensor.throttled.average(now_ms)) for owner, sensor in sensors)
    yield throttle_time, [(owner, average) for owner, average in averages if average is not None]
    yield queue_size, [] if manager is None else [((), manager.throttled_now(now_ms))]


QUOTA_SECTION = Section(
    "Client quotas",
    (
        PRODUCE_RATE,
        *PRODUCE_THROTTLED,
        FETCH_RATE,
        *FETCH_THROTTLED,
        REQUEST_TIME,
        *REQUEST_THROTTLED,
        EXEMPT_TIME,
        TOKENS,
        MUTATION_RATE,
        *MUTATION_THROTTLED,
    ),
    _read,
)
