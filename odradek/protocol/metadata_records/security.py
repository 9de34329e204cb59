"""Metadata records of users: ACLs, quotas, credentials and tokens.

odradek enforces ACLs and quotas, checks users by their credentials and tokens, and stores the others for Kafka.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from odradek.protocol.metadata_records.base import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID_,
    MetadataRecord,
    Nested,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord(MetadataRecord):
    """An ACL: an operation is allowed or denied."""

    __api_key__: ClassVar[int] = 18
    id: UUID = field(metadata=UUID_)
    resource_type: int = field(metadata=INT8)
    resource_name: str = field(metadata=STRING)
    pattern_type: int = field(metadata=INT8)
    principal: str = field(metadata=STRING)
    host: str = field(metadata=STRING)
    operation: int = field(metadata=INT8)
    permission_type: int = field(metadata=INT8)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord(MetadataRecord):
    """An ACL is removed."""

    __api_key__: ClassVar[int] = 19
    id: UUID = field(metadata=UUID_)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity(Nested):
    """A part of a quota's entity; a name of None is the default of its type."""

    entity_type: str = field(metadata=STRING)
    entity_name: str | None = field(metadata=STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord(MetadataRecord):
    """A quota of an entity is set or removed."""

    __api_key__: ClassVar[int] = 14
    entity: tuple[QuotaEntity, ...]
    key: str = field(metadata=STRING)
    value: float = field(metadata=FLOAT64)
    remove: bool = field(metadata=BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord(MetadataRecord):
    """A user's SCRAM credential is set."""

    __api_key__: ClassVar[int] = 11
    name: str = field(metadata=STRING)
    mechanism: int = field(metadata=INT8)
    salt: bytes = field(metadata=BYTES, repr=False)
    stored_key: bytes = field(metadata=BYTES, repr=False)
    server_key: bytes = field(metadata=BYTES, repr=False)
    iterations: int = field(metadata=INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user's SCRAM credential is removed."""

    __api_key__: ClassVar[int] = 22
    name: str = field(metadata=STRING)
    mechanism: int = field(metadata=INT8)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord(MetadataRecord):
    """A delegation token is created or renewed."""

    __api_key__: ClassVar[int] = 10
    owner: str = field(metadata=STRING)
    requester: str = field(metadata=STRING)
    renewers: tuple[str, ...] = field(metadata=STRING)
    issue_timestamp: int = field(metadata=INT64)
    max_timestamp: int = field(metadata=INT64)
    expiration_timestamp: int = field(metadata=INT64)
    token_id: str = field(metadata=STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord(MetadataRecord):
    """A delegation token is removed."""

    __api_key__: ClassVar[int] = 26
    token_id: str = field(metadata=STRING)
