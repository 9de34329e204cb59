"""Metrics of requests and connections: counts, times, errors, bytes; SASL authentications, sessions renewed or expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Distribution, Kind, Section, Sum, of_attribute, of_mbean, own
from odradek.broker.network.route import TOTAL_TIME_BOUNDS_MS
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import MeteredBroker, Metric, Reading
    from odradek.broker.network.route import Route
    from odradek.protocol.api_keys import ApiKey

_REQUEST_METRICS = "kafka.network:type=RequestMetrics"
_SOCKET_SERVER = "kafka.server:type=socket-server-metrics,listener=,networkProcessor="


def _counter(name: str, help_: str) -> Metric:
    return of_attribute(_SOCKET_SERVER, name, Kind.COUNTER, f"{name.replace('_', '-')}-total", help_)


REQUESTS = of_mbean(
    f"{_REQUEST_METRICS},name=RequestsPerSec",
    Kind.COUNTER,
    "Requests handled, including those without a response, by API and version.",
    "request",
    "version",
)
ERRORS = of_mbean(
    f"{_REQUEST_METRICS},name=ErrorsPerSec",
    Kind.COUNTER,
    "Error codes in responses, one for each failed partition, group or topic. Unlike in Kafka, NONE is not counted.",
    "request",
    "error",
)
TOTAL_TIME = of_mbean(
    f"{_REQUEST_METRICS},name=TotalTimeMs",
    Kind.HISTOGRAM,
    "The time from a request's arrival until its response is handed over, in ms.",
    "request",
)
QUEUE_TIME = of_mbean(
    f"{_REQUEST_METRICS},name=RequestQueueTimeMs",
    Kind.SUMMARY,
    "The part of the total time spent behind other requests, in ms.",
    "request",
)
LOCAL_TIME = of_mbean(
    f"{_REQUEST_METRICS},name=LocalTimeMs",
    Kind.SUMMARY,
    "The part of the total time spent working on the request, in ms.",
    "request",
)
REMOTE_TIME = of_mbean(
    f"{_REQUEST_METRICS},name=RemoteTimeMs",
    Kind.SUMMARY,
    "The part of the total time spent waiting for an event (more data, other members), in ms.",
    "request",
)
CONNECTIONS = of_attribute(_SOCKET_SERVER, "connection_count", Kind.GAUGE, "connection-count", "Open connections.", "listener")
CONNECTIONS_ACCEPTED = _counter("connection_creation", "Connections accepted.")
BYTES_RECEIVED = _counter("incoming_byte", "Bytes received from clients.")
BYTES_SENT = _counter("outgoing_byte", "Bytes sent to clients.")
CONNECTIONS_REFUSED = own(
    "connections_refused", Kind.COUNTER, "Connections refused because of max.connections or max.connections.per.ip."
)
IP_THROTTLE_TIME = of_attribute(
    "kafka.server:type=socket-server-metrics,listener=",
    "ip_connection_accept_throttle_time",
    Kind.SUMMARY,
    "ip-connection-accept-throttle-time",
    "How long connections above their address's connection_creation_rate were kept before they were closed, in ms.",
)
CONNECTIONS_CLOSED_IDLE = own("connections_closed_idle", Kind.COUNTER, "Connections closed because of connections.max.idle.ms.")
CONNECTIONS_CLOSED_MALFORMED = own(
    "connections_closed_malformed", Kind.COUNTER, "Connections closed because of a malformed or unsupported request."
)


def _read_requests(broker: MeteredBroker) -> Iterator[Reading]:
    routes = broker.dispatcher.routes()
    yield REQUESTS, [((request_name(route.api_key), str(route.version)), route.requests) for route in routes]
    by_api: dict[str, list[Route]] = {}
    for route in routes:
        by_api.setdefault(request_name(route.api_key), []).append(route)
    yield ERRORS, [((name, error), count) for name, versions in by_api.items() for error, count in _errors(versions).items()]
    counts = {
        name: [sum(column) for column in zip(*(v.buckets for v in versions), strict=True)] for name, versions in by_api.items()
    }
    total = {name: sum(version.total_ms for version in versions) for name, versions in by_api.items()}
    queue = {name: sum(version.queue_ms for version in versions) for name, versions in by_api.items()}
    remote = {name: sum(version.remote_ms for version in versions) for name, versions in by_api.items()}
    yield TOTAL_TIME, [((name,), Distribution(TOTAL_TIME_BOUNDS_MS, counts[name], total[name])) for name in by_api]
    yield QUEUE_TIME, [((name,), Sum(sum(counts[name]), queue[name])) for name in by_api]
    yield LOCAL_TIME, [((name,), Sum(sum(counts[name]), max(total[name] - queue[name] - remote[name], 0))) for name in by_api]
    yield REMOTE_TIME, [((name,), Sum(sum(counts[name]), remote[name])) for name in by_api]


def request_name(api_key: ApiKey) -> str:
    """Return Kafka's name of an API, such as ``ListOffsets``."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))


