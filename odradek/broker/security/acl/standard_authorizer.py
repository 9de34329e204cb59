"""Decides by access control lists, as Kafka's StandardAuthorizer does.

    a super user                          may do everything
    an entry denies                       may not, whatever allows it
    an entry allows                       may; READ, WRITE, DELETE and ALTER include DESCRIBE, ALTER_CONFIGS includes
                                          DESCRIBE_CONFIGS, and what is denied includes nothing
    no entry for this resource at all     ``allow.everyone.if.no.acl.found``
    none of the principal's               may not

Kafka fails where a literal pattern that sorts before ``*`` (one that begins with a space or ``!``) shares two characters with the
name that is asked for; here it is decided as any other.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from odradek.common.acl_index import AclIndex
from odradek.common.acls import WILDCARD, AclBinding, AclOperation, AclPermission, AclResourceType, PatternType

SUPER_USER: Final = "SuperUser"
DEFAULT_ALLOW: Final = "DefaultAllow"
DEFAULT_DENY: Final = "DefaultDeny"
# Kafka asks about a resource of this name to see whether a principal may do something to any.
_SOME_NAME: Final = "hardcode"


class Verdict(NamedTuple):
    """The verdict on an action, with the deciding rule: a binding, or one of those above."""

    is_allowed: bool
    rule: AclBinding | str


_SUPER_USER: Final = Verdict(True, SUPER_USER)
_DENIED: Final = Verdict(False, DEFAULT_DENY)
_ALLOWED: Final = Verdict(True, DEFAULT_ALLOW)


class StandardAuthorizer:
    """Decides on actions. ``acls`` is to be changed by whoever keeps it in step with the metadata."""

    def __init__(self, super_users: Collection[str] = (), *, allows_without_acls: bool = False) -> None:
        self.acls = AclIndex()
        self._super_users = frozenset(super_users)
        self._without_acls = _ALLOWED if allows_without_acls else _DENIED

    def authorize(self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str) -> Verdict:
        """Return whether ``principal`` may do this from ``host``, which is an address as Java prints it."""
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
    """Return whether all that is allowed by a pattern is denied by others."""
    if pattern_type is PatternType.LITERAL and (pattern_type, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
