"""``odradek quotas``: the client quotas of any Kafka cluster."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import isnan
from typing import Any, Final, cast

import click

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.options import Servers, asks_a_broker, command_group, exit_status, show
from odradek.client.admin_apis import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.protocol.message_types.describe_client_quotas import ComponentData, DescribeClientQuotasRequest, EntryData

# Names by type; None is the default entity of a type.
Entity = dict[str, str | None]

# The protocol's types, and the options for them.
KINDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
_EXACT, _DEFAULT = 0, 1
_DEFAULT_NAME: Final = "<default>"
_COLUMNS: Final = (*KINDS.values(), "quota", "value")


def names_an_entity(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options for users, client ids and addresses. The command gets them as ``entity``."""

    @wraps(command)
    def named(**options: object) -> int:
        entity: Entity = {}
        for kind, name in KINDS.items():
            given, is_default = options.pop(name), options.pop(f"default_{name}")
            if given is not None and is_default:
                message = f"--{kind} and --default-{kind} exclude each other"
                raise click.UsageError(message)
            if given is not None or is_default:
                entity[kind] = cast("str | None", given)
        return command(entity=entity, **options)

    wrapped: Callable[..., int] = named
    for kind, what, metavar in (("ip", "address", "ADDRESS"), ("client-id", "client id", "ID"), ("user", "user", "NAME")):
        text = f"Every {what} without its own quota."
        wrapped = click.option(f"--default-{kind}", is_flag=True, help=text)(wrapped)
        wrapped = click.option(f"--{kind}", metavar=metavar, help=f"The {what}.")(wrapped)
    return wrapped


def _key_and_number(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for each in given:
        key, equals, text = each.partition("=")
        try:
            found[key] = float(text)
        except ValueError:
            equals = ""
        if not equals or isnan(found[key]):
            message = f"{each!r} is not QUOTA=NUMBER"
            raise click.BadParameter(message)
    return found


@command_group()
def quotas() -> None:
    """Manage client quotas of any Kafka cluster.

    Quotas of users and client ids: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate.
    Quotas of addresses: connection_creation_rate.
    """


@quotas.command("list")
@asks_a_broker
@names_an_entity
def list_quotas(bootstrap: Servers, as_json: bool, entity: Entity) -> int:
    """List the quotas of all entities that include the given names; all quotas without options."""
    with Cluster(bootstrap) as cluster:
        found = _described(cluster, entity, strict=False)
    rows = [row for each in found for row in _rows(_names(each), {value.key: value.value for value in each.values})]
    show(_COLUMNS, sorted(rows, key=lambda row: [row[column] or "" for column in _COLUMNS[:-1]]), as_json=as_json)
    return 0


@quotas.command("set")
@click.argument("values", metavar="QUOTA=NUMBER...", nargs=-1, required=True, callback=_key_and_number)
@asks_a_broker
@names_an_entity
def set_quotas(values: dict[str, float], bootstrap: Servers, as_json: bool, entity: Entity) -> int:
    """Set quotas of one entity: a user, a client id, both together, or an address."""
    _ensure_named(entity)
    with Cluster(bootstrap) as cluster:
        _alter(cluster, entity, [OpData(key, value) for key, value in values.items()])
    show(_COLUMNS, _rows(entity, values), as_json=as_json)
    return 0


@quotas.command()
@click.argument("keys", metavar="[QUOTA]...", nargs=-1)
@asks_a_broker
@names_an_entity
def remove(keys: tuple[str, ...], bootstrap: Servers, as_json: bool, entity: Entity) -> int:
    """Remove quotas of one entity; all of them if none is named."""
    _ensure_named(entity)
    with Cluster(bootstrap) as cluster:
        found = _described(cluster, entity, strict=True)
        known = {value.key: value.value for each in found for value in each.values}
        removed = {key: known[key] for key in dict.fromkeys(keys or known) if key in known}
        if removed:
            _alter(cluster, entity, [OpData(key, remove=True) for key in removed])
    missing = [key for key in keys if key not in known] or ([] if known else ["quota"])
    refusals = [Refused(_entity_text(entity), ErrorCode.RESOURCE_NOT_FOUND, f"there is no {key}") for key in missing]
    if removed or as_json:
        show(_COLUMNS, _rows(entity, removed), as_json=as_json)
    return exit_status(refusals)


def describe_request(entity: Entity, *, strict: bool) -> DescribeClientQuotasRequest:
    """Return the request for the quotas of an entity; unless ``strict``, also for those of entities that include it."""
    components = [ComponentData(kind, _DEFAULT if name is None else _EXACT, name) for kind, name in entity.items()]
    return DescribeClientQuotasRequest(components, strict)


def alter_request(entity: Entity, ops: Sequence[OpData]) -> AlterClientQuotasRequest:
    """Return the request that changes quotas of an entity."""
    return AlterClientQuotasRequest([RequestEntryData([RequestEntityData(*part) for part in entity.items()], ops)])


def _ensure_named(entity: Entity) -> None:
    if not entity:
        raise click.UsageError("name a user, a client id or an address, or a default")


def _described(cluster: Cluster, entity: Entity, *, strict: bool) -> Sequence[EntryData]:
    answer = cluster.any.call(DESCRIBE_CLIENT_QUOTAS, describe_request(entity, strict=strict))
    check("quotas", answer.error_code, answer.error_message)
    return answer.entries or ()


def _alter(cluster: Cluster, entity: Entity, ops: Sequence[OpData]) -> None:
    for result in cluster.controller().call(ALTER_CLIENT_QUOTAS, alter_request(entity, ops)).entries:
        check(_entity_text(entity), result.error_code, result.error_message)


def _names(entry: EntryData) -> Entity:
    return {part.entity_type: part.entity_name for part in entry.entity}


def _entity_text(entity: Entity) -> str:
    return ", ".join(f"{kind} {_DEFAULT_NAME if name is None else name}" for kind, name in entity.items())


def _rows(entity: Entity, values: Mapping[str, float]) -> list[dict[str, Any]]:
    shown = {
        column: (_DEFAULT_NAME if entity[kind] is None else entity[kind]) if kind in entity else None
        for kind, column in KINDS.items()
    }
    return [
        {**shown, "quota": key, "value": int(value) if value.is_integer() else value} for key, value in sorted(values.items())
    ]
