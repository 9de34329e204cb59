"""``odradek client-metrics``: the subscriptions by which brokers ask clients for their metrics (KIP-714).

Kafka's command is kafka-client-metrics.sh. Pushed metrics are on the metrics endpoint of the broker that received them.
"""

import click

from odradek.cli.cluster import Cluster, check
from odradek.cli.options import Servers, asks_a_broker, command_group, show
from odradek.client.admin_apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES
from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.message_types.list_config_resources import ListConfigResourcesRequest

_CLIENT_METRICS = 16
_SET, _DELETE = 0, 1
_CONFIGS = ("metrics", "interval.ms", "match")
_LISTED = ("name", "metrics", "interval_ms", "match")


@command_group("client-metrics")
def client_metrics() -> None:
    """Manage subscriptions to clients' own metrics."""


@client_metrics.command("list")
@asks_a_broker
def list_subscriptions(bootstrap: Servers, as_json: bool) -> int:
    """List every subscription, with its configs."""
    with Cluster(bootstrap) as cluster:
        listed = cluster.any.call(LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(resource_types=[_CLIENT_METRICS]))
        check("client metrics", listed.error_code)
        rows = _described(cluster, sorted(resource.resource_name for resource in listed.config_resources))
    show(_LISTED, rows, as_json=as_json)
    return 0


@client_metrics.command("set")
@click.argument("name", metavar="NAME")
@asks_a_broker
@click.option("--metrics", help="Prefixes of metric names, separated by commas; * for all metrics.")
@click.option("--interval-ms", type=int, help="Milliseconds between two pushes of a client: 100 to 3600000.")
@click.option("--match", help="Only matching clients: client_id=PATTERN and so on, separated by commas. Empty: all clients.")
def set_subscription(
    name: str, bootstrap: Servers, as_json: bool, metrics: str | None, interval_ms: int | None, match: str | None
) -> int:
    """Make a subscription, or change the given configs of one. Clients learn of it at their next request."""
    told = {"metrics": metrics, "interval.ms": None if interval_ms is None else str(interval_ms), "match": match}
    configs = [AlterableConfig(config, _SET, value) for config, value in told.items() if value is not None]
    if not configs:
        raise click.UsageError("nothing to set: give --metrics, --interval-ms or --match")
    with Cluster(bootstrap) as cluster:
        _alter(cluster, name, configs)
    show(("name",), [{"name": name}], as_json=as_json)
    return 0


@client_metrics.command()
@click.argument("name", metavar="NAME")
@asks_a_broker
def remove(name: str, bootstrap: Servers, as_json: bool) -> int:
    """Remove a subscription."""
    with Cluster(bootstrap) as cluster:
        _alter(cluster, name, [AlterableConfig(config, _DELETE, None) for config in _CONFIGS])
    show(("name",), [{"name": name}], as_json=as_json)
    return 0


def _described(cluster: Cluster, names: list[str]) -> list[dict[str, str | int | None]]:
    resources = [DescribeConfigsResource(resource_type=_CLIENT_METRICS, resource_name=name) for name in names]
    if not resources:
        return []
    rows: list[dict[str, str | int | None]] = []
    for result in cluster.any.call(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources)).results:
        check(result.resource_name, result.error_code, result.error_message)
        found = {config.name: config.value for config in result.configs}
        rows.append(
            {
                "name": result.resource_name,
                "metrics": found.get("metrics"),
                "interval_ms": int(found.get("interval.ms") or 0),
                "match": found.get("match"),
            }
        )
    return rows


def _alter(cluster: Cluster, name: str, configs: list[AlterableConfig]) -> None:
    resource = AlterConfigsResource(_CLIENT_METRICS, name, configs)
    for result in (
        cluster.controller().call(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource])).responses
    ):
        check(name, result.error_code, result.error_message)
