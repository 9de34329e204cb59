"""The broker's configuration: server.properties and the command line, and dynamic overrides on top of them.

``config["num.partitions"]`` is the value in force, whatever its source. An unknown key is a warning. An invalid value of a
known key stops the start. So does a violation of the rules across configs, which are those of Kafka's ``validateValues``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from odradek import properties
from odradek.common.config.checks import check, check_roles
from odradek.common.config.definitions import MAX_INT, InvalidConfig, parse, parse_list
from odradek.common.config.listener_config import (
    Endpoint,
    ListenerConfig,
    SaslConfig,
    check_controller_listeners,
    check_of_listeners,
    controller_listeners,
    opened_listeners,
    parse_endpoints,
)
from odradek.common.config.table import BROKER_CONFIGS, BROKER_DEFAULTS, synonyms
from odradek.common.config.topic_config import effective, log_config, validate_overrides
from odradek.storage.log.log_config import LogConfig


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the keys and values in ``text``; the last of equal keys wins. Raises InvalidConfig for a malformed ``\u``."""
    try:
        return properties.parse_properties(text)
    except properties.MalformedEscape as error:
        raise InvalidConfig("a \\u escape", str(error), "followed by four hexadecimal digits") from error


__all__ = ["BrokerConfig", "InvalidConfig", "load", "parse_properties"]

_MOST_LOG_CONFIGS: Final = 1_000
# Called with the values, all set texts, and the keys that a client sets now, possibly to the values they have.
Check = Callable[[Mapping[str, Any], Mapping[str, str], Collection[str]], None]


def load(properties: str | None = None, overrides: Mapping[str, str] | None = None) -> "BrokerConfig":
    """Return the configuration in the text of a server.properties, overridden by ``overrides``; raises InvalidConfig."""
    texts = parse_properties(properties) if properties else {}
    texts.update(overrides or {})
    return BrokerConfig(texts)


