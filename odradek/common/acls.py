"""Access control entries, and the filters that select them.

A binding ties an entry (a principal, a host, an operation, allowed or denied) to the resources that match a pattern: one name,
every name with a prefix, or ``*``, which is a literal pattern for every name. The codes are those of the protocol and of the
metadata log; a code that Kafka 4.3 does not have counts as UNKNOWN.
"""

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

WILDCARD: Final = "*"
ANYONE: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"


class AclResourceType(IntEnum):
    """The type of resource that a pattern names."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The type of a pattern. MATCH is for filters: every pattern that applies to a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """An operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """The permission of an entry: ALLOW or DENY."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CodeT = TypeVar("CodeT", AclResourceType, PatternType, AclOperation, AclPermission)


def coded(codes: type[CodeT], code: int) -> CodeT:
    """Return the member of a code; UNKNOWN for an unknown code."""
    try:
        return codes(code)
    except ValueError:
        return codes(0)


def kafkas_name(code: IntEnum) -> str:
    """Return the name that Kafka's tools and its log print: ``TransactionalId`` for TRANSACTIONAL_ID."""
    return "".join(part.capitalize() for part in code.name.split("_"))


class AclBinding(NamedTuple):
    """One access control entry and its pattern. Equal bindings are the same binding."""

    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class AclFilter(NamedTuple):
    """A filter that selects bindings. None, and ANY, stand for all of a kind."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def is_unknown(self) -> bool:
        """Return whether a part of the filter has an unknown code."""
        return not (self.resource_type and self.pattern_type and self.operation and self.permission)

    def matches(self, binding: AclBinding) -> bool:
        """Return whether the filter selects ``binding``."""
        return (
            self.resource_type in (AclResourceType.ANY, binding.resource_type)
            and self._matches_pattern(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermission.ANY, binding.permission)
        )

    def _matches_pattern(self, binding: AclBinding) -> bool:
        wanted, name = self.pattern_type, self.resource_name
        if wanted not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        if name is None:
            return True
        if wanted is not PatternType.MATCH:
            return name == binding.resource_name
        return applies_to(binding, name)


def applies_to(binding: AclBinding, name: str) -> bool:
    """Return whether the pattern of ``binding`` matches the resource ``name`` of its type."""
    if binding.pattern_type is PatternType.LITERAL:
        return binding.resource_name in (name, WILDCARD)
    return name.startswith(binding.resource_name)
