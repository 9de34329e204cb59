"""The rights of one request's client: the authorizer by access control lists, and a log line for each refusal.

    a super user                          allowed everything
    a matching DENY entry                 denied; it wins over any ALLOW, and implies no other operation
    a matching ALLOW entry                allowed; READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies
                                          DESCRIBE_CONFIGS
    no entry for the resource at all      ``allow.everyone.if.no.acl.found``
    no entry that matches the client      denied

Kafka fails if a literal pattern that sorts before ``*`` (one that begins with a space or ``!``) shares two characters with the
requested name. Here such a pattern works like any other.

A refusal is logged if the client named the resource. Checks that only filter a list, or that only report the client's authorized
operations, are not logged.

``authorizer.class.name`` names the authorizer. Addresses in access control lists are written as Java prints them. Kafka's classes
are StandardAuthorizer and AuthHelper.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.common.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclIndex,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    kafkas_name,
)
from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.table_security import principals
from odradek.common.context import RequestContext
from odradek.common.logging import LineLimit, log
from odradek.controller.metadata.acls import AclPublisher
from odradek.controller.metadata.cluster_metadata import CommittedMetadata, PublishingOrder

if TYPE_CHECKING:
    from odradek.timing.clock import Clock

SUPER_USER: Final = "SuperUser"
DEFAULT_ALLOW: Final = "DefaultAllow"
DEFAULT_DENY: Final = "DefaultDeny"
# Kafka checks a resource of this name first when it asks for the right to any resource of a type.
_SOME_NAME: Final = "hardcode"


class Verdict(NamedTuple):
    """The verdict on an action, with the deciding rule: a binding, or one of the constants above."""

    is_allowed: bool
    rule: AclBinding | str


_SUPER_USER: Final = Verdict(True, SUPER_USER)
_DENIED: Final = Verdict(False, DEFAULT_DENY)
_ALLOWED: Final = Verdict(True, DEFAULT_ALLOW)


class StandardAuthorizer:
    """The authorizer of a node. Its owner keeps ``acls`` in step with the metadata."""

    def __init__(self, super_users: Collection[str] = (), *, allows_without_acls: bool = False) -> None:
        self.acls = AclIndex()
        self._super_users = frozenset(super_users)
        self._without_acls = _ALLOWED if allows_without_acls else _DENIED

    def authorize(self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str) -> Verdict:
        """Decide whether ``principal`` may do this from ``host``, an address as Java prints it."""
        if principal in self._super_users:
            return _SUPER_USER
        binding, has_acls = self.acls.find(principal, host, operation, resource_type, name)
        if binding is not None:
            return Verdict(binding.permission is AclPermission.ALLOW, binding)
        return _DENIED if has_acls else self._without_acls

    def authorize_by_resource_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Return whether ``principal`` may do this to at least one resource of the type. O(patterns of the type)."""
        if self.authorize(principal, host, operation, resource_type, _SOME_NAME).is_allowed:
            return True
        allowed: list[tuple[PatternType, str]] = []
        denied: set[tuple[PatternType, str]] = set()
        for binding in self.acls.of_type(principal, host, operation, resource_type):
            pattern = binding.pattern_type, binding.resource_name
            if binding.permission is AclPermission.DENY:
                denied.add(pattern)
            else:
                allowed.append(pattern)
        everything = PatternType.LITERAL, WILDCARD
        if everything in denied:
            return False
        return everything in allowed or any(not _is_dominated(*pattern, denied) for pattern in allowed)


def _is_dominated(pattern_type: PatternType, name: str, denied: Collection[tuple[PatternType, str]]) -> bool:
    """Return whether the denied patterns cover everything that an allowed pattern matches."""
    if pattern_type is PatternType.LITERAL and (pattern_type, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


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

    def follow(self, metadata: CommittedMetadata) -> None:
        """Keep the access control lists in step with the metadata."""
        metadata.subscribe(AclPublisher(self.authorizer.acls, metadata.image), PublishingOrder.ACLS)

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
        extra_fields = self._line_limit.admit((access.principal, operation, resource_type, name))
        if extra_fields is None:
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
            **extra_fields,
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
    authorizer = StandardAuthorizer(
        principals(config["super.users"]), allows_without_acls=config["allow.everyone.if.no.acl.found"]
    )
    return Authorization(authorizer, LineLimit(clock))
