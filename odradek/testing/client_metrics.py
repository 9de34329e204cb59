"""The metrics of clients, for tests: each push in order, and the last value of a metric (KIP-714).

    broker.subscribe_client_metrics("org.apache.kafka.producer.", interval_ms=100)
    application(bootstrap_servers=broker.bootstrap_servers)
    broker.wait_for(client_id="app", metric="org.apache.kafka.producer.connection.creation.total")
    broker.client_metrics(client_id="app").value("org.apache.kafka.producer.connection.creation.total")

A client is asked by a subscription; one that no subscription matches pushes nothing. Pushes are kept when their client is gone,
the last thousand of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.common.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.broker.telemetry.received import Push
    from odradek.protocol.otlp_metrics import Buckets, DataPoint
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

SUBSCRIPTION: Final = "odradek-testing"
_ALTER_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClientPush:
    """A push of one client instance. ``time_ms`` is by the broker's clock."""

    client_id: str
    client_instance_id: str
    software: str
    time_ms: int
    is_terminating: bool
    points: tuple[DataPoint, ...]
    # Attributes of all points, such as a consumer's group.
    resource: Mapping[str, str]

    def value(self, metric: str, **attributes: object) -> float | Buckets | None:
        """Return the value of the first data point of a metric with these attributes; None if there is none."""
        return next((point.value for point in self.points if _is_of(point, metric, attributes)), None)

    def __str__(self) -> str:
        last = ", its last one" if self.is_terminating else ""
        return f"client {self.client_id!r} ({self.software}): {len(self.points)} data points{last}"


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """Pushes in order of arrival: of one client, or of all."""

    pushes: tuple[ClientPush, ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics that were pushed."""
        return sorted({point.name for push in self.pushes for point in push.points})

    def value(self, metric: str, **attributes: object) -> float | Buckets | None:
        """Return the last value of a metric with these attributes; None if there is none. An attribute's dots are underscores.

        A client pushes the counts since its last push: see ``total``.
        """
        return next(iter(self._values(metric, attributes, reverse=True)), None)

    def values(self, metric: str, **attributes: object) -> list[float | Buckets]:
        """Return all values of a metric with these attributes, in order."""
        return list(self._values(metric, attributes))

    def total(self, metric: str, **attributes: object) -> float:
        """Return the count since the first push: the sum of all values of a metric."""
        return sum(value for value in self._values(metric, attributes) if isinstance(value, int | float))

    def _values(self, metric: str, attributes: Mapping[str, object], *, reverse: bool = False) -> Iterator[float | Buckets]:
        for push in reversed(self.pushes) if reverse else self.pushes:
            for point in push.points:
                if _is_of(point, metric, attributes):
                    yield point.value

    def __str__(self) -> str:
        return "\n".join(map(str, self.pushes)) or "nothing was pushed"


def measured(pushes: Iterable[Push], client_id: str | None) -> ClientMetrics:
    """Return the pushes of a client, or of all clients."""
    found = [push for push in pushes if client_id is None or push.attributes["client_id"] == client_id]
    return ClientMetrics(tuple(map(_shown, found)))


async def subscribe(broker: InProcessBroker, configs: Mapping[str, str | None], name: str) -> None:
    """Set configs of a subscription, and remove those that are None. Raises KafkaError if they are refused."""
    alterable = [AlterableConfig(config, int(value is None), value) for config, value in configs.items()]
    resource = AlterConfigsResource(ResourceType.CLIENT_METRICS, name, alterable)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (answer,) = (await broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, _ALTER_VERSION)).responses
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code), answer.error_message)


def match_text(match: Mapping[str, str] | None) -> str:
    """Return the config text for ``match``, the patterns of a subscription by attribute. Raises TypeError."""
    if match is not None and not isinstance(match, Mapping):
        raise TypeError(f'match must be a dict of attributes and patterns: match={{"client_id": "billing"}}, not {match!r}')
    return ",".join(f"{attribute}={pattern}" for attribute, pattern in (match or {}).items())


def _shown(push: Push) -> ClientPush:
    attributes = {name: value or "" for name, value in push.attributes.items()}
    software = " ".join(filter(None, (attributes["client_software_name"], attributes["client_software_version"])))
    return ClientPush(
        client_id=attributes["client_id"],
        client_instance_id=attributes["client_instance_id"],
        software=software,
        time_ms=push.time_ms,
        is_terminating=push.is_terminating,
        points=push.metrics.points,
        resource=push.metrics.resource,
    )


def _is_of(point: DataPoint, metric: str, attributes: Mapping[str, object]) -> bool:
    if point.name != metric:
        return False
    return all(_attribute(point, name) == str(value) for name, value in attributes.items())


def _attribute(point: DataPoint, name: str) -> str | None:
    found = point.attributes.get(name)
    return point.attributes.get(name.replace("_", ".")) if found is None else found
