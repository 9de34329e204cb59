"""The rights of one request's client, and a log line for each refusal (Kafka: AuthHelper).

A refusal is logged if the client named the resource. Checks that only filter a list, or that only report the client's authorized
operations, are not logged.

``authorizer.class.name`` names the authorizer. Addresses in access control lists are written as Java prints them.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.standard_authorizer import StandardAuthorizer
from odradek.common.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclResourceType,
    kafkas_name,
)
from odradek.common.config.broker_config import BrokerConfig
from odradek.common.context import RequestContext
from odradek.common.logging import LineLimit, log

if TYPE_CHECKING:
    from odradek.timing.clock import Clock


@lru_cache(maxsize=1024)
def acl_host(peer: str) -> str:
    """Return an address as Java prints it: ``::1`` as ``0:0:0:0:0:0:0:1``, a mapped IPv4 address as IPv4; else unchanged."""
    bare, percent, scope = peer.partition("%")
    try:
        address = ip_address(bare)
    except ValueError:
        return peer
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":")) + percent + scope


_R: Final = AclResourceType
_O: Final = AclOperation
# The operations of each resource type, for the authorized operations in responses (KIP-430).
_SUPPORTED: Final = {
    _R.TOPIC: (_O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    _R.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    _R.CLUSTER: (
        _O.CREATE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
        _O.ALTER,
        _O.DESCRIBE,
    ),
}


class Authorization:
    """The authorizer of a node, and the limit on its log lines. Loop thread only."""

    def __init__(self, authorizer: StandardAuthorizer, line_limit: LineLimit) -> None:
        self.authorizer = authorizer
        self._line_limit = line_limit

    def access(self, context: RequestContext) -> "Access":
        """Return the rights of the request's client."""
        return Access(self, context)

    def note_refusal(
        self,
        access: "Access",
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        rule: AclBinding | str,
        references: int,
    ) -> None:
        """Log a refusal, unless there were too many of the same kind."""
        left_out = self._line_limit.left_out((access.principal, operation, resource_type, name))
        if left_out is None:
            return
        log.info(
            "authorization denied",
            principal=access.principal,
            operation=kafkas_name(operation),
            host=access.host,
            resource=f"{kafkas_name(resource_type)}:LITERAL:{name}",
            request=access.request_name,
            references=references,
            rule=rule if isinstance(rule, str) else _in_words(rule),
            **left_out,
        )


class Access:
    """The rights of one request's client. A node's requests to itself are always allowed."""

    __slots__ = ("_authorization", "_context", "host", "is_own", "principal")

    def __init__(self, authorization: Authorization, context: RequestContext) -> None:
        session = context.session
        self._authorization = authorization
        self._context = context
        self.is_own = session.is_own
        self.principal = session.principal
        self.host = acl_host(session.peer[0])

    @property
    def request_name(self) -> str:
        """The name of the request's API."""
        return self._context.api_key.name

    def allows(
        self,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        references: int = 1,
        tells: bool = True,
    ) -> bool:
        """Return whether the client may do this. ``references``: how often the request names the resource; ``tells``: log it."""
        if self.is_own:
            return True
        verdict = self._authorization.authorizer.authorize(self.principal, self.host, operation, resource_type, name)
        if tells and not verdict.is_allowed:
            self._authorization.note_refusal(self, operation, resource_type, name, verdict.rule, references)
        return verdict.is_allowed

    def allows_cluster(self, operation: AclOperation, *, tells: bool = True) -> bool:
        """Return whether the client may do this to the cluster."""
        return self.allows(operation, _R.CLUSTER, CLUSTER_NAME, tells=tells)

    def allowed(
        self, operation: AclOperation, resource_type: AclResourceType, names: Iterable[str], *, tells: bool = True
    ) -> set[str]:
        """Return the ``names`` to which the client may do this. Each distinct name is checked once."""
        return {
            name
            for name, count in Counter(names).items()
            if self.allows(operation, resource_type, name, references=count, tells=tells)
        }

    def allows_any(self, operation: AclOperation, resource_type: AclResourceType) -> bool:
        """Return whether the client may do this to at least one resource of the type."""
        return self.is_own or self._authorization.authorizer.authorize_by_resource_type(
            self.principal, self.host, operation, resource_type
        )

    def operations(self, resource_type: AclResourceType, name: str) -> int:
        """Return the client's authorized operations on a resource: bit n is the operation with code n."""
        return sum(
            1 << operation for operation in _SUPPORTED[resource_type] if self.allows(operation, resource_type, name, tells=False)
        )


def _in_words(rule: AclBinding) -> str:
    return (
        f"{rule.permission.name} {rule.principal} {kafkas_name(rule.operation)} from {rule.host} on "
        f"{kafkas_name(rule.resource_type)}:{rule.pattern_type.name}:{rule.resource_name}"
    )


def authorization(config: BrokerConfig, clock: "Clock") -> "Authorization | None":
    """Make the authorizer that ``authorizer.class.name`` names; None if it names none."""
    if not config["authorizer.class.name"]:
        return None
    from odradek.common.config.table_security import principals

    authorizer = StandardAuthorizer(
        principals(config["super.users"]), allows_without_acls=config["allow.everyone.if.no.acl.found"]
    )
    return Authorization(authorizer, LineLimit(clock))
