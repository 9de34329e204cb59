"""The definition of a config, and the conversion of its text to a value and back.

The types are those of DescribeConfigs (KIP-226, KIP-569). Text is parsed as Kafka parses it: surrounding space is removed, a
boolean is true or false in any case, a number is decimal, a list is separated by commas and keeps the first of equal entries.
An unset config is None. Typed values: bool, str, int (int, short and long), float, tuple of str (list).

Validators check a value beyond its type: ranges, choices, lists. One is called with a typed value, and returns None or the
invalid part of the value as text. ``allowed`` is the rule in words; it completes "must be ...". It is never called with None, the
value of an unset config.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple, Protocol


class Validator(Protocol):
    """The interface of all validators."""

    allowed: str

    def __call__(self, value: Any) -> str | None:
        """Return the invalid part of ``value``, or None."""


class AtLeast:
    """A number that is ``low`` or more."""

    __slots__ = ("_low", "allowed")

    def __init__(self, low: int) -> None:
        self.allowed = f"at least {low}"
        self._low = low

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is smaller."""
        return None if value >= self._low else str(value)


class SizeOrSystems:
    """The size of a socket's buffer: positive, because the system refuses others; or -1 for the system's own."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "positive, or -1"

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is neither."""
        return None if value > 0 or value == -1 else str(value)


class Between:
    """A number from ``low`` to ``high``, or ``besides``, a number outside the range with its own meaning."""

    __slots__ = ("_besides", "_high", "_low", "allowed")

    def __init__(self, low: int, high: int, besides: int | None = None) -> None:
        self.allowed = f"between {low} and {high}" + ("" if besides is None else f", or {besides}")
        self._low = low
        self._high = high
        self._besides = besides

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is outside."""
        return None if self._low <= value <= self._high or value == self._besides else str(value)


class OneOf:
    """One of some values; with ``any_case``, in upper case as well."""

    __slots__ = ("_any_case", "_choices", "allowed")

    def __init__(self, *choices: str | int, any_case: bool = False) -> None:
        self.allowed = f"one of {', '.join(map(str, choices))}"
        self._choices = choices
        self._any_case = any_case

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is another one."""
        return None if (value.lower() if self._any_case else value) in self._choices else str(value)


class OffsetReset:
    """The start of a share group in a partition: latest, earliest, or a duration before now, as Java reads it."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "earliest, latest or by_duration:PnDTnHnMn.nS"

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is another one."""
        prefix, colon, duration = value.partition(":")
        # Java reads a duration in any case.
        lowered = f"{prefix}{colon}{duration.lower()}"
        is_valid = value in {"latest", "earliest"} or (re.fullmatch(_BY_DURATION, lowered) and lowered[-1] not in "pt:")
        return None if is_valid else str(value)


class Entries:
    """A list of non-empty entries, ``least`` to ``most`` of them, each one of ``choices`` if there are any."""

    __slots__ = ("_choices", "_least", "_most", "allowed")

    def __init__(self, *choices: str, least: int = 0, most: int | None = None) -> None:
        if choices:
            self.allowed = f"a list of {', '.join(choices)}"
        elif most == 1:
            self.allowed = "one entry"
        else:
            self.allowed = "a list without empty entries" if least == 0 else f"a list of at least {least}, without empty entries"
        self._choices = choices
        self._least = least
        self._most = most

    def __call__(self, value: Any) -> str | None:
        """Return the first invalid entry, or the whole list if its length is wrong or an entry is empty."""
        if len(value) < self._least or (self._most is not None and len(value) > self._most) or "" in value:
            return ",".join(value)
        return next((entry for entry in value if self._choices and entry not in self._choices), None)


