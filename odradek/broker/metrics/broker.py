"""Metrics of the broker itself: its purgatories, its fetch sessions, the lateness of its event loop, and client quotas.

Quotas have usage and throttle times. Without quotas they have no values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek import __version__
from odradek.broker.metrics.definitions import Kind, Section, Sum, of_attribute, of_mbean, own

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Metric, Reading
    from odradek.broker.quotas.client_quota_manager import ClientQuotaManager

_PURGATORY = "kafka.server:type=DelayedOperationPurgatory"
_SESSIONS = "kafka.server:type=FetchSessionCache"

WATCHED = of_mbean(
    f"{_PURGATORY},name=PurgatorySize",
    Kind.GAUGE,
    "Waiting operations, counted once for each key they wait for.",
    "delayedOperation",
)
DELAYED = of_mbean(f"{_PURGATORY},name=NumDelayedOperations", Kind.GAUGE, "Waiting operations.", "delayedOperation")
COMPLETED = own(
    "purgatory_completed",
    Kind.COUNTER,
    "Operations completed, with or without waiting, including expired ones.",
    "delayedOperation",
)
EXPIRED = own("purgatory_expired", Kind.COUNTER, "Operations that expired at their deadline.", "delayedOperation")
SESSIONS = of_mbean(f"{_SESSIONS},name=NumIncrementalFetchSessions", Kind.GAUGE, "Fetch sessions.")
SESSION_PARTITIONS = of_mbean(
    f"{_SESSIONS},name=NumIncrementalFetchPartitionsCached", Kind.GAUGE, "Partitions in all fetch sessions."
)
SESSION_EVICTIONS = of_mbean(
    f"{_SESSIONS},name=IncrementalFetchSessionEvictionsPerSec",
    Kind.COUNTER,
    "Fetch sessions evicted to make room for others.",
)
LATENESS = own(
    "event_loop_lateness_ms",
    Kind.SUMMARY,
    "How late the event loop woke the broker's timer, in ms. All other work is as late.",
)
BUSY_POLLS = own(
    "event_loop_busy_polls",
    Kind.COUNTER,
    "How often the event loop polled for a client's next request instead of sleeping (socket.busy.poll.us).",
)
INFO = own("broker_info", Kind.GAUGE, "Always 1; its labels identify the broker.", "version", "cluster_id", "node_id")


def _read_purgatories(broker: MeteredBroker) -> Iterator[Reading]:
    purgatories = broker.purgatories
    yield WATCHED, [((purgatory.name,), purgatory.watched) for purgatory in purgatories]
    yield DELAYED, [((purgatory.name,), purgatory.delayed) for purgatory in purgatories]
    yield COMPLETED, [((purgatory.name,), purgatory.completed) for purgatory in purgatories]
    yield EXPIRED, [((purgatory.name,), purgatory.expired) for purgatory in purgatories]


def _read_broker(broker: MeteredBroker) -> Iterator[Reading]:
    sessions = broker.fetch_sessions
    yield SESSIONS, [((), len(sessions))]
    yield SESSION_PARTITIONS, [((), sessions.partitions_cached)]
    yield SESSION_EVICTIONS, [((), sessions.evictions)]
    driver = broker.timer_driver
    yield LATENESS, [] if driver is None else [((), Sum(driver.wakings, driver.late_ms))]
    busy_poll = None if broker.connections is None else broker.connections.busy_poll
    yield BUSY_POLLS, [((), 0 if busy_poll is None else busy_poll.polls)]
    yield INFO, [((__version__, broker.cluster_id, str(broker.node_id)), 1)]


PURGATORY_SECTION = Section("Purgatories", (WATCHED, DELAYED, COMPLETED, EXPIRED), _read_purgatories)
BROKER_SECTION = Section(
    "The broker", (SESSIONS, SESSION_PARTITIONS, SESSION_EVICTIONS, LATENESS, BUSY_POLLS, INFO), _read_broker
)


def _quota(kind: str, attribute: str, help_: str, *labels: str) -> Metric:
    return of_attribute(f"kafka.server:type={kind}", attribute.replace("-", "_"), Kind.GAUGE, attribute, help_, *labels)


def _of_client(kind: str, attribute: str, help_: str) -> Metric:
    return _quota(kind, attribute, help_, "user", "client_id")


def _throttled(kind: str) -> tuple[Metric, Metric]:
    return (
        _of_client(kind, "throttle-time", "The average throttle time in the last minute, in ms."),
        _quota(kind, "queue-size", "The number of throttle times in progress."),
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
EXEMPT_TIME = _quota(
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
