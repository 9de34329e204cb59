"""Authentications by SASL: succeeded and failed, and sessions that were renewed or have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Reading
    from odradek.broker.metrics.metered import MeteredBroker


def _counter(name: str, help_text: str) -> Metric:
    attribute = f"{name.replace('_', '-')}-total"
    mbean = f"kafka.server:type=socket-server-metrics,listener=,networkProcessor= ({attribute})"
    return Metric(f"kafka_server_socket_server_metrics_{name}", Kind.COUNTER, (), mbean, help_text)


SUCCEEDED = _counter("successful_authentication", "Connections that have authenticated by SASL.")
FAILED = _counter("failed_authentication", "Connections that have failed to.")
SUCCEEDED_AGAIN = _counter("successful_reauthentication", "Sessions that were renewed.")
FAILED_AGAIN = _counter("failed_reauthentication", "Sessions whose renewal failed.")
EXPIRED = Metric(
    "kafka_server_socket_server_metrics_expired_connections_killed_count",
    Kind.COUNTER,
    (),
    "kafka.server:type=socket-server-metrics,listener=,networkProcessor= (expired-connections-killed-count)",
    "Connections closed because their session was over.",
)


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    counts = None if broker.connections is None else broker.connections.sasl
    yield SUCCEEDED, [((), 0 if counts is None else counts.succeeded)]
    yield FAILED, [((), 0 if counts is None else counts.failed)]
    yield SUCCEEDED_AGAIN, [((), 0 if counts is None else counts.succeeded_again)]
    yield FAILED_AGAIN, [((), 0 if counts is None else counts.failed_again)]
    yield EXPIRED, [((), 0 if counts is None else counts.expired)]


AUTHENTICATION_SECTION = Section("Authentication", (SUCCEEDED, FAILED, SUCCEEDED_AGAIN, FAILED_AGAIN, EXPIRED), _read)
