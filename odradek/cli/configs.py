"""``odradek configs``: describe and alter the configs of topics, brokers and groups, on any broker.

Subscriptions to clients' metrics have configs, too: ``odradek client-metrics``.
"""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import Final

import click

from odradek.cli.cluster import Cluster, Connection, Refused, check
from odradek.cli.options import Servers, asks_a_broker, command_group, did_you_mean, key_and_value, row_of, show
from odradek.client.admin_apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from odradek.protocol.message_types.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC: Final = "topic"
_BROKER: Final = "broker"
_RESOURCE_TYPES: Final = {TOPIC: 2, _BROKER: 4, "group": 32}
# The name of the configs that all brokers share.
_ALL_BROKERS: Final = "default"
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_DEFAULT_SOURCE: Final = 5
_SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "server.properties",
    _DEFAULT_SOURCE: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
_OWN_SOURCES: Final = {TOPIC: 1, _BROKER: 2, "group": 8}
_ALL_BROKERS_SOURCE: Final = 3
# The number of reads of a changed config until the broker shows the change, and the pause between them.
_READS: Final = 40
_BETWEEN_READS_S: Final = 0.05
_DESCRIBED: Final = ("config", "value", "source", "read_only")
_ALTERED: Final = ("config", "value")


@command_group()
def configs() -> None:
    """Show and change configs of topics, brokers and groups."""


@configs.command()
@click.argument("kind", type=click.Choice(list(_RESOURCE_TYPES)))
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[CONFIG]...")
@asks_a_broker
@click.option("--all", "with_defaults", is_flag=True, help="The configs with their default values, too.")
def describe(kind: str, name: str, keys: tuple[str, ...], bootstrap: Servers, as_json: bool, with_defaults: bool) -> int:
    """Show what is set on a topic, a broker (its id, or default for all of them) or a group; or the named CONFIGs.

    A secret has no value here.
    """
    with Cluster(bootstrap) as cluster:
        found = _describe(cluster, kind, name)
    known = {config.name: config for config in found}
    for key in keys:
        if key not in known:
            raise Refused(f"{kind} {name}", ErrorCode.INVALID_CONFIG, f"there is no config {key}{did_you_mean(key, known)}")
    shown = [known[key] for key in keys] or [one for one in found if with_defaults or _is_set(one)]
    rows = [
        row_of(_DESCRIBED, one.name, one.value, _SOURCES.get(one.config_source), bool(one.read_only))
        for one in sorted(shown, key=lambda one: one.name)
    ]
    show(_DESCRIBED, rows, as_json=as_json)
    return 0


@configs.command()
@click.argument("kind", type=click.Choice(list(_RESOURCE_TYPES)))
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="[CONFIG=VALUE]...", callback=key_and_value)
@asks_a_broker
@click.option("--remove", "removed", metavar="CONFIG", multiple=True, help="Back to the default; repeatable.")
@click.option("--append", "appended", metavar="CONFIG=VALUE", multiple=True, callback=key_and_value, help="Add to a list.")
@click.option("--subtract", "subtracted", metavar="CONFIG=VALUE", multiple=True, callback=key_and_value, help="Take from a list.")
def alter(
    kind: str,
    name: str,
    settings: dict[str, str],
    bootstrap: Servers,
    as_json: bool,
    removed: tuple[str, ...],
    appended: dict[str, str],
    subtracted: dict[str, str],
) -> int:
    """Set configs of a topic, a broker (its id, or default for all of them) or a group."""
    changes = [
        *changes_of(settings, removed),
        *(AlterableConfig(key, _APPEND, value) for key, value in appended.items()),
        *(AlterableConfig(key, _SUBTRACT, value) for key, value in subtracted.items()),
    ]
    if not changes:
        raise click.UsageError("there is nothing to change: give CONFIG=VALUE, --remove, --append or --subtract")
    with Cluster(bootstrap) as cluster:
        alter_configs(cluster, kind, name, changes)
        now = _altered(cluster, kind, name, changes)
    show(_ALTERED, [{"config": change.name, "value": now.get(change.name)} for change in changes], as_json=as_json)
    return 0


def changes_of(settings: Mapping[str, str], removed: Sequence[str]) -> list[AlterableConfig]:
    """Return the changes that set and remove configs."""
    return [
        *(AlterableConfig(key, _SET, value) for key, value in settings.items()),
        *(AlterableConfig(key, _DELETE, None) for key in removed),
    ]


def alter_configs(cluster: Cluster, kind: str, name: str, changes: list[AlterableConfig]) -> None:
    """Change configs of a resource, all or none. Raises Refused, with the configs that a wrong name resembles."""
    resource = AlterConfigsResource(_RESOURCE_TYPES[kind], _resource_name(kind, name), changes)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [answer] = _asked(cluster, kind, name, cluster.controller()).call(INCREMENTAL_ALTER_CONFIGS, request).responses
    if answer.error_code == ErrorCode.INVALID_CONFIG:
        known = {config.name for config in _describe(cluster, kind, name)}
        wrong = next((change.name for change in changes if change.name not in known), None)
        if wrong is not None:
            raise Refused(f"{kind} {name}", answer.error_code, f"there is no config {wrong}{did_you_mean(wrong, known)}")
    check(f"{kind} {name}", answer.error_code, answer.error_message)


def _altered(cluster: Cluster, kind: str, name: str, changes: Sequence[AlterableConfig]) -> dict[str, str | None]:
    """Return the values of all configs when the broker knows of the changes: it follows the controller, a moment later."""
    own = _ALL_BROKERS_SOURCE if kind == _BROKER and name == _ALL_BROKERS else _OWN_SOURCES[kind]
    for attempt in range(_READS):
        if attempt:
            Event().wait(_BETWEEN_READS_S)
        now = {config.name: config for config in _describe(cluster, kind, name)}
        if all(_shows(now.get(change.name), change, own) for change in changes):
            break
    return {name: config.value for name, config in now.items()}


def _shows(config: DescribeConfigsResourceResult | None, change: AlterableConfig, own_source: int) -> bool:
    if config is None or config.is_sensitive:
        return True
    if change.config_operation == _DELETE:
        return config.config_source != own_source
    if change.config_operation == _SET:
        return config.value == change.value
    listed, named = set((config.value or "").split(",")), set((change.value or "").split(","))
    return named <= listed if change.config_operation == _APPEND else not named & listed


def _describe(cluster: Cluster, kind: str, name: str) -> Sequence[DescribeConfigsResourceResult]:
    asked = DescribeConfigsResource(_RESOURCE_TYPES[kind], _resource_name(kind, name), None)
    connection = _asked(cluster, kind, name, cluster.any)
    [answer] = connection.call(DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[asked])).results
    check(f"{kind} {name}", answer.error_code, answer.error_message)
    return answer.configs


def _resource_name(kind: str, name: str) -> str:
    return "" if kind == _BROKER and name == _ALL_BROKERS else name


def _asked(cluster: Cluster, kind: str, name: str, otherwise: Connection) -> Connection:
    """Return the broker itself for its own configs."""
    if kind != _BROKER or name == _ALL_BROKERS:
        return otherwise
    if not name.isdecimal():
        raise click.UsageError(f"{name} is not the id of a broker, and not {_ALL_BROKERS}")
    cluster.nodes()
    return cluster.node(int(name))


def _is_set(config: DescribeConfigsResourceResult) -> bool:
    return config.config_source != _DEFAULT_SOURCE
