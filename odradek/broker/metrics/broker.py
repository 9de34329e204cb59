"""Metrics of the broker itself: its purgatories, its fetch sessions, and the lateness of its event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek import __version__
from odradek.broker.metrics.definitions import Kind, Metric, Section, Sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Reading

_OPERATION = ("delayedOperation",)
_PURGATORY = "kafka.server:type=DelayedOperationPurgatory"
_SESSIONS = "kafka.server:type=FetchSessionCache"

WATCHED = Metric(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    Kind.GAUGE,
    _OPERATION,
    f"{_PURGATORY},name=PurgatorySize,delayedOperation=",
    "Waiting operations, counted once for each key they wait for.",
)
DELAYED = Metric(
    "kafka_server_delayedoperationpurgatory_numdelayedoperations",
    Kind.GAUGE,
    _OPERATION,
    f"{_PURGATORY},name=NumDelayedOperations,delayedOperation=",
    "Waiting operations.",
)
COMPLETED = Metric(
    "odradek_purgatory_completed",
    Kind.COUNTER,
    _OPERATION,
    "",
    "Operations completed, with or without waiting, including expired ones.",
)
EXPIRED = Metric("odradek_purgatory_expired", Kind.COUNTER, _OPERATION, "", "Operations that expired at their deadline.")
SESSIONS = Metric(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    Kind.GAUGE,
    (),
    f"{_SESSIONS},name=NumIncrementalFetchSessions",
    "Fetch sessions.",
)
SESSION_PARTITIONS = Metric(
    "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
    Kind.GAUGE,
    (),
    f"{_SESSIONS},name=NumIncrementalFetchPartitionsCached",
    "Partitions in all fetch sessions.",
)
SESSION_EVICTIONS = Metric(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
    Kind.COUNTER,
    (),
    f"{_SESSIONS},name=IncrementalFetchSessionEvictionsPerSec",
    "Fetch sessions evicted to make room for others.",
)
LATENESS = Metric(
    "odradek_event_loop_lateness_ms",
    Kind.SUMMARY,
    (),
    "",
    "How late the event loop woke the broker's timer, in ms. All other work is as late.",
)
BUSY_POLLS = Metric(
    "odradek_event_loop_busy_polls",
    Kind.COUNTER,
    (),
    "",
    "How often the event loop polled for a client's next request instead of sleeping (socket.busy.poll.us).",
)
INFO = Metric(
    "odradek_broker_info", Kind.GAUGE, ("version", "cluster_id", "node_id"), "", "Always 1; its labels identify the broker."
)


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
