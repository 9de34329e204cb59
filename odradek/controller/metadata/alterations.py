"""Decides on changes to overrides: turns a request's alterations into ConfigRecords, or into Kafka's errors.

This module changes no state. ``deciding`` handles a whole request. It decides on each resource separately, in the controller's
turn for the request, and the controller writes all records as one batch. An invalid value is INVALID_CONFIG for a topic and
INVALID_REQUEST for a broker, as in Kafka (KAFKA-13609).

A cluster with eligible leader replicas (KIP-966) has one ``min.insync.replicas``, set for all brokers. It can be changed.
Removing it, or setting it for one broker, is INVALID_CONFIG, as in Kafka.

Left out: BROKER_LOGGER, as odradek has no loggers with Kafka's names.
"""

from collections import Counter
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, NoReturn

from odradek.common.config.definitions import ConfigDefinition, ConfigType, InvalidConfig, parse, to_text
from odradek.common.config.dynamic import (
    CLUSTER_DEFAULT,
    ConfigView,
    ResourceType,
    applicable,
    definition_of,
    is_dynamic,
    is_for_one_broker_only,
)
from odradek.common.config.listener_config import is_listener_config, listener_key
from odradek.common.config.table import BROKER_CONFIGS, TOPIC_CONFIGS
from odradek.controller.metadata.resource_configs import CLIENT_METRICS_CONFIGS, check_group, check_subscription
from odradek.controller.metadata.resource_configs import GROUP_CONFIGS as DEFINITIONS
from odradek.controller.metadata.topic import validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError

# The content of a ConfigRecord: (resource type, resource name, config, value or None to remove the override).
ConfigChange = tuple[int, str, str, str | None]
# The answer for one resource: (error code, message).
Answer = tuple[int, str | None]

SET, DELETE, APPEND, SUBTRACT = range(4)
# The number of resources decided on without a pause: a millisecond or two.
TOGETHER: Final = 50
_LIST_OPERATIONS = {APPEND: "append", SUBTRACT: "subtract"}


class Operation(NamedTuple):
    """A change to one config of a resource: SET, DELETE, APPEND or SUBTRACT ``value``."""

    name: str
    kind: int
    value: str | None


class Alteration(NamedTuple):
    """The changes to one resource. If ``replaces``, they replace all its overrides (AlterConfigs)."""

    resource_type: int
    resource_name: str
    operations: Sequence[Operation]
    replaces: bool = False


def failed(answers: Iterable[Answer], error: KafkaError) -> list[Answer]:
    """Return the answers with ``error`` in place of each success, as the commit failed."""
    return [(error.code, error.reason) if answer[0] == ErrorCode.NONE else answer for answer in answers]


def deciding(
    view: ConfigView, alterations: Sequence[Alteration], answers: list[Answer]
) -> Generator[list[ConfigChange], None, None]:
    """Decide on ``TOGETHER`` alterations at a time: add their answers to ``answers``, and yield their changes."""
    named = [(alteration.resource_type, alteration.resource_name) for alteration in alterations]
    times_named = Counter(named)
    changes: list[ConfigChange] = []
    for place, (alteration, resource) in enumerate(zip(alterations, named, strict=True), 1):
        try:
            if times_named[resource] > 1:
                _refuse("Each resource must appear at most once.")
            changes += decide(view, alteration)
        except KafkaError as error:
            answers.append((error.code, error.reason))
        else:
            answers.append((ErrorCode.NONE, None))
        if place % TOGETHER == 0:
            yield changes
            changes = []
    yield changes


def decide(view: ConfigView, alteration: Alteration) -> list[ConfigChange]:
    """Return the records for ``alteration``; none for a topic if nothing changes. Raises KafkaError."""
    resource_type, resource_name, operations, replaces = alteration
    _check_operations(operations)
    match resource_type:
        case ResourceType.TOPIC:
            current = _known(view, alteration, TOPIC_CONFIGS)
            wanted = _wanted(current, alteration, TOPIC_CONFIGS)
            _check_topic(view, resource_name, wanted)
        case ResourceType.BROKER:
            _check_node_id(view, resource_name)
            current = view.overrides(resource_type, resource_name)
            wanted = _wanted(current, alteration, BROKER_CONFIGS)
            if view.has_elr:
                _check_min_isr(resource_name, operations, removed=current.keys() - wanted.keys())
            _check_broker(view, resource_name, wanted, {operation.name for operation in operations})
            _check_exists(view, resource_name)
        case ResourceType.GROUP:
            current = _known(view, alteration, DEFINITIONS)
            wanted = _wanted(current, alteration, DEFINITIONS)
            check_group(view.config, resource_name, wanted)
        case ResourceType.CLIENT_METRICS:
            current = _known(view, alteration, CLIENT_METRICS_CONFIGS)
            # As in Kafka, nothing can be appended to these: its controller does not know that two of them are lists.
            wanted = _wanted(current, alteration, {})
            check_subscription(resource_name, wanted)
        case ResourceType.BROKER_LOGGER if not replaces:
            _refuse_loggers(view, resource_name, operations)
            return []
        case _:
            _refuse(f"Unknown resource type {resource_type}")
    # A broker must reload configs that are set again with the same value, such as a key store from its file (KAFKA-14136).
    again = {operation.name for operation in operations} if resource_type == ResourceType.BROKER else set[str]()
    return [
        (int(resource_type), resource_name, name, wanted.get(name))
        for name in dict.fromkeys((*wanted, *current, *sorted(again)))
        if name in again or wanted.get(name) != current.get(name)
    ]


