"""AlterUserScramCredentials up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from odradek.protocol.messages import shown


class ScramCredentialDeletion(NamedTuple):
    """A struct of the AlterUserScramCredentials request."""

    name: str = ""
    mechanism: int = 0


class ScramCredentialUpsertion(NamedTuple):
    """A struct of the AlterUserScramCredentials request."""

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""

    def __repr__(self) -> str:
        return shown(self, "salt", "salted_password")


class AlterUserScramCredentialsRequest(NamedTuple):
    """The AlterUserScramCredentials request."""

    deletions: Sequence[ScramCredentialDeletion] = ()
    upsertions: Sequence[ScramCredentialUpsertion] = ()


class AlterUserScramCredentialsResult(NamedTuple):
    """A struct of the AlterUserScramCredentials response."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = None


class AlterUserScramCredentialsResponse(NamedTuple):
    """The AlterUserScramCredentials response."""

    throttle_time_ms: int = 0
    results: Sequence[AlterUserScramCredentialsResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ScramCredentialDeletion": ScramCredentialDeletion,
    "ScramCredentialUpsertion": ScramCredentialUpsertion,
    "AlterUserScramCredentialsRequest": AlterUserScramCredentialsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AlterUserScramCredentialsResult": AlterUserScramCredentialsResult,
    "AlterUserScramCredentialsResponse": AlterUserScramCredentialsResponse,
}

REQUEST_FIELDS: Final = """
AlterUserScramCredentialsRequest 0 flexible 0+
 deletions []ScramCredentialDeletion
  name string
  mechanism int8
 upsertions []ScramCredentialUpsertion
  name string
  mechanism int8
  iterations int32
  salt bytes
  salted_password bytes
"""
RESPONSE_FIELDS: Final = """
AlterUserScramCredentialsResponse 0 flexible 0+
 throttle_time_ms int32
 results []AlterUserScramCredentialsResult
  user string
  error_code int16
  error_message string null
"""
