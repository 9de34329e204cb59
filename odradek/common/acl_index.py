"""An index of ACL bindings, by resource and principal.

    resource type -> literal name -> principal -> bindings
    resource type -> prefix       -> principal -> bindings       and the lengths that prefixes have

A decision looks up the name, ``*``, and the name's prefixes of those lengths; in each pattern found, the principal and
``User:*``. That is O(different lengths of prefixes + bindings of these two principals in the matching patterns), however many
bindings other names and principals have.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from odradek.common.acls import (
    ANYONE,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)

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
                    if binding.host not in (WILDCARD, host):
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
                        if binding.host in (WILDCARD, host) and binding.operation in wanted:
                            yield binding


_NOTHING: Final = Finding(None, False)
