"""DescribeUserScramCredentials up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class UserName(NamedTuple):
    """A struct of the DescribeUserScramCredentials request."""

    name: str = ""


class DescribeUserScramCredentialsRequest(NamedTuple):
    """The DescribeUserScramCredentials request."""

    users: Sequence[UserName] | None = ()


class CredentialInfo(NamedTuple):
    """A struct of the DescribeUserScramCredentials response."""

    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(NamedTuple):
    """A struct of the DescribeUserScramCredentials response."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = None
    credential_infos: Sequence[CredentialInfo] = ()


class DescribeUserScramCredentialsResponse(NamedTuple):
    """The DescribeUserScramCredentials response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: Sequence[DescribeUserScramCredentialsResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "UserName": UserName,
    "DescribeUserScramCredentialsRequest": DescribeUserScramCredentialsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "CredentialInfo": CredentialInfo,
    "DescribeUserScramCredentialsResult": DescribeUserScramCredentialsResult,
    "DescribeUserScramCredentialsResponse": DescribeUserScramCredentialsResponse,
}

REQUEST_FIELDS: Final = """
DescribeUserScramCredentialsRequest 0 flexible 0+
 users []UserName null
  name string
"""
RESPONSE_FIELDS: Final = """
DescribeUserScramCredentialsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
 results []DescribeUserScramCredentialsResult
  user string
  error_code int16
  error_message string null
  credential_infos []CredentialInfo
   mechanism int8
   iterations int32
"""
