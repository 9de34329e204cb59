"""``odradek acls``: add, list and remove access control entries, on any broker."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Final, NamedTuple, cast

import click

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.options import Servers, asks_a_broker, command_group, exit_status, row_of, show
from odradek.client.admin_apis import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from odradek.protocol.message_types.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.message_types.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.message_types.describe_acls import DescribeAclsRequest

# The names of the protocol's codes, which start at 0.
_RESOURCES: Final = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
_PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
OPERATIONS: Final = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"),
    *("ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
# Resources with names: their type, and the options that name them.
NAMED: Final = (
    ("TOPIC", "topics", "--topic", "NAME"),
    ("GROUP", "groups", "--group", "NAME"),
    ("TRANSACTIONAL_ID", "transactional_ids", "--transactional-id", "NAME"),
    ("DELEGATION_TOKEN", "delegation_tokens", "--delegation-token", "TOKEN-ID"),
    ("USER", "users", "--user", "PRINCIPAL"),
)
_ANY: Final = 1
CLUSTER: Final = "kafka-cluster"
WILDCARD: Final = "*"
_COLUMNS: Final = ("permission", "principal", "host", "operation", "resource_type", "resource", "pattern")


class Resource(NamedTuple):
    """A pattern of resources, by Kafka's codes."""

    resource_type: int
    name: str | None
    pattern_type: int


