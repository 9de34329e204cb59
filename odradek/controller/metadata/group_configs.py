"""Checks a group's own configs. Imported only when they are set.

A value must lie between the broker's limits for it, ``group.consumer.min.*`` and ``group.consumer.max.*``, and a session must
outlast a heartbeat. Source: ``GroupConfig.validate`` of Apache Kafka 4.3.
"""

from collections.abc import Mapping
from typing import Final, NoReturn

from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.definitions import ConfigDefinition, InvalidConfig, parse
from odradek.common.config.table_groups import GROUP_DEFINITIONS
from odradek.protocol.errors import ErrorCode, KafkaError

DEFINITIONS: Final[dict[str, ConfigDefinition]] = {each.name: each for each in GROUP_DEFINITIONS}
_SESSION: Final = "consumer.session.timeout.ms"
_HEARTBEAT: Final = "consumer.heartbeat.interval.ms"


def check_group(config: BrokerConfig, group: str, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError for invalid overrides of ``group``: INVALID_CONFIG; INVALID_REQUEST if no group is named."""
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "group configs have no default resource: name a group")
    for name, text in wanted.items():
        if name not in DEFINITIONS:
            _refuse(f"groups have no config {name}")
        try:
            parse(DEFINITIONS[name], text)
        except InvalidConfig as error:
            _refuse(str(error))
    limits = {
        _SESSION: (config["group.consumer.min.session.timeout.ms"], config["group.consumer.max.session.timeout.ms"]),
        _HEARTBEAT: (config["group.consumer.min.heartbeat.interval.ms"], config["group.consumer.max.heartbeat.interval.ms"]),
        "consumer.assignment.interval.ms": (
            config["group.consumer.min.assignment.interval.ms"],
            config["group.consumer.max.assignment.interval.ms"],
        ),
    }
    for name, (lowest, highest) in limits.items():
        if name in wanted and int(wanted[name]) < lowest:
            _refuse(f"{name} is less than {_limit(name, 'min')}, which is {lowest}")
        if name in wanted and int(wanted[name]) > highest:
            _refuse(f"{name} is more than {_limit(name, 'max')}, which is {highest}")
    session_ms = int(wanted.get(_SESSION, config["group.consumer.session.timeout.ms"]))
    if session_ms <= int(wanted.get(_HEARTBEAT, config["group.consumer.heartbeat.interval.ms"])):
        _refuse(f"{_SESSION} must be longer than {_HEARTBEAT}")


def _limit(name: str, which: str) -> str:
    return name.replace("consumer.", f"group.consumer.{which}.", 1)


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
