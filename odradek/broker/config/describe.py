"""What clients are told of configs: values, where each comes from, and what else could have set it (KIP-226, KIP-569).

An entry's synonyms are all that is set for it, first the one in force. A topic's fall back to the broker config of the same
meaning; as in Kafka, the coarser units of one (``log.retention.hours`` below ``log.retention.ms``) are told only where the
finest is set.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.config.definitions import ConfigDefinition, ConfigType, Value, parse, to_text
from odradek.broker.config.dynamic import CLUSTER_DEFAULT, ConfigView, ResourceType, definition_of, is_dynamic
from odradek.broker.config.table import BROKER_CONFIGS, BROKER_DEFAULTS, TOPIC_CONFIGS, synonyms


class ConfigSource(IntEnum):
    """Where the value of a config comes from."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class Synonym(NamedTuple):
    """Something that sets a config: under which name, to what, from where."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One config as it is told; the value of a sensitive one is not."""

    name: str
    value: str | None
    source: int
    type: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def topic_entries(view: ConfigView, overrides: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Every config of a topic with ``overrides``."""
    values = view.config.topic_config(overrides)
    for name, definition in TOPIC_CONFIGS.items():
        if definition.internal and name not in overrides:
            continue
        value = to_text(values[name])
        set_by = () if definition.server_default is None else _broker_synonyms(view, definition.server_default)
        if name in overrides:
            set_by = (Synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *set_by)
        yield _entry(definition, name, value, set_by, read_only=False)


def broker_entries(view: ConfigView) -> Iterator[ConfigEntry]:
    """Every config of this broker, and every key that was set without being one: a plugin's, to Kafka, and not to be shown."""
    config = view.config
    dynamic = [*view.overrides(ResourceType.BROKER, view.node_id), *view.overrides(ResourceType.BROKER, CLUSTER_DEFAULT)]
    extra = dict.fromkeys(name for name in (*config.static, *dynamic) if name not in BROKER_CONFIGS)
    for name, definition in BROKER_CONFIGS.items():
        set_by = _broker_synonyms(view, name)
        if not definition.internal or any(synonym.source != ConfigSource.DEFAULT_CONFIG for synonym in set_by):
            yield _entry(definition, name, to_text(_told(view, name)), set_by, read_only=not is_dynamic(name))
    for name in extra:
        yield _extra_entry(name, _broker_synonyms(view, name))


def cluster_default_entries(view: ConfigView) -> Iterator[ConfigEntry]:
    """What is overridden for every broker of the cluster, and nothing else."""
    for name, text in view.overrides(ResourceType.BROKER, CLUSTER_DEFAULT).items():
        set_by = (Synonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)
        definition = BROKER_CONFIGS.get(name)
        if definition is None:
            yield _extra_entry(name, set_by)
        else:
            yield _entry(definition, name, text, set_by, read_only=not is_dynamic(name))


def _told(view: ConfigView, name: str) -> Value:
    """The value in force, but as it was configured where the broker makes something else of it."""
    static = view.config.static
    if name == "broker.id":
        value: Any = view.config["node.id"]
    elif name in ("listeners", "log.dirs"):
        value = parse(BROKER_CONFIGS[name], static[name]) if name in static else BROKER_DEFAULTS[name]
    else:
        value = view.config[name]
    return value  # type: ignore[no-any-return]


def _broker_synonyms(view: ConfigView, name: str) -> tuple[Synonym, ...]:
    sources: tuple[tuple[Mapping[str, str], ConfigSource], ...] = (
        (view.overrides(ResourceType.BROKER, view.node_id), ConfigSource.DYNAMIC_BROKER_CONFIG),
        (view.overrides(ResourceType.BROKER, CLUSTER_DEFAULT), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (view.config.static, ConfigSource.STATIC_BROKER_CONFIG),
    )
    names = synonyms(name)
    found = [Synonym(each, texts[each], source) for texts, source in sources for each in names if each in texts]
    for each in names:
        default = to_text(BROKER_DEFAULTS.get(each))
        if default is not None:
            found.append(Synonym(each, default, ConfigSource.DEFAULT_CONFIG))
    first = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[first:])


def _extra_entry(name: str, set_by: tuple[Synonym, ...]) -> ConfigEntry:
    definition = definition_of(name) or ConfigDefinition(name, ConfigType.UNKNOWN, None, "")
    return _entry(definition, name, set_by[0].value, set_by, read_only=True)


def _entry(
    definition: ConfigDefinition, name: str, value: str | None, set_by: tuple[Synonym, ...], *, read_only: bool
) -> ConfigEntry:
    hidden = definition.type in (ConfigType.PASSWORD, ConfigType.UNKNOWN)
    return ConfigEntry(
        name=name,
        value=None if hidden else value,
        source=set_by[0].source if set_by else ConfigSource.DEFAULT_CONFIG,
        type=definition.type,
        read_only=read_only,
        sensitive=hidden,
        synonyms=tuple(synonym._replace(value=None) for synonym in set_by) if hidden else set_by,
        documentation=definition.doc or None,
    )
