"""CreateDelegationToken up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class CreatableRenewers(NamedTuple):
    """A struct of the CreateDelegationToken request."""

    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(NamedTuple):
    """The CreateDelegationToken request."""

    owner_principal_type: str | None = None
    owner_principal_name: str | None = None
    renewers: Sequence[CreatableRenewers] = ()
    max_lifetime_ms: int = 0


class CreateDelegationTokenResponse(NamedTuple):
    """The CreateDelegationToken response."""

    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0

    def __repr__(self) -> str:
        return shown(self, "hmac")


REQUEST: Final[dict[str, type[Any]]] = {
    "CreatableRenewers": CreatableRenewers,
    "CreateDelegationTokenRequest": CreateDelegationTokenRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "CreateDelegationTokenResponse": CreateDelegationTokenResponse,
}

REQUEST_FIELDS: Final = """
CreateDelegationTokenRequest 1-3 flexible 2+
 owner_principal_type string 3+ null 3+
 owner_principal_name string 3+ null 3+
 renewers []CreatableRenewers
  principal_type string
  principal_name string
 max_lifetime_ms int64
"""
RESPONSE_FIELDS: Final = """
CreateDelegationTokenResponse 1-3 flexible 2+
 error_code int16
 principal_type string
 principal_name string
 token_requester_principal_type string 3+
 token_requester_principal_name string 3+
 issue_timestamp_ms int64
 expiry_timestamp_ms int64
 max_timestamp_ms int64
 token_id string
 hmac bytes
 throttle_time_ms int32
"""
