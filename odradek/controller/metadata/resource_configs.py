"""Checks of the configs of groups and of client metrics subscriptions. Imported only when they are set, or when clients ask.

A group's own value must lie between the broker's limits for it, such as ``group.consumer.min.*`` and ``group.consumer.max.*``.
A session must outlast a heartbeat. Source: ``GroupConfig.validate`` of Apache Kafka 4.4.

A subscription (KIP-714) is a resource of type CLIENT_METRICS with ``metrics`` (prefixes of names, ``*`` for all), ``interval.ms``
and ``match``. An entry of ``match`` is ``attribute=pattern``; a client is asked for metrics if all entries match. Patterns use
RE2's syntax, which matches in linear time. Unlike Java's, it has no backreferences, lookahead or lookbehind. Source:
``ClientMetricsConfigs`` of Apache Kafka 4.4.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import ConfigDefinition, InvalidConfig, parse, parse_list
from odradek.common.config.table_groups import CLIENT_METRICS_DEFINITIONS, GROUP_DEFINITIONS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.patterns import InvalidPattern, Pattern, compile_pattern

GROUP_CONFIGS: Final[dict[str, ConfigDefinition]] = {each.name: each for each in GROUP_DEFINITIONS}
_TAGS: Final = "streams.rack.aware.assignment.tags"
_TIMES: Final = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
# The configs of each kind of groups that must lie between a ``min.`` and a ``max.`` config of the broker.
LIMITED: Final[dict[str, tuple[str, ...]]] = {
    "consumer": _TIMES,
    "share": (*_TIMES, "record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"),
    "streams": (*_TIMES, "num.standby.replicas", "num.warmup.replicas", "task.offset.interval.ms"),
}


def check_group(config: BrokerConfig, group: str, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError for invalid overrides of ``group``: INVALID_CONFIG; INVALID_REQUEST if no group is named."""
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "group configs have no default resource: name a group")
    for name, text in wanted.items():
        if name not in GROUP_CONFIGS:
            _refuse_group(f"groups have no config {name}")
        try:
            parse(GROUP_CONFIGS[name], text)
        except InvalidConfig as error:
            _refuse_group(str(error))
    tags = [entry.strip() for entry in wanted.get(_TAGS, "").split(",")]
    if len(set(tags)) < len(tags):
        _refuse_group(f"{_TAGS} has an entry twice")
    for name, (lowest, highest) in _limits(config).items():
        if name in wanted and int(wanted[name]) < lowest:
            _refuse_group(f"{name} is less than {_limit(name, 'min')}, which is {lowest}")
        if name in wanted and int(wanted[name]) > highest:
            _refuse_group(f"{name} is more than {_limit(name, 'max')}, which is {highest}")
    for kind in LIMITED:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = int(wanted.get(session, config[f"group.{session}"]))
        if session_ms <= int(wanted.get(heartbeat, config[f"group.{heartbeat}"])):
            _refuse_group(f"{session} must be longer than {heartbeat}")


def _limits(config: BrokerConfig) -> dict[str, tuple[int, int]]:
    """Return the lowest and the highest value of the configs that have limits among the broker's."""
    return {f"{kind}.{name}": config.limits_of_group(f"{kind}.{name}") for kind, names in LIMITED.items() for name in names}


def _limit(name: str, which: str) -> str:
    """Return the name of the broker's limit for a config: ``group.share.min.session.timeout.ms``, for example."""
    kind, _, rest = name.partition(".")
    # group.streams.max.standby.replicas is the limit of streams.num.standby.replicas.
    return f"group.{kind}.{which}.{rest.removeprefix('num.')}"


def _refuse_group(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


CLIENT_METRICS_CONFIGS: Final[dict[str, ConfigDefinition]] = {each.name: each for each in CLIENT_METRICS_DEFINITIONS}
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
# The attributes that a pattern may name.
ATTRIBUTES: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_MIN_INTERVAL_MS: Final = 100
_MAX_INTERVAL_MS: Final = 3_600_000
_LONGEST_PATTERN: Final = 1024


def check_subscription(name: str, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError for invalid configs of a subscription: INVALID_REQUEST or INVALID_CONFIG, as Kafka does."""
    if not name:
        _refuse_subscription("Subscription name can't be empty")
    for config in wanted:
        if config not in CLIENT_METRICS_CONFIGS:
            _refuse_subscription(f"Unknown client metrics configuration: {config}")
    for config, text in wanted.items():
        _check_value(config, text)
    if INTERVAL_MS in wanted and not _MIN_INTERVAL_MS <= int(wanted[INTERVAL_MS]) <= _MAX_INTERVAL_MS:
        _refuse_subscription(
            f"Invalid value {int(wanted[INTERVAL_MS])} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)"
        )
    parse_match(parse_list(wanted.get(MATCH, "")))


def parse_match(entries: Iterable[str]) -> dict[str, Pattern]:
    """Return the patterns by attribute; the last one of an attribute counts. Raises KafkaError: INVALID_CONFIG."""
    patterns = {}
    for entry in entries:
        # As with Java's String.split, trailing empty strings do not count.
        parts = entry.rstrip("=").split("=")
        attribute = parts[0].strip()
        if len(parts) != 2 or attribute not in ATTRIBUTES:
            _refuse_pattern(entry)
        patterns[attribute] = _compiled(parts[1].strip(), entry)
    return patterns


def _check_value(config: str, text: str) -> None:
    try:
        parse(CLIENT_METRICS_CONFIGS[config], text)
    except InvalidConfig as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if config != INTERVAL_MS and "" in parse_list(text):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{config}' values must not be empty.")


def _compiled(pattern: str, entry: str) -> Pattern:
    try:
        return compile_pattern(pattern, _LONGEST_PATTERN)
    except InvalidPattern:
        _refuse_pattern(entry)


def _refuse_pattern(entry: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}") from None


def _refuse_subscription(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
