"""Access control entries, and the filters that select them.

A binding ties an entry (a principal, a host, an operation, allowed or denied) to the resources that match a pattern: one name,
every name with a prefix, or ``*``, which is a literal pattern for every name. The codes are those of the protocol and of the
metadata log; a code that Kafka 4.4 does not have counts as UNKNOWN.

``AclIndex`` finds bindings by resource and principal:

    resource type -> literal name -> principal -> bindings
    resource type -> prefix       -> principal -> bindings       and the lengths that prefixes have

A decision looks up the name, ``*``, and the name's prefixes of those lengths; in each pattern found, the principal and
``User:*``. That is O(different lengths of prefixes + bindings of these two principals in the matching patterns), however many
bindings other names and principals have.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from odradek.common.address_ranges import is_in_range

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


_Pattern = dict[str, list[AclBinding]]


class Finding(NamedTuple):
    """The binding that decides about an action, and whether the resource has any binding at all."""

    binding: AclBinding | None
    has_acls: bool


def _allowing(operation: AclOperation) -> frozenset[AclOperation]:
    """Return the operations whose ALLOW entries allow ``operation``, too."""
    implying = {
        AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
        AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
    }
    return frozenset({operation, AclOperation.ALL} | implying.get(operation, set()))


_ALLOWING: Final = {operation: _allowing(operation) for operation in AclOperation}
# A denied operation implies no other.
_DENYING: Final = {operation: frozenset((operation, AclOperation.ALL)) for operation in AclOperation}


class _OfType:
    """The bindings of one resource type."""

    __slots__ = ("_length_counts", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}
        self.prefixed: dict[str, _Pattern] = {}
        self._length_counts: Counter[int] = Counter()
        self.lengths: tuple[int, ...] = ()

    def add(self, binding: AclBinding) -> None:
        patterns = self.patterns(binding.pattern_type)
        if binding.resource_name not in patterns:
            patterns[binding.resource_name] = {}
            self._count(binding, 1)
        patterns[binding.resource_name].setdefault(binding.principal, []).append(binding)

    def remove(self, binding: AclBinding) -> None:
        patterns = self.patterns(binding.pattern_type)
        pattern = patterns[binding.resource_name]
        pattern[binding.principal].remove(binding)
        if not pattern[binding.principal]:
            del pattern[binding.principal]
        if not pattern:
            del patterns[binding.resource_name]
            self._count(binding, -1)

    def patterns(self, pattern_type: PatternType) -> dict[str, _Pattern]:
        return self.prefixed if pattern_type is PatternType.PREFIXED else self.literal

    def applying(self, name: str) -> Iterator[_Pattern]:
        """Yield the patterns that match the resource ``name``."""
        literal = self.literal
        if name in literal:
            yield literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield literal[WILDCARD]
        prefixed, length = self.prefixed, len(name)
        for each in self.lengths:
            if each > length:
                break
            found = prefixed.get(name[:each])
            if found is not None:
                yield found

    def _count(self, binding: AclBinding, by: int) -> None:
        if binding.pattern_type is PatternType.PREFIXED:
            self._length_counts[len(binding.resource_name)] += by
            self.lengths = tuple(sorted(+self._length_counts))


class AclIndex:
    """All bindings, by the id in their record."""

    def __init__(self, bindings: Mapping[UUID, AclBinding] | None = None) -> None:
        self._by_id: dict[UUID, AclBinding] = {}
        self._types: dict[AclResourceType, _OfType] = {}
        for acl_id, binding in (bindings or {}).items():
            self.add(acl_id, binding)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._by_id.values())

    def items(self) -> Iterable[tuple[UUID, AclBinding]]:
        """Return the bindings with their ids."""
        return self._by_id.items()

    def add(self, acl_id: UUID, binding: AclBinding) -> None:
        """Add a binding; it replaces an older one with the same id."""
        self.remove(acl_id)
        self._by_id[acl_id] = binding
        self._types.setdefault(binding.resource_type, _OfType()).add(binding)

    def remove(self, acl_id: UUID) -> None:
        """Remove the binding with this id, if there is one."""
        binding = self._by_id.pop(acl_id, None)
        if binding is not None:
            self._types[binding.resource_type].remove(binding)

    def find(self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType, name: str) -> Finding:
        """Return the binding that denies the action, else one that allows it, else None."""
        of_type = self._types.get(resource_type)
        if of_type is None:
            return _NOTHING
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        allowed: AclBinding | None = None
        has_acls = False
        for pattern in of_type.applying(name):
            has_acls = True
            for who in (principal, ANYONE):
                for binding in pattern.get(who, ()):
                    if binding.host not in (WILDCARD, host) and not is_in_range(host, binding.host):
                        continue
                    if binding.permission is AclPermission.ALLOW:
                        if binding.operation in allowing:
                            allowed = binding
                    elif binding.operation in denying:
                        return Finding(binding, True)
        return Finding(allowed, has_acls)

    def of_type(self, principal: str, host: str, operation: AclOperation, resource_type: AclResourceType) -> Iterator[AclBinding]:
        """Yield the bindings of the principal and ``User:*`` for exactly this operation, or for all. O(patterns of the type)."""
        of_type = self._types.get(resource_type)
        if of_type is None:
            return
        wanted = _DENYING[operation]
        for patterns in (of_type.literal, of_type.prefixed):
            for pattern in patterns.values():
                for who in (principal, ANYONE):
                    for binding in pattern.get(who, ()):
                        is_of_host = binding.host in (WILDCARD, host) or is_in_range(host, binding.host)
                        if is_of_host and binding.operation in wanted:
                            yield binding


_NOTHING: Final = Finding(None, False)