def _known(view: ConfigView, alteration: Alteration, known: Container[str]) -> Mapping[str, str]:
    """Return the present overrides. Those that only a former Kafka knew stand in the way of no change that does not name them."""
    present = view.overrides(alteration.resource_type, alteration.resource_name)
    named = {operation.name for operation in alteration.operations}
    return {name: value for name, value in present.items() if name in known or name in named or alteration.replaces}


def _check_operations(operations: Sequence[Operation]) -> None:
    names = [operation.name for operation in operations]
    if len(set(names)) < len(names):
        _refuse("Error due to duplicate config keys")
    nulls = [operation.name for operation in operations if operation.value is None and operation.kind != DELETE]
    if nulls:
        _refuse(f"Null value not supported for : {', '.join(nulls)}")
    for operation in operations:
        if operation.kind not in (SET, DELETE, APPEND, SUBTRACT):
            _refuse(f"Unknown operations type {operation.kind}")


def _wanted(current: Mapping[str, str], alteration: Alteration, definitions: Mapping[str, ConfigDefinition]) -> dict[str, str]:
    """Return the overrides after the alteration."""
    wanted = {} if alteration.replaces else dict(current)
    for name, kind, value in alteration.operations:
        if kind in _LIST_OPERATIONS:
            definition = definitions.get(name)
            if definition is None or definition.type is not ConfigType.LIST:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Cannot {_LIST_OPERATIONS[kind]} to {name}: it is not a list")
            entries = [entry for entry in (wanted.get(name) or to_text(definition.default) or "").split(",") if entry]
            wanted[name] = ",".join(_edited(entries, kind, (value or "").split(",")))
        elif value is None or kind == DELETE:
            wanted.pop(name, None)
        else:
            wanted[name] = value
    return wanted


def _edited(entries: list[str], kind: int, operands: Iterable[str]) -> list[str]:
    if kind == APPEND:
        return list(entries) + [operand for operand in operands if operand not in entries]
    removed = set(operands)
    return [entry for entry in entries if entry not in removed]


def _check_topic(view: ConfigView, topic: str, wanted: Mapping[str, str]) -> None:
    if not topic:
        _refuse("Default topic resources are not allowed.")
    validate_topic_name(topic)
    view.config.validate_topic_configs(wanted)
    if not view.topic_exists(topic):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def _check_node_id(view: ConfigView, name: str) -> None:
    if name != CLUSTER_DEFAULT:
        if not name.removeprefix("-").isdecimal():
            _refuse(f"Node id must be an integer, but it is: {name}")
        if view.broker_exists is None and name != view.node_id:
            _refuse(f"Unexpected broker id, expected {view.node_id}, but received {name}")


def _check_exists(view: ConfigView, name: str) -> None:
    if name != CLUSTER_DEFAULT and view.broker_exists is not None and not view.broker_exists(int(name)):
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")


def _check_broker(view: ConfigView, broker: str, wanted: Mapping[str, str], altered: AbstractSet[str]) -> None:
    for_cluster = broker == CLUSTER_DEFAULT
    fixed = [name for name in wanted if not is_dynamic(name)]
    of_listeners = [name for name in fixed if is_listener_config(listener_key("any", name))]
    if fixed != of_listeners:
        _refuse(f"Cannot update these configs dynamically: {', '.join(fixed)}")
    if of_listeners:
        # Kafka's words, and the names to use instead.
        instead = ", ".join(listener_key("<listener>", name) for name in of_listeners)
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"{', '.join(of_listeners)}. Alter {instead} of one broker"
        )
    for_one_only = [name for name in wanted if for_cluster and is_for_one_broker_only(name)]
    if for_one_only:
        _refuse(f"These configs must be set on a broker, not on the cluster's default: {', '.join(for_one_only)}")
    other_level, _ = applicable(
        view.overrides(ResourceType.BROKER, view.node_id if for_cluster else CLUSTER_DEFAULT), for_cluster=not for_cluster
    )
    try:
        for name, text in wanted.items():
            definition = definition_of(name)
            if definition is not None:
                parse(definition, text)
        layers = (wanted, other_level) if for_cluster else (other_level, wanted)
        # A controller cannot read another broker's files.
        view.config.overridden(*layers, altered=altered if broker == view.node_id else ())
    except InvalidConfig as error:
        _refuse(str(error))


def _check_min_isr(broker: str, operations: Sequence[Operation], *, removed: AbstractSet[str]) -> None:
    name = "min.insync.replicas"
    if broker != CLUSTER_DEFAULT and (name in removed or any(operation.name == name for operation in operations)):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Broker-level {name} cannot be altered while ELR is enabled.")
    if name in removed:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Cluster-level {name} cannot be removed while ELR is enabled.")


def _refuse_loggers(view: ConfigView, name: str, operations: Sequence[Operation]) -> None:
    if not name.removeprefix("-").isdecimal():
        _refuse(f"Node id must be an integer, but it is: {name}")
    if name != view.node_id:
        _refuse(f"Unexpected node id. Expected {view.node_id}, but received {name}")
    for operation in operations:
        if operation.kind in _LIST_OPERATIONS:
            _refuse(f"{_LIST_OPERATIONS[operation.kind].upper()} operation is not allowed for the BROKER_LOGGER resource")
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {operation.name} does not exist!")


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
