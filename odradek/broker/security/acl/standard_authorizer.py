"""The authorizer by access control lists, like Kafka's StandardAuthorizer.

    a super user                          allowed everything
    a matching DENY entry                 denied; it wins over any ALLOW, and implies no other operation
    a matching ALLOW entry                allowed; READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies
                                          DESCRIBE_CONFIGS
    no entry for the resource at all      ``allow.everyone.if.no.acl.found``
    no entry that matches the client      denied

Kafka fails if a literal pattern that sorts before ``*`` (one that begins with a space or ``!``) shares two characters with the
requested name. Here such a pattern works like any other.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from odradek.common.acl_index import AclIndex
from odradek.common.acls import WILDCARD, AclBinding, AclOperation, AclPermission, AclResourceType, PatternType

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
