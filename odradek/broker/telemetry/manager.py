"""The manager of telemetry subscriptions and pushes (KIP-714).

A client instance is known from its first request until its connection closes, or until it has been silent for a minute, or for
three push intervals if these are longer. At most 16,384 instances are known; the one silent for longest is dropped.

Differences from Kafka: the monotonic clock decides whether a get or push is too early. A push is decoded before it is answered,
so INVALID_RECORD means that it is no MetricsData. Source: ``ClientMetricsManager`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from odradek.broker.telemetry.subscriptions import ClientInstance, Subscription, requested_metrics, subscription_of
from odradek.common.logging import log
from odradek.controller.metadata.image import CLIENT_METRICS_RESOURCE
from odradek.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.protocol.texts import uuid_text
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.replica.inspections import Inspections
    from odradek.broker.telemetry.received import Push, ReceivedMetrics
    from odradek.common.context import RequestContext, Session
    from odradek.common.logging import LineLimit
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.protocol.message_types.push_telemetry import PushTelemetryRequest
    from odradek.protocol.otlp_metrics import ClientMetrics
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

# In order of preference: a client uses the first one that it supports.
ACCEPTED_COMPRESSION_TYPES: Final = (ZSTD, LZ4, GZIP, SNAPPY)
_KNOWN_COMPRESSION_TYPES: Final = frozenset({NONE, *ACCEPTED_COMPRESSION_TYPES})
_RESERVED_IDS: Final = frozenset({UUID(int=1)})
_MOST_INSTANCES: Final = 16_384
_EXPIRY_MS: Final = 60_000
_EXPIRY_INTERVALS: Final = 3
# Up to this decompressed size a push is decoded within the request, else in a thread: it takes some milliseconds.
_AT_ONCE_BYTES: Final = 16 * 1024
# A decompressed push may be this many times as large as ``telemetry.max.bytes``.
_MOST_EXPANSION: Final = 16
_RETRIABLE_CODES: Final = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})


class TelemetrySurroundings(NamedTuple):
    """The broker's services for the manager."""

    max_bytes: Callable[[], int]
    clock: Clock
    timer: Timer
    new_uuid: Callable[[], UUID]
    inspections: Inspections
    line_limit: LineLimit


@dataclass(slots=True)
class TelemetryCounts:
    """Counts of telemetry requests since the broker started."""

    pushes: int = 0
    refused_pushes: int = 0
    throttled: int = 0
    unknown_subscriptions: int = 0


