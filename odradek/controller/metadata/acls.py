"""Access control entries in the metadata: decisions on creating and deleting them, and the authorizer's copy of them.

Creating an existing binding succeeds without a record. Source: ``AclControlManager`` of Apache Kafka 4.4.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from odradek.common.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    AclIndex,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    coded,
)
from odradek.common.address_ranges import InvalidRange, parsed_range
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import MetadataRecord
from odradek.protocol.metadata_records.security import AccessControlEntryRecord, RemoveAccessControlEntryRecord

Acls = Mapping[UUID, AccessControlEntryRecord]
# The result for each binding: None on success.
Created = list[KafkaError | None]
Deleted = list[list[AclBinding] | KafkaError]
# MAX_RECORDS_PER_USER_OP.
MOST_RECORDS: Final = 10_000
# The number of entries checked at a time: a millisecond of work.
_LOOKED_AT_TOGETHER: Final = 1_000
_MADE_TOGETHER: Final = 100


def create_acls(
    acls: Acls, bindings: Iterable[AclBinding], new_id: Callable[[], UUID], *, has_ranges: bool
) -> Generator[None, None, tuple[Created, Sequence[MetadataRecord]]]:
    """Return the result of each binding, INVALID_REQUEST for an invalid one, and the records of the new ones. In slices.

    Without ``has_ranges``, a range of addresses as host is UNSUPPORTED_VERSION.
    """
    known: set[tuple[int, str, int, str, str, int, int]] = set()
    for place, record in enumerate(list(acls.values()), 1):
        known.add(_fields(record))
        if place % _LOOKED_AT_TOGETHER == 0:
            yield None
    answers: Created = []
    records: list[MetadataRecord] = []
    for place, binding in enumerate(bindings, 1):
        problem = _problem(binding)
        error = None if problem is None else KafkaError(ErrorCode.INVALID_REQUEST, problem)
        if error is None and "/" in binding.host and not has_ranges:
            error = KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Hosts are address ranges from metadata.version 4.4-IV1 on.")
        answers.append(error)
        if error is None and binding not in known:
            known.add(binding)
            records.append(record_of(new_id(), binding))
        if place % _MADE_TOGETHER == 0:
            yield None
    return answers, records


def delete_acls(acls: Acls, filters: Sequence[AclFilter]) -> Generator[None, None, tuple[Deleted, Sequence[MetadataRecord]]]:
    """Return the bindings that each filter deletes (equal filters get equal answers), and the records. In slices.

    A filter that would delete too many gets UNKNOWN_SERVER_ERROR, as from Kafka.
    """
    bindings: list[tuple[UUID, AclBinding]] = []
    by_name: dict[str, list[tuple[UUID, AclBinding]]] = {}
    for acl_id, record in list(acls.items()):
        bindings.append((acl_id, binding_of(record)))
        by_name.setdefault(record.resource_name, []).append(bindings[-1])
        if len(bindings) % _MADE_TOGETHER == 0:
            yield None
    answers: dict[AclFilter, list[AclBinding] | KafkaError] = {}
    removed: dict[UUID, None] = {}
    for wanted in dict.fromkeys(filters):
        found = []
        is_of_name = wanted.resource_name is not None and wanted.pattern_type is not PatternType.MATCH
        possible = by_name.get(wanted.resource_name or "", []) if is_of_name else bindings
        for first in range(0, len(possible), _LOOKED_AT_TOGETHER):
            found += [each for each in possible[first : first + _LOOKED_AT_TOGETHER] if wanted.matches(each[1])]
            yield None
        if len(removed.keys() | dict(found)) > MOST_RECORDS:
            reason = f"Cannot remove more than {MOST_RECORDS} acls in a single delete operation."
            answers[wanted] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
            continue
        removed.update((acl_id, None) for acl_id, _ in found)
        answers[wanted] = [binding for _, binding in found]
    return [answers[wanted] for wanted in filters], [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]


def binding_of(record: AccessControlEntryRecord) -> AclBinding:
    """Return the binding of a record."""
    resource_type, resource_name, pattern_type, principal, host, operation, permission = _fields(record)
    return AclBinding(
        coded(AclResourceType, resource_type),
        resource_name,
        coded(PatternType, pattern_type),
        principal,
        host,
        coded(AclOperation, operation),
        coded(AclPermission, permission),
    )


def record_of(acl_id: UUID, binding: AclBinding) -> AccessControlEntryRecord:
    """Return the record of a binding."""
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=int(binding.resource_type),
        resource_name=binding.resource_name,
        pattern_type=int(binding.pattern_type),
        principal=binding.principal,
        host=binding.host,
        operation=int(binding.operation),
        permission_type=int(binding.permission),
    )


class AclPublisher:
    """A MetadataPublisher that keeps ``index`` in step with the image."""

    def __init__(self, index: AclIndex, image: MetadataImage) -> None:
        self._index = index
        for acl_id, record in image.kept.acls.items():
            index.add(acl_id, binding_of(record))

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Apply changed ACLs to the authorizer."""
        for acl_id, record in delta.acls.items():
            if record is None:
                self._index.remove(acl_id)
            else:
                self._index.add(acl_id, binding_of(record))


def _fields(record: AccessControlEntryRecord) -> tuple[int, str, int, str, str, int, int]:
    """Return the record's fields as a binding has them."""
    return (
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def _problem(binding: AclBinding) -> str | None:
    """Return why such a binding is invalid, or None."""
    if binding.resource_type is AclResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not binding.resource_name:
        return "Invalid empty resource name"
    if binding.resource_type <= AclResourceType.ANY:
        return f"Invalid resourceType {binding.resource_type.name}"
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {binding.pattern_type.name}"
    if binding.operation <= AclOperation.ANY:
        return f"Invalid operation {binding.operation.name}"
    if binding.permission not in (AclPermission.DENY, AclPermission.ALLOW):
        return f"Invalid permissionType {binding.permission.name}"
    if ":" not in binding.principal:
        return f"Could not parse principal from `{binding.principal}` (no colon separates its type from its name)"
    return _host_problem(binding.host)


def _host_problem(host: str) -> str | None:
    if not host:
        return "Invalid empty host"
    if "/" in host:
        try:
            parsed_range(host)
        except InvalidRange as problem:
            return f"Invalid range of addresses {host}: {problem}"
    return None