class BrokerConfig:
    """The typed values in force of all broker configs, by name: ``config["fetch.max.bytes"]``.

    ``static`` has the texts set at the start, unknown keys included; ``warnings`` names the unknown keys. Loop thread only.
    """

    __slots__ = ("_checks", "_log_configs", "_texts", "_values", "_when_overridden", "static", "warnings")

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static = _with_both_ids(static)
        self._texts: Mapping[str, str] = self.static
        self._checks: list[Check] = []
        self._when_overridden: list[Callable[[], None]] = []
        self._values = values_in_force(self.static)
        unknown = [name for name in self.static if name not in BROKER_CONFIGS]
        self.warnings: tuple[str, ...] = ()
        if unknown:
            from odradek.common.config.unknown_keys import warnings  # 1.1 ms

            self.warnings = tuple(warnings(unknown, self._listener_names()))
        # Most topics have the same overrides, or none.
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def of_group(self, overrides: Mapping[str, str], name: str) -> int:
        """Return a number of one group: the broker's, which has the same name with ``group.`` in front, or its own.

        The broker's limits may have become narrower since the group's own was set. Then it counts as the nearest limit.
        """
        own = overrides.get(name)
        if own is None:
            return int(self[f"group.{name}"])
        lowest, highest = self.limits_of_group(name)
        return max(lowest, min(int(own), highest))

    def limits_of_group(self, name: str) -> tuple[int, int]:
        """Return the lowest and the highest value of a group's config that this broker permits."""
        kind, _, rest = name.partition(".")
        # group.streams.max.standby.replicas is the limit of streams.num.standby.replicas.
        limited = rest.removeprefix("num.")
        values = self._values
        return values.get(f"group.{kind}.min.{limited}", 0), values.get(f"group.{kind}.max.{limited}", MAX_INT)

    def _listener_names(self) -> set[str]:
        """Return the names of all listeners: the broker's, the controller's, and those for connections to other nodes."""
        endpoints = parse_endpoints("listeners", self["listeners"])
        between = self["inter.broker.listener.name"]
        others = (*self["controller.listener.names"], *(() if between is None else (between,)))
        return {endpoint.name for endpoint in (*endpoints, *self.controller_endpoints)} | {name.upper() for name in others}

    @property
    def controller_endpoints(self) -> list[Endpoint]:
        """Return the listeners of the controller in this process, for the brokers of its cluster; none without a controller."""
        text = self.static.get("listeners")
        if text is None or "controller" not in self["process.roles"]:
            return []
        listeners = parse_list(text)
        return parse_endpoints("listeners", controller_listeners(listeners, self["controller.listener.names"]))

    @property
    def is_alone(self) -> bool:
        """Return whether the broker is a cluster of one: its controller is in this process, and listens for no other broker."""
        return "controller" in self["process.roles"] and not self.controller_endpoints

    def watch(self, check_also: Check, when_overridden: Callable[[], None]) -> None:
        """Register ``check_also``, which raises InvalidConfig for unusable values, and a callback after overrides change."""
        self._checks.append(check_also)
        self._when_overridden.append(when_overridden)

    def override(self, *layers: Mapping[str, str]) -> None:
        """Replace the dynamic overrides: the cluster's, then this broker's, which take precedence. Raises InvalidConfig."""
        self._texts = self._laid_over(layers)
        self._values = values_in_force(self._texts)
        self._log_configs.clear()
        for tell in self._when_overridden:
            tell()

    def overridden(self, *layers: Mapping[str, str], altered: Collection[str] = ()) -> dict[str, Any]:
        """Return the values that would be in force with ``layers`` of dynamic overrides; raises InvalidConfig.

        ``altered`` are the keys that a client sets or removes with them.
        """
        texts = self._laid_over(layers)
        values = values_in_force(texts)
        for check_also in self._checks:
            check_also(values, texts, altered)
        return values

    def listener_config(self, listener: str) -> ListenerConfig:
        """Return the values in force for one listener."""
        return ListenerConfig(listener, self._values, self._texts)

    def sasl_config(self, listener: str) -> SaslConfig:
        """Return the SASL configs of one listener. Looking up an invalid one raises InvalidConfig."""
        return SaslConfig(listener, self._texts)

    def _laid_over(self, layers: Sequence[Mapping[str, str]]) -> dict[str, str]:
        """Return all set texts, with ``layers`` of dynamic overrides."""
        texts = dict(self.static)
        for layer in layers:
            # A dynamic log.retention.ms, for example, overrides a static log.retention.hours, and the other way round.
            for name in layer:
                for synonym in synonyms(name):
                    texts.pop(synonym, None)
            texts.update(layer)
        return texts

    def topic_config(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Return the typed values of all topic configs, by name, for a topic with ``overrides``."""
        return effective(self._values, overrides)

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """Return the configs for the log of a topic with ``overrides``."""
        key = frozenset(overrides.items())
        found = self._log_configs.get(key)
        if found is None:
            if len(self._log_configs) >= _MOST_LOG_CONFIGS:
                self._log_configs.clear()
            found = self._log_configs[key] = log_config(self._values, overrides)
        return found

    def validate_topic_configs(self, overrides: Mapping[str, str]) -> None:
        """Raise KafkaError(INVALID_CONFIG) if ``overrides`` are invalid for a topic."""
        validate_overrides(self._values, overrides)


def values_in_force(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed values of all broker configs, given the set texts; raises InvalidConfig."""
    values: dict[str, Any] = dict(BROKER_DEFAULTS)
    for name, text in texts.items():
        definition = BROKER_CONFIGS.get(name)
        if definition is not None:
            values[name] = parse(definition, text)
    if values["log.dirs"] is None:
        values["log.dirs"] = values["log.dir"]
    check_roles(values, values["listeners"])
    if "controller" in values["process.roles"]:
        check_controller_listeners(values, controller_listeners(values["listeners"], values["controller.listener.names"]))
    values["listeners"] = opened_listeners(values["listeners"], values["controller.listener.names"])
    check(values)
    check_of_listeners(texts)
    return values


def _with_both_ids(static: Mapping[str, str]) -> dict[str, str]:
    """Return the texts with node.id and its older name broker.id both set, if one of them is."""
    texts = dict(static)
    node_id = texts.get("node.id", texts.get("broker.id"))
    if node_id is not None:
        if texts.get("broker.id", node_id).strip() != node_id.strip():
            raise InvalidConfig("broker.id", texts["broker.id"], f"the same as node.id, {node_id}")
        texts["node.id"] = texts["broker.id"] = node_id
    return texts