class ClientMetricsManager:
    """The client telemetry of a broker. A MetadataPublisher. Loop thread only."""

    def __init__(self, surroundings: TelemetrySurroundings, image: MetadataImage) -> None:
        self._surroundings = surroundings
        # Created with the first push, which also imports the decoder.
        self.received: ReceivedMetrics | None = None
        self.counts = TelemetryCounts()
        # Called for each push.
        self.on_push: Callable[[Push], None] | None = None
        # The instance silent for longest is the first.
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()
        # A client may use several ids on one connection.
        self._by_session: dict[Session, set[UUID]] = {}
        self._subscriptions: list[Subscription] = []
        self._version = 0
        self._read(image)

    @property
    def instance_count(self) -> int:
        """The number of known client instances."""
        return len(self._instances)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply changed subscriptions."""
        if any(resource_type == CLIENT_METRICS_RESOURCE for resource_type, _ in delta.configs):
            self._read(image)

    def subscription(self, context: RequestContext, instance_id: UUID | None) -> GetTelemetrySubscriptionsResponse:
        """Answer a client that asks for its subscription. Without an instance id it gets a new one."""
        instance_id = self._new_id() if instance_id is None else instance_id
        instance = self._instance(context, instance_id)
        may_get = instance.may_get(self._surroundings.clock.monotonic_ms())
        if not may_get and instance.last_error not in _RETRIABLE_CODES:
            self.counts.throttled += 1
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        asked = instance.asked
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=asked.subscription_id,
            accepted_compression_types=ACCEPTED_COMPRESSION_TYPES,
            push_interval_ms=asked.interval_ms,
            telemetry_max_bytes=self._surroundings.max_bytes(),
            delta_temporality=True,
            requested_metrics=asked.metrics,
        )

    def push(self, context: RequestContext, request: PushTelemetryRequest) -> ErrorCode | Reply[ErrorCode]:
        """Take a client's pushed metrics. Return the error code of the answer, or a Reply of it."""
        instance_id = request.client_instance_id
        if instance_id is None or instance_id in _RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(context, instance_id)
        code = self._check(instance, request)
        instance.is_terminating = request.terminating
        if code != ErrorCode.NONE or not request.metrics:
            instance.last_error = code
            return code
        from odradek.broker.telemetry.received import read_push  # 2.2 ms

        read = partial(read_push, bytes(request.metrics), request.compression_type)
        take = partial(self._take, context, instance, is_terminating=request.terminating)
        if len(request.metrics) <= _AT_ONCE_BYTES:
            try:
                return take(read(_AT_ONCE_BYTES))
            except KafkaError as error:
                if error.code != ErrorCode.TELEMETRY_TOO_LARGE:
                    return take(error)
        reply: Reply[ErrorCode] = Reply()
        limit_bytes = self._surroundings.max_bytes() * _MOST_EXPANSION
        self._surroundings.inspections.run(
            lambda _pause: read(limit_bytes), lambda found: reply.complete(take(found)), context.session
        )
        return reply

    def lost(self, session: Session) -> None:
        """Forget the client instances of a closed connection."""
        for instance_id in self._by_session.pop(session, ()):
            self._forget(instance_id)

    def _check(self, instance: ClientInstance, request: PushTelemetryRequest) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(self._surroundings.clock.monotonic_ms()) and not request.terminating:
            self.counts.throttled += 1
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.asked.subscription_id:
            self.counts.unknown_subscriptions += 1
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in _KNOWN_COMPRESSION_TYPES:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self._surroundings.max_bytes():
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _take(
        self, context: RequestContext, instance: ClientInstance, metrics: ClientMetrics | KafkaError, *, is_terminating: bool
    ) -> ErrorCode:
        if isinstance(metrics, KafkaError):
            # The broker is stopping: let the client try again.
            is_stopping = metrics.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            code = ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_stopping else ErrorCode(metrics.code)
            self.counts.refused_pushes += 1
            instance.last_error = code
            self._log_refusal(context, instance, code, metrics.reason)
            return code
        from odradek.broker.telemetry.received import Push, ReceivedMetrics  # 2.2 ms

        self.counts.pushes += 1
        instance.last_error = ErrorCode.NONE
        now_ms = self._surroundings.clock.now_ms()
        attributes = {**instance.attributes, "client_id": context.client_id}
        push = Push(instance.instance_id, attributes, metrics, now_ms, is_terminating)
        # The client may have disconnected while its push was decoded.
        if instance.instance_id in self._instances:
            self.received = self.received or ReceivedMetrics()
            self.received.add(push)
        if self.on_push is not None:
            self.on_push(push)
        return ErrorCode.NONE

    def _log_refusal(self, context: RequestContext, instance: ClientInstance, code: ErrorCode, reason: str | None) -> None:
        host, port = context.peer
        extra_fields = self._surroundings.line_limit.admit(("telemetry", host))
        if extra_fields is not None:
            log.warn(
                "a client's metrics were refused",
                peer=f"{host}:{port}",
                client_id=context.client_id,
                client_instance_id=uuid_text(instance.instance_id),
                error=code.name,
                reason=reason,
                **extra_fields,
            )

    def _instance(self, context: RequestContext, instance_id: UUID) -> ClientInstance:
        """Return the instance with this id: known, or new, or made again because the subscriptions have changed."""
        found = self._instances.get(instance_id)
        if found is None:
            found = self._put(context, instance_id, _attributes(context, instance_id))
        elif found.version < self._version:
            found.cancel_expiry()
            self._disown(found)
            found = self._put(context, instance_id, found.attributes)
        self._instances.move_to_end(instance_id)
        found.cancel_expiry()
        expiry_ms = max(_EXPIRY_MS, found.asked.interval_ms * _EXPIRY_INTERVALS)
        found.expiry = self._surroundings.timer.call_after(expiry_ms, partial(self._forget, instance_id))
        return found

    def _put(self, context: RequestContext, instance_id: UUID, attributes: Mapping[str, str | None]) -> ClientInstance:
        asked = requested_metrics(self._subscriptions, attributes, instance_id)
        made = self._instances[instance_id] = ClientInstance(instance_id, context.session, attributes, asked, self._version)
        self._by_session.setdefault(context.session, set()).add(instance_id)
        if len(self._instances) > _MOST_INSTANCES:
            self._forget(next(iter(self._instances)))
        return made

    def _forget(self, instance_id: UUID) -> None:
        instance = self._instances.pop(instance_id, None)
        if instance is not None:
            instance.cancel_expiry()
            self._disown(instance)
        if self.received is not None:
            self.received.forget(instance_id)

    def _disown(self, instance: ClientInstance) -> None:
        """Detach an instance from its connection."""
        owned = self._by_session.get(instance.session)
        if owned is not None:
            owned.discard(instance.instance_id)
            if not owned:
                del self._by_session[instance.session]

    def _new_id(self) -> UUID:
        while True:
            # As in Kafka, no id looks like a command line option.
            instance_id = self._surroundings.new_uuid()
            if instance_id not in self._instances and not uuid_text(instance_id).startswith("-"):
                return instance_id

    def _read(self, image: MetadataImage) -> None:
        self._subscriptions = []
        self._version += 1
        for name in image.configured(CLIENT_METRICS_RESOURCE):
            try:
                self._subscriptions.append(subscription_of(image.configs(CLIENT_METRICS_RESOURCE, name)))
            except (KafkaError, ValueError) as error:
                # Kafka's controller accepted the pattern: Java's patterns support more than RE2.
                log.warn("ignoring an invalid subscription of client metrics", name=name, reason=str(error))


def _attributes(context: RequestContext, instance_id: UUID) -> dict[str, str | None]:
    host, port = context.peer
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": context.client_id,
        "client_software_name": context.session.client_software_name,
        "client_software_version": context.session.client_software_version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