def _errors(routes: list[Route]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for route in routes:
        for code, count in route.errors.items():
            name = ErrorCode(code).name
            counts[name] = counts.get(name, 0) + count
    return counts


def _read_connections(broker: MeteredBroker) -> Iterator[Reading]:
    connections = broker.connections
    open_now: dict[str, int] = dict.fromkeys(broker.listener_names, 0)
    for connection in connections or ():
        open_now[connection.session.listener_name] += 1
    yield CONNECTIONS, [((listener,), count) for listener, count in open_now.items()]
    yield CONNECTIONS_ACCEPTED, [((), 0 if connections is None else connections.accepted)]
    yield CONNECTIONS_REFUSED, [((), 0 if connections is None else connections.refused)]
    by_ip = None if connections is None else connections.ip_rates
    yield IP_THROTTLE_TIME, [((), Sum(0, 0.0) if by_ip is None else Sum(by_ip.throttled, by_ip.throttle_ms))]
    yield CONNECTIONS_CLOSED_IDLE, [((), 0 if connections is None else connections.closed_idle)]
    yield CONNECTIONS_CLOSED_MALFORMED, [((), 0 if connections is None else connections.closed_malformed)]
    yield BYTES_RECEIVED, [((), 0 if connections is None else connections.received_bytes)]
    yield BYTES_SENT, [((), 0 if connections is None else connections.sent_bytes)]


REQUEST_SECTION = Section(
    "Requests",
    (REQUESTS, ERRORS, TOTAL_TIME, QUEUE_TIME, LOCAL_TIME, REMOTE_TIME),
    _read_requests,
)
CONNECTION_SECTION = Section(
    "Connections",
    (
        CONNECTIONS,
        CONNECTIONS_ACCEPTED,
        CONNECTIONS_REFUSED,
        IP_THROTTLE_TIME,
        CONNECTIONS_CLOSED_IDLE,
        CONNECTIONS_CLOSED_MALFORMED,
        BYTES_RECEIVED,
        BYTES_SENT,
    ),
    _read_connections,
)


SUCCEEDED = _counter("successful_authentication", "Connections that authenticated by SASL.")
FAILED = _counter("failed_authentication", "Connections that failed to authenticate by SASL.")
SUCCEEDED_AGAIN = _counter("successful_reauthentication", "Sessions renewed by reauthentication.")
FAILED_AGAIN = _counter("failed_reauthentication", "Sessions whose reauthentication failed.")
EXPIRED = of_attribute(
    _SOCKET_SERVER,
    "expired_connections_killed_count",
    Kind.COUNTER,
    "expired-connections-killed-count",
    "Connections closed because their session had ended.",
)


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    counts = None if broker.connections is None else broker.connections.sasl
    yield SUCCEEDED, [((), 0 if counts is None else counts.succeeded)]
    yield FAILED, [((), 0 if counts is None else counts.failed)]
    yield SUCCEEDED_AGAIN, [((), 0 if counts is None else counts.succeeded_again)]
    yield FAILED_AGAIN, [((), 0 if counts is None else counts.failed_again)]
    yield EXPIRED, [((), 0 if counts is None else counts.expired)]


AUTHENTICATION_SECTION = Section("Authentication", (SUCCEEDED, FAILED, SUCCEEDED_AGAIN, FAILED_AGAIN, EXPIRED), _read)
