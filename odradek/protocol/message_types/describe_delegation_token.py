"""DescribeDelegationToken up to version 3. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class DescribeDelegationTokenOwner(NamedTuple):
    """A struct of the DescribeDelegationToken request."""

    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(NamedTuple):
    """The DescribeDelegationToken request."""

    owners: Sequence[DescribeDelegationTokenOwner] | None = ()


class DescribedDelegationTokenRenewer(NamedTuple):
    """A struct of the DescribeDelegationToken response."""

    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(NamedTuple):
    """A struct of the DescribeDelegationToken response."""

    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: Sequence[DescribedDelegationTokenRenewer] = ()

    def __repr__(self) -> str:
        return shown(self, "hmac")


class DescribeDelegationTokenResponse(NamedTuple):
    """The DescribeDelegationToken response."""

    error_code: int = 0
    tokens: Sequence[DescribedDelegationToken] = ()
    throttle_time_ms: int = 0


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeDelegationTokenOwner": DescribeDelegationTokenOwner,
    "DescribeDelegationTokenRequest": DescribeDelegationTokenRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribedDelegationTokenRenewer": DescribedDelegationTokenRenewer,
    "DescribedDelegationToken": DescribedDelegationToken,
    "DescribeDelegationTokenResponse": DescribeDelegationTokenResponse,
}

REQUEST_FIELDS: Final = """
DescribeDelegationTokenRequest 1-3 flexible 2+
 owners []DescribeDelegationTokenOwner null
  principal_type string
  principal_name string
"""
RESPONSE_FIELDS: Final = """
DescribeDelegationTokenResponse 1-3 flexible 2+
 error_code int16
 tokens []DescribedDelegationToken
  principal_type string
  principal_name string
  token_requester_principal_type string 3+
  token_requester_principal_name string 3+
  issue_timestamp int64
  expiry_timestamp int64
  max_timestamp int64
  token_id string
  hmac bytes
  renewers []DescribedDelegationTokenRenewer
   principal_type string
   principal_name string
 throttle_time_ms int32
"""