class DeadLetterTopic:
    """The name of a dead-letter topic (KIP-1191), which must not look like an internal topic's."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "a name that does not start with __"

    def __call__(self, value: Any) -> str | None:
        """Return the name if it starts with ``__``."""
        return str(value) if value.startswith("__") else None


class ThrottledReplicas:
    """Replicas under a replication quota: ``*`` for all, or a list of ``partition:broker`` (KIP-73)."""

    __slots__ = ("allowed",)

    def __init__(self) -> None:
        self.allowed = "* or a list of partition:broker"

    def __call__(self, value: Any) -> str | None:
        """Return the value if it is not such a list."""
        pairs = [entry.split(":") for entry in value]
        if value == ("*",) or all(len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal() for pair in pairs):
            return None
        return ",".join(value)


Value = bool | str | int | float | tuple[str, ...] | None

READ_ONLY = "read-only"
PER_BROKER = "per-broker"
CLUSTER_WIDE = "cluster-wide"

# Used instead of Kafka's default if Kafka does not have the config.
NOT_KAFKAS = "none: Kafka has no such config"

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_DOUBLE = 1.7976931348623157e308


class ConfigType(IntEnum):
    """The type of a config in a DescribeConfigs response."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, PASSWORD = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
    ConfigType.PASSWORD,
)
# Replaces a secret in all output.
HIDDEN = "[hidden]"


class InvalidConfig(Exception):
    """An invalid value of a known key. It stops the start, and a request to set it is refused."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        super().__init__(key, value, allowed)
        self.key = key
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"Invalid value {self.value} for configuration {self.key}: must be {self.allowed}"


class ConfigDefinition(NamedTuple):
    """One config: a row of the table.

    ``importance`` is Kafka's high, medium or low. ``update_mode`` says whether a running broker can change it, for one broker
    or for the whole cluster; topic configs always can, for one topic. ``server_default`` is the broker config that a topic
    config falls back to. If odradek's default is not Kafka's, ``kafka_default`` is Kafka's as text and ``difference`` the
    reason. ``unused_reason`` says why odradek accepts a config of Kafka's and does not act on it. ``internal`` configs are for
    tests: they are described only if set, as are those that Kafka sets at run time only (``is_described_if_set``).
    """

    name: str
    type: ConfigType
    default: Value
    doc: str
    valid: Validator | None = None
    importance: str = "medium"
    update_mode: str = READ_ONLY
    server_default: str | None = None
    kafka_default: str | None = None
    difference: str = ""
    internal: bool = False
    unused_reason: str = ""
    is_described_if_set: bool = False

    @property
    def documentation(self) -> str:
        """Return the description for clients and readers."""
        return f"{self.doc} No effect: {self.unused_reason}." if self.unused_reason else self.doc

    @property
    def is_kafka_config(self) -> bool:
        """Return whether Apache Kafka has a config of this name."""
        return self.kafka_default != NOT_KAFKAS

    @property
    def sensitive(self) -> bool:
        """Return whether the value is hidden from clients."""
        return self.type is ConfigType.PASSWORD


def group_config(name: str, default: int, least: int, doc: str, *, internal: bool = False, unused: str = "") -> ConfigDefinition:
    """Return a number among the configs of one group, which falls back to the broker config with ``group.`` in front."""
    server_default = f"group.{name}"
    valid = AtLeast(least)
    return ConfigDefinition(
        name, ConfigType.INT, default, doc, valid, server_default=server_default, internal=internal, unused_reason=unused
    )


def group_offload(kind: str) -> ConfigDefinition:
    """Return the config for assignments beside the event loop, of one group of this kind."""
    broker_wide = broker_offload(kind)
    return broker_wide._replace(
        name=broker_wide.name.removeprefix("group."), update_mode=READ_ONLY, server_default=broker_wide.name
    )


def broker_offload(kind: str) -> ConfigDefinition:
    """Return the config for assignments beside the event loop, of all groups of this kind."""
    return ConfigDefinition(
        f"group.{kind}.assignor.offload.enable",
        ConfigType.BOOLEAN,
        True,
        f"Whether {kind} groups are assigned in a thread.",
        update_mode=CLUSTER_WIDE,
        internal=True,
        unused_reason="the coordinator works on the event loop, and waits for nothing",
    )


def broker_sessions(kind: str) -> Iterator[ConfigDefinition]:
    """Yield the session timeout and the heartbeat interval of all groups of this kind, with the limits for a single group."""
    doc = f"How long a member of a {kind} group may be silent before it is removed."
    yield from _broker_duration(kind, "session.timeout", (45000, 45000, 60000), 1, doc)
    doc = f"How often a member of a {kind} group sends a heartbeat."
    yield from _broker_duration(kind, "heartbeat.interval", (5000, 5000, 15000), 1, doc)


def broker_assignment_interval(kind: str) -> Iterator[ConfigDefinition]:
    """Yield the assignment interval of all groups of this kind, with the limits for a single group."""
    doc = f"The least time between two target assignments of a {kind} group."
    interval, *limits = _broker_duration(kind, "assignment.interval", (1000, 0, 15000), 0, doc)
    yield interval._replace(update_mode=CLUSTER_WIDE)
    yield from limits


def _broker_duration(kind: str, name: str, defaults: tuple[int, int, int], least: int, doc: str) -> Iterator[ConfigDefinition]:
    of_one_group = f"{name.replace('.', ' ')} you can set for one {kind} group."
    docs = (f"{doc} A group can have its own.", f"The shortest {of_one_group}", f"The longest {of_one_group}")
    for limit, default, each in zip(("", "min.", "max."), defaults, docs, strict=True):
        yield ConfigDefinition(f"group.{kind}.{limit}{name}.ms", ConfigType.INT, default, each, AtLeast(least))


def one_replica(name: str, value_type: ConfigType, kafka_default: str, doc: str) -> ConfigDefinition:
    """Return a config for the replicas of an internal topic: 1 by default, where Kafka expects several brokers."""
    return ConfigDefinition(
        name,
        value_type,
        1,
        f"{doc} A broker alone uses 1.",
        AtLeast(1),
        "high",
        kafka_default=kafka_default,
        difference="one broker holds the only replica",
    )


# A duration that is not negative, in lower case.
_BY_DURATION = r"by_duration:p(?:\d+d)?(?:t(?:\d+h)?(?:\d+m)?(?:\d+(?:[.,]\d{0,9})?s)?)?"
# Java's Double.parseDouble without the hexadecimal form, which properties files do not use. Compiled on first use.
_DECIMAL = r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity|NaN)[fFdD]?"
_MAX_DIGITS = 40
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse(definition: ConfigDefinition, text: str) -> Value:
    """Return the typed value of a config's text; raises InvalidConfig."""
    value = _typed(definition, text)
    complain(definition, value)
    return value


