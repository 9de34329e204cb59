"""Checks the configs of a client metrics subscription (KIP-714). Imported only when they are set, or when clients ask.

A subscription is a resource of type CLIENT_METRICS with ``metrics`` (prefixes of names, ``*`` for all), ``interval.ms`` and
``match``. An entry of ``match`` is ``attribute=pattern``; a client is asked for metrics if all entries match. Patterns use RE2's
syntax, which matches in linear time. Unlike Java's, it has no backreferences, lookahead or lookbehind.

Source: ``ClientMetricsConfigs`` of Apache Kafka 4.3.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from odradek.common.config.definitions import ConfigDefinition, InvalidConfig, parse, parse_list
from odradek.common.config.table_groups import CLIENT_METRICS_DEFINITIONS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.patterns import InvalidPattern, Pattern, compile_pattern

DEFINITIONS: Final[dict[str, ConfigDefinition]] = {each.name: each for each in CLIENT_METRICS_DEFINITIONS}
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
        _refuse("Subscription name can't be empty")
    for config in wanted:
        if config not in DEFINITIONS:
            _refuse(f"Unknown client metrics configuration: {config}")
    for config, text in wanted.items():
        _check_value(config, text)
    if INTERVAL_MS in wanted and not _MIN_INTERVAL_MS <= int(wanted[INTERVAL_MS]) <= _MAX_INTERVAL_MS:
        _refuse(f"Invalid value {int(wanted[INTERVAL_MS])} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)")
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
        parse(DEFINITIONS[config], text)
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


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
