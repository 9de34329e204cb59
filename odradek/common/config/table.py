"""The table by name: every broker config and every topic config."""

from odradek.common.config.definitions import CLUSTER_WIDE, ConfigDefinition, Value
from odradek.common.config.table_groups import QUOTA_SECTIONS, TELEMETRY_SECTIONS
from odradek.common.config.table_log import LOG_SECTIONS
from odradek.common.config.table_quorum import QUORUM_SECTIONS
from odradek.common.config.table_security import AUTHORIZER_SECTIONS, SASL_SECTIONS, SSL_SECTIONS, TOKEN_SECTIONS
from odradek.common.config.table_server import SERVER_SECTIONS
from odradek.common.config.table_topic import TOPIC_DEFINITIONS

SECTIONS = (
    *(SERVER_SECTIONS + SSL_SECTIONS + SASL_SECTIONS + TOKEN_SECTIONS + QUORUM_SECTIONS + AUTHORIZER_SECTIONS),
    *(QUOTA_SECTIONS + TELEMETRY_SECTIONS + LOG_SECTIONS),
)
BROKER_CONFIGS: dict[str, ConfigDefinition] = {row.name: row for _, rows in SECTIONS for row in rows}
TOPIC_CONFIGS: dict[str, ConfigDefinition] = {row.name: row for row in TOPIC_DEFINITIONS}
BROKER_DEFAULTS: dict[str, Value] = {name: row.default for name, row in BROKER_CONFIGS.items()}

# Configs with the same meaning in several units: the finer unit takes precedence, whatever their order in a file.
_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS = {name: family for family in _FAMILIES for name in family} | {
    # One direction only: flushing by age falls back to the scheduler's interval, which is also a config of its own.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def synonyms(name: str) -> tuple[str, ...]:
    """Return the names that decide a broker config, by precedence."""
    return _SYNONYMS.get(name, (name,))


def update_mode(name: str) -> str:
    """Return a broker config's update mode. Unknown keys may change while it runs, as in Kafka: plugins may have them."""
    definition = BROKER_CONFIGS.get(name)
    if definition is not None:
        return definition.update_mode
    from odradek.common.config.ignored import IGNORED

    ignored = IGNORED.get(name)
    return CLUSTER_WIDE if ignored is None else ignored.update_mode
