"""Configs for DescribeConfigs: values, their sources, and their synonyms (KIP-226, KIP-569).

An entry's synonyms are all settings that could decide its value, the one in force first. A topic config falls back to the
broker config of the same meaning. As in Kafka, that config's coarser units (``log.retention.hours`` for ``log.retention.ms``)
are listed only if the finest unit is set.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.common.config.definitions import ConfigDefinition, ConfigType, InvalidConfig, Value, parse, to_text
from odradek.common.config.dynamic import CLUSTER_DEFAULT, ConfigView, ResourceType, definition_of, is_dynamic
from odradek.common.config.table import BROKER_CONFIGS, BROKER_DEFAULTS, TOPIC_CONFIGS, synonyms


class ConfigSource(IntEnum):
    """The source of a config's value."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """A setting that could decide a config: its name, value and source."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One config in a response; the value of a sensitive config is None."""

    name: str
    value: str | None
    source: int
    type: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def topic_entries(view: ConfigView, overrides: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Yield all configs of a topic with ``overrides``."""
    values = view.config.topic_config(overrides)
    for name, definition in TOPIC_CONFIGS.items():
        if definition.internal and name not in overrides:
            continue
        value = to_text(values[name])
        set_by = () if definition.server_default is None else _broker_synonyms(view, definition.server_default)
        if name in overrides:
            set_by = (Synonym(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *set_by)
        yield _entry(definition, name, value, set_by, read_only=False)


def other_entries(definitions: Sequence[ConfigDefinition], overrides: Mapping[str, str], source: int) -> Iterator[ConfigEntry]:
    """Yield all configs of a resource without a fallback to the broker's configs, with ``overrides``."""
    for definition in definitions:
        text = overrides.get(definition.name)
        value = to_text(definition.default) if text is None else _parsed(definition, text)
        set_by: tuple[Synonym, ...] = ()
        if definition.server_default is not None:
            set_by = (Synonym(definition.server_default, to_text(definition.default), ConfigSource.DEFAULT_CONFIG),)
        if definition.name in overrides:
            set_by = (Synonym(definition.name, value, source), *set_by)
        yield _entry(definition, definition.name, value, set_by, read_only=False)


def group_entries(
    view: ConfigView, definitions: Sequence[ConfigDefinition], overrides: Mapping[str, str]
) -> Iterator[ConfigEntry]:
    """Yield all configs of a group with ``overrides``; most of them fall back to the broker's.

    Internal ones are left out unless they, or the broker's, are set.
    """
    for definition in definitions:
        default = definition.server_default
        if default is None or default not in BROKER_CONFIGS:
            yield from other_entries((definition,), overrides, ConfigSource.DYNAMIC_GROUP_CONFIG)
            continue
        value = overrides.get(definition.name, to_text(view.config[default]))
        set_by = _broker_synonyms(view, default)
        if definition.name in overrides:
            set_by = (Synonym(definition.name, value, ConfigSource.DYNAMIC_GROUP_CONFIG), *set_by)
        if definition.internal and set_by[0].source == ConfigSource.DEFAULT_CONFIG:
            continue
        yield _entry(definition, definition.name, value, set_by, read_only=False)


def broker_entries(view: ConfigView) -> Iterator[ConfigEntry]:
    """Yield all configs of this broker, and all unknown keys that are set. As in Kafka, values of unknown keys are hidden."""
    config = view.config
    dynamic = [*view.overrides(ResourceType.BROKER, view.node_id), *view.overrides(ResourceType.BROKER, CLUSTER_DEFAULT)]
    extra = dict.fromkeys(name for name in (*config.static, *dynamic) if name not in BROKER_CONFIGS)
    for name, definition in BROKER_CONFIGS.items():
        set_by = _broker_synonyms(view, name)
        if not (definition.internal or definition.is_described_if_set) or any(
            synonym.source != ConfigSource.DEFAULT_CONFIG for synonym in set_by
        ):
            yield _entry(definition, name, to_text(_shown_value(view, name)), set_by, read_only=not is_dynamic(name))
    for name in extra:
        yield _extra_entry(name, _broker_synonyms(view, name))


def cluster_default_entries(view: ConfigView) -> Iterator[ConfigEntry]:
    """Yield the overrides for every broker of the cluster, and nothing else."""
    for name, text in view.overrides(ResourceType.BROKER, CLUSTER_DEFAULT).items():
        set_by = (Synonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)
        definition = BROKER_CONFIGS.get(name)
        if definition is None:
            yield _extra_entry(name, set_by)
        else:
            yield _entry(definition, name, text, set_by, read_only=not is_dynamic(name))


def _shown_value(view: ConfigView, name: str) -> Value:
    """Return the configured value if the broker derives another one from it, else the value in force."""
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
        if default is not None and not BROKER_CONFIGS[each].is_described_if_set:
            found.append(Synonym(each, default, ConfigSource.DEFAULT_CONFIG))
    first = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return tuple(found[first:])


def _parsed(definition: ConfigDefinition, text: str) -> str | None:
    """Return the value as Kafka shows it: without spaces and duplicate entries. A text that cannot be parsed is unchanged."""
    try:
        return to_text(parse(definition, text))
    except InvalidConfig:
        return text


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
        documentation=definition.documentation or None,
    )
