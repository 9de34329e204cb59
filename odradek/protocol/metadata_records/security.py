"""Metadata records of users: ACLs, quotas, credentials and tokens. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.protocol.messages import shown
from odradek.protocol.metadata_records.base import ZERO_ID


class AccessControlEntryRecord(NamedTuple):
    """An ACL: an operation is allowed or denied."""

    id: UUID = ZERO_ID
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class RemoveAccessControlEntryRecord(NamedTuple):
    """An ACL is removed."""

    id: UUID = ZERO_ID


class QuotaEntity(NamedTuple):
    """A part of a quota's entity; a name of None is the default of its type."""

    entity_type: str = ""
    entity_name: str | None = None


class ClientQuotaRecord(NamedTuple):
    """A quota of an entity is set or removed."""

    entity: tuple[QuotaEntity, ...] = ()
    key: str = ""
    value: float = 0.0
    remove: bool = False


class UserScramCredentialRecord(NamedTuple):
    """A user's SCRAM credential is set."""

    name: str = ""
    mechanism: int = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: int = 0

    def __repr__(self) -> str:
        return shown(self, "salt", "server_key", "stored_key")


class RemoveUserScramCredentialRecord(NamedTuple):
    """A user's SCRAM credential is removed."""

    name: str = ""
    mechanism: int = 0


class DelegationTokenRecord(NamedTuple):
    """A delegation token is created or renewed."""

    owner: str = ""
    requester: str = ""
    renewers: tuple[str, ...] = ()
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""


class RemoveDelegationTokenRecord(NamedTuple):
    """A delegation token is removed."""

    token_id: str = ""


CLASSES: Final[dict[str, type[Any]]] = {
    "AccessControlEntryRecord": AccessControlEntryRecord,
    "RemoveAccessControlEntryRecord": RemoveAccessControlEntryRecord,
    "QuotaEntity": QuotaEntity,
    "ClientQuotaRecord": ClientQuotaRecord,
    "UserScramCredentialRecord": UserScramCredentialRecord,
    "RemoveUserScramCredentialRecord": RemoveUserScramCredentialRecord,
    "DelegationTokenRecord": DelegationTokenRecord,
    "RemoveDelegationTokenRecord": RemoveDelegationTokenRecord,
}
FIELDS: Final[dict[int, str]] = {
    18: """
AccessControlEntryRecord 0 flexible 0+
 id uuid
 resource_type int8
 resource_name string
 pattern_type int8
 principal string
 host string
 operation int8
 permission_type int8
""",
    19: """
RemoveAccessControlEntryRecord 0 flexible 0+
 id uuid
""",
    14: """
ClientQuotaRecord 0 flexible 0+
 entity []QuotaEntity
  entity_type string
  entity_name string null
 key string
 value float64
 remove bool
""",
    11: """
UserScramCredentialRecord 0 flexible 0+
 name string
 mechanism int8
 salt bytes
 stored_key bytes
 server_key bytes
 iterations int32
""",
    22: """
RemoveUserScramCredentialRecord 0 flexible 0+
 name string
 mechanism int8
""",
    10: """
DelegationTokenRecord 0 flexible 0+
 owner string
 requester string
 renewers []string
 issue_timestamp int64
 max_timestamp int64
 expiration_timestamp int64
 token_id string
""",
    26: """
RemoveDelegationTokenRecord 0 flexible 0+
 token_id string
""",
}