def complain(definition: ConfigDefinition, value: Value) -> None:
    """Raise InvalidConfig if a typed value is out of the config's bounds."""
    if value is not None and definition.valid is not None:
        complaint = definition.valid(value)
        if complaint is not None:
            raise InvalidConfig(definition.name, complaint, definition.valid.allowed)


def _typed(definition: ConfigDefinition, text: str) -> Value:
    stripped = text.strip()
    bits = _BITS.get(definition.type)
    if bits is not None:
        digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
        if (
            digits.isascii()
            and digits.isdigit()
            and len(digits) <= _MAX_DIGITS
            and -(1 << bits - 1) <= int(stripped) < 1 << bits - 1
        ):
            return int(stripped)
        raise InvalidConfig(definition.name, text, f"a whole number of {bits} bits")
    if definition.type is ConfigType.LIST:
        return parse_list(text)
    if definition.type is ConfigType.BOOLEAN:
        if stripped.lower() in ("true", "false"):
            return stripped.lower() == "true"
        raise InvalidConfig(definition.name, text, "true or false")
    if definition.type is ConfigType.DOUBLE:
        if re.fullmatch(_DECIMAL, stripped):
            return float(stripped.rstrip("fFdD"))
        raise InvalidConfig(definition.name, text, "a number")
    return stripped


def parse_list(text: str) -> tuple[str, ...]:
    """Return the entries of a list, in order, without duplicates."""
    stripped = text.strip()
    return tuple(dict.fromkeys(entry.strip() for entry in stripped.split(","))) if stripped else ()


def to_text(value: Value) -> str | None:
    """Return a value as text for clients; None if unset."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value) if isinstance(value, int) else _double_to_text(value)


def _double_to_text(value: float) -> str:
    """Return a double as Java prints it: plain from 0.001 up to ten million, else with an exponent; always with a fraction."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  only NaN differs from itself
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # 2.1 ms

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{int(exponent) + len(digits) - 1}"
