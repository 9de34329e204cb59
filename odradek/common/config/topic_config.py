"""A topic's configuration: its overrides, and below them the broker's configs of the same meaning.

Some of the broker's have several units (``log.retention.ms``, ``.minutes``, ``.hours``); the finest unit that is set applies.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from odradek.common.config.definitions import ConfigDefinition, InvalidConfig, Value, complain, parse
from odradek.common.config.table import TOPIC_CONFIGS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_config import LogConfig

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


def _retention_ms(values: Mapping[str, Any]) -> int:
    retention_ms: int | None = values["log.retention.ms"]
    if retention_ms is None:
        minutes: int | None = values["log.retention.minutes"]
        retention_ms = values["log.retention.hours"] * _HOUR_MS if minutes is None else minutes * _MINUTE_MS
    return -1 if retention_ms < 0 else retention_ms


def _in_hours_unless_set(ms_name: str, hours_name: str, values: Mapping[str, Any]) -> int:
    set_ms: int | None = values[ms_name]
    return int(values[hours_name]) * _HOUR_MS if set_ms is None else set_ms


def broker_default(definition: ConfigDefinition, values: Mapping[str, Any]) -> Value:
    """Return the value of a topic config without an override, given the broker's ``values``."""
    match definition.name:
        case "retention.ms":
            return _retention_ms(values)
        case "segment.ms":
            return _in_hours_unless_set("log.roll.ms", "log.roll.hours", values)
        case "segment.jitter.ms":
            return _in_hours_unless_set("log.roll.jitter.ms", "log.roll.jitter.hours", values)
        case "flush.ms":
            flush_ms: int | None = values["log.flush.interval.ms"]
            return values["log.flush.scheduler.interval.ms"] if flush_ms is None else flush_ms
    return definition.default if definition.server_default is None else values[definition.server_default]


def effective(values: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """Return every topic config, typed; raises InvalidConfig for an override that cannot be parsed."""
    return {
        name: parse(definition, overrides[name]) if name in overrides else broker_default(definition, values)
        for name, definition in TOPIC_CONFIGS.items()
    }


def validate_overrides(values: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
    """Raise KafkaError(INVALID_CONFIG) if ``overrides`` are invalid for a topic."""
    for name in overrides:
        if name not in TOPIC_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        topic = effective(values, overrides)
    except InvalidConfig as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if topic["min.compaction.lag.ms"] > topic["max.compaction.lag.ms"]:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"min.compaction.lag.ms ({topic['min.compaction.lag.ms']}) is more than "
            f"max.compaction.lag.ms ({topic['max.compaction.lag.ms']})",
        )
    if topic["remote.storage.enable"]:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "remote.storage.enable cannot be true: there is no remote storage")


def check_defaults(values: Mapping[str, Any]) -> None:
    """Raise InvalidConfig if a topic without overrides would have an invalid config."""
    for definition in TOPIC_CONFIGS.values():
        if definition.server_default is not None:
            complain(definition._replace(name=definition.server_default), broker_default(definition, values))
    if values["log.cleaner.min.compaction.lag.ms"] > values["log.cleaner.max.compaction.lag.ms"]:
        raise InvalidConfig(
            "log.cleaner.min.compaction.lag.ms",
            str(values["log.cleaner.min.compaction.lag.ms"]),
            "no more than log.cleaner.max.compaction.lag.ms",
        )


def log_config(values: Mapping[str, Any], overrides: Mapping[str, str]) -> LogConfig:
    """Return the configs for the log of a topic with ``overrides``."""
    topic = effective(values, overrides)
    if topic["internal.segment.bytes"] is not None:
        topic["segment.bytes"] = topic["internal.segment.bytes"]
    known = {name.replace(".", "_"): value for name, value in topic.items()}
    known["producer_id_expiration_ms"] = values["producer.id.expiration.ms"]
    return LogConfig(**{field.name: known[field.name] for field in fields(LogConfig) if field.init})
