"""Overrides made while the broker runs: for one topic, for one broker, for every broker of the cluster.

They are records in the metadata log, and the controller's image holds them as text. This module applies them on top of the
static configuration. A topic's override takes precedence over the broker's configs. Among the broker's configs, this broker's
override takes precedence over the cluster's (the broker named ""), and both over server.properties.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import (
    PER_BROKER,
    READ_ONLY,
    ConfigDefinition,
    InvalidConfig,
    parse,
)
from odradek.common.config.table import BROKER_CONFIGS, update_mode

CLUSTER_DEFAULT = ""  # the broker resource whose overrides apply to every broker
_PER_LISTENER = "listener.name."
# The listener configs that Kafka lets the cluster set. Other listener configs are set for each broker.
_CLUSTER_WIDE_OF_LISTENERS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})


class ResourceType(IntEnum):
    """The kind of resource that a config belongs to, in requests and in the metadata log."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigView(NamedTuple):
    """The broker's configs, overrides by (resource type, name), and existing topics, for describing and altering configs.

    ``has_elr`` is true if the cluster has eligible leader replicas (KIP-966), as a cluster made by Kafka may. A cluster's
    controller may alter the configs of any broker that ``broker_exists``. A broker has no such function, and may alter only
    its own.
    """

    config: BrokerConfig
    overrides: Callable[[int, str], Mapping[str, str]]
    topic_exists: Callable[[str], bool]
    has_elr: bool = False
    broker_exists: Callable[[int], bool] | None = None

    @property
    def node_id(self) -> str:
        """Return this broker's name as a resource."""
        return str(self.config["node.id"])


def base_name(name: str) -> str:
    """Return the config that a key sets; for ``listener.name.<listener>.<config>`` this is ``<config>``."""
    return name.split(".", 3)[3] if name.startswith(_PER_LISTENER) and name.count(".") > 2 else name


def definition_of(name: str) -> ConfigDefinition | None:
    """Return the table's row for a broker config, including one for a single listener."""
    base = base_name(name)
    found = BROKER_CONFIGS.get(name) or BROKER_CONFIGS.get(base)
    # A listener's config may be for one mechanism: ``listener.name.<listener>.<mechanism>.<config>``.
    return found if found is not None or base == name else BROKER_CONFIGS.get(base.partition(".")[2])


def is_dynamic(name: str) -> bool:
    """Return whether a broker config may change while the broker runs. Unknown ones may: Kafka treats them as a plugin's."""
    return name.startswith(_PER_LISTENER) or update_mode(name) != READ_ONLY


def is_for_one_broker_only(name: str) -> bool:
    """Return whether a broker config cannot be set for the whole cluster."""
    base = base_name(name)
    return base not in _CLUSTER_WIDE_OF_LISTENERS if base != name else update_mode(name) == PER_BROKER


def apply_broker_overrides(view: ConfigView) -> list[str]:
    """Apply the present overrides of the cluster and of this broker. Return warnings.

    Call it after the metadata log has been replayed, and after a broker's overrides have changed. An override that cannot be
    applied is left out, with a warning: it was valid when it was made, under another static configuration or version.
    """
    cluster, broker = (view.overrides(ResourceType.BROKER, name) for name in (CLUSTER_DEFAULT, view.node_id))
    if not cluster and not broker:
        view.config.override()
        return []
    applied, warnings = applicable(cluster, for_cluster=True)
    applied_here, more_warnings = applicable(broker, for_cluster=False)
    warnings += more_warnings
    try:
        view.config.override(applied, applied_here)
    except InvalidConfig as error:
        view.config.override()
        warnings.append(f"dynamic configs are not applied because they contradict each other: {error}")
    return warnings


def applicable(overrides: Mapping[str, str], *, for_cluster: bool) -> tuple[dict[str, str], list[str]]:
    """Return the applicable ``overrides`` of a broker, or of the cluster, and a warning for each of the others."""
    fine: dict[str, str] = {}
    warnings = []
    for name, text in overrides.items():
        definition = definition_of(name)
        try:
            if definition is not None:
                parse(definition, text)
        except InvalidConfig as error:
            warnings.append(f"a dynamic config is not applied: {error}")
            continue
        if not is_dynamic(name) or (for_cluster and is_for_one_broker_only(name)):
            warnings.append(f"a dynamic config is not applied: {name} cannot be set there")
            continue
        fine[name] = text
    return fine, warnings
