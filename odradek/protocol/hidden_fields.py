"""The secrets in messages: tokens, HMACs, salts, salted passwords. They appear in no log line and no recording."""

from typing import Any, Final

# By the name of the struct.
SECRETS: Final = {
    "SaslAuthenticateRequest": {"auth_bytes"},
    "SaslAuthenticateResponse": {"auth_bytes"},
    "ScramCredentialUpsertion": {"salt", "salted_password"},
    "CreateDelegationTokenResponse": {"hmac"},
    "RenewDelegationTokenRequest": {"hmac"},
    "ExpireDelegationTokenRequest": {"hmac"},
    "DescribedDelegationToken": {"hmac"},
    "UserScramCredentialRecord": {"salt", "stored_key", "server_key"},
}


def shown(message: Any, *hidden: str) -> str:
    """Return the ``repr`` of a named tuple, without the values of the fields ``hidden``."""
    values = message._asdict().items()
    return f"{type(message).__name__}({', '.join(f'{n}=[hidden]' if n in hidden else f'{n}={value!r}' for n, value in values)})"