def names_resources(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name resources. The command gets them as ``resources``."""

    @wraps(command)
    def named(*, cluster: bool, **options: object) -> int:
        names = [(kind, cast("tuple[str, ...]", options.pop(parameter))) for kind, parameter, _, _ in NAMED]
        found = [resource_named(kind, name) for kind, those in names for name in those]
        return command(resources=found + ([resource_named("CLUSTER", CLUSTER)] if cluster else []), **options)

    wrapped: Callable[..., int] = named
    for kind, parameter, option, metavar in reversed(NAMED):
        text = f"A {kind.replace('_', ' ').lower()}; {metavar}* for a prefix, * for all; repeatable."
        wrapped = click.option(option, parameter, metavar=metavar, multiple=True, help=text)(wrapped)
    return click.option("--cluster", is_flag=True, help="The cluster.")(wrapped)


def resource_named(kind: str, name: str) -> Resource:
    """Return the resources of a type by name: NAME* for a prefix, * for all."""
    is_prefix = name != WILDCARD and name.endswith(WILDCARD)
    pattern = _PATTERNS.index("PREFIXED" if is_prefix else "LITERAL")
    return Resource(_RESOURCES.index(kind), name[:-1] if is_prefix else name, pattern)


def creation_of(resource: Resource, permission: str, principal: str, host: str, operation: str) -> AclCreation:
    """Return an entry to add."""
    codes = OPERATIONS.index(operation), _PERMISSIONS.index(permission)
    return AclCreation(resource.resource_type, resource.name or "", resource.pattern_type, principal, host, *codes)


@command_group()
def acls() -> None:
    """Manage access control lists of any Kafka cluster."""


@acls.command()
@asks_a_broker
@click.option(
    "--allow",
    "allowed",
    metavar="PRINCIPAL",
    multiple=True,
    help="A principal to allow: User:alice, or User:* for everybody; repeatable.",
)
@click.option("--deny", "denied", metavar="PRINCIPAL", multiple=True, help="A principal to deny; repeatable.")
@click.option("--operation", "operations", type=click.Choice(OPERATIONS[2:], case_sensitive=False), multiple=True, required=True)
@click.option(
    "--host",
    "hosts",
    metavar="ADDRESS",
    multiple=True,
    default=(WILDCARD,),
    help="A client address that the entry is for; repeatable.  [default: all]",
)
@names_resources
def add(
    bootstrap: Servers,
    as_json: bool,
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    operations: tuple[str, ...],
    hosts: tuple[str, ...],
    resources: list[Resource],
) -> int:
    """Allow or deny operations on resources. Existing entries stay."""
    if not (allowed or denied) or not resources:
        raise click.UsageError("name a principal with --allow or --deny, and a resource")
    creations = [
        creation_of(resource, permission, principal, host, operation)
        for permission, principals in (("ALLOW", allowed), ("DENY", denied))
        for principal in principals
        for resource in resources
        for host in hosts
        for operation in operations
    ]
    with Cluster(bootstrap) as connected:
        answer = connected.controller().call(CREATE_ACLS, CreateAclsRequest(creations))
    added, refusals = [], []
    for creation, result in zip(creations, answer.results, strict=True):
        row = _row(creation.resource_type, creation.resource_name, creation.resource_pattern_type, *creation[3:])
        if result.error_code:
            refusals.append(Refused(f"{row['principal']} on {row['resource']}", result.error_code, result.error_message))
        else:
            added.append(row)
    if added or as_json:
        show(_COLUMNS, added, as_json=as_json)
    return exit_status(refusals)


def selects(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of a filter."""
    principal = click.option("--principal", metavar="PRINCIPAL", help="Only entries of this principal.")
    operation = click.option("--operation", type=click.Choice(OPERATIONS[1:], case_sensitive=False), default="ANY")
    return principal(operation(names_resources(command)))


@acls.command("list")
@asks_a_broker
@selects
def list_acls(
    bootstrap: Servers,
    as_json: bool,
    principal: str | None,
    operation: str,
    resources: list[Resource],
) -> int:
    """List the entries for the given resources, matched by the entries' own patterns; all entries without options."""
    filters = _filters(resources, principal, operation)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    with Cluster(bootstrap) as connected:
        for wanted in filters:
            answer = connected.any.call(DESCRIBE_ACLS, DescribeAclsRequest(*wanted))
            check("access control lists", answer.error_code, answer.error_message)
            for resource in answer.resources:
                for acl in resource.acls:
                    row = _row(resource.resource_type, resource.resource_name, resource.pattern_type, *acl)
                    rows[tuple(row.values())] = row
    show(_COLUMNS, [rows[key] for key in sorted(rows, key=lambda key: (key[4:], key[:4]))], as_json=as_json)
    return 0


@acls.command()
@asks_a_broker
@selects
def remove(
    bootstrap: Servers,
    as_json: bool,
    principal: str | None,
    operation: str,
    resources: list[Resource],
) -> int:
    """Remove the entries that ``list`` shows with the same options."""
    if principal is None and not resources and operation == "ANY":
        raise click.UsageError("name a principal, an operation or a resource")
    with Cluster(bootstrap) as connected:
        answer = connected.controller().call(DELETE_ACLS, DeleteAclsRequest(_filters(resources, principal, operation)))
    refusals = [
        Refused("access control lists", result.error_code, result.error_message)
        for result in answer.filter_results
        if result.error_code
    ]
    removed = list(_removed(answer))
    if removed or as_json:
        show(_COLUMNS, removed, as_json=as_json)
    return exit_status(refusals)


def _removed(answer: DeleteAclsResponse) -> Iterator[dict[str, Any]]:
    """Yield each removed entry once, even if several filters match it."""
    rows = [_row(*each[2:]) for result in answer.filter_results for each in result.matching_acls]
    yield from {tuple(row.values()): row for row in rows}.values()


def _filters(resources: list[Resource], principal: str | None, operation: str) -> list[DeleteAclsFilter]:
    """Return a filter for each resource; one filter for all entries without resources."""
    return [
        DeleteAclsFilter(
            resource.resource_type, resource.name, resource.pattern_type, principal, None, OPERATIONS.index(operation), _ANY
        )
        for resource in resources or [Resource(_ANY, None, _ANY)]
    ]


def _row(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> dict[str, Any]:
    return row_of(
        _COLUMNS,
        _name(_PERMISSIONS, permission),
        principal,
        host,
        _name(OPERATIONS, operation),
        _name(_RESOURCES, resource_type),
        name,
        _name(_PATTERNS, pattern_type),
    )


def _name(names: tuple[str, ...], code: int) -> str:
    return names[code] if 0 <= code < len(names) else str(code)
