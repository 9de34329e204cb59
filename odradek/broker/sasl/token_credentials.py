"""What delegation tokens are checked by: SCRAM credentials of which the HMAC, in base64, is the password.

They are in no record. A credential is made when its token is first shown, in a few milliseconds, and kept while there is the
token. Kafka makes them when it reads the token's record (DelegationTokenManager).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.sasl.scram import TokenCredential
from odradek.protocol.scram import MIN_ITERATIONS, encode_base64, salted_password, server_key, stored_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.protocol.metadata_records.security import DelegationTokenRecord
    from odradek.protocol.scram import ScramMechanism

_SALT_BYTES: Final = 24


class _Credential(NamedTuple):
    """Part of ``scram.ScramCredential``."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"_Credential({self.iterations} iterations)"


class TokenCredentials:
    """Those of one broker. ``tokens`` are what there is now, by id; ``hmac_of`` gives a token's HMAC. Loop thread only."""

    def __init__(self, tokens: Callable[[], Mapping[str, DelegationTokenRecord]], hmac_of: Callable[[str], bytes]) -> None:
        self._tokens = tokens
        self._hmac_of = hmac_of
        self._made: dict[str, dict[ScramMechanism, _Credential]] = {}

    def find(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """Whom a token lets in, and what it is checked by. One that has expired is one until it is removed, as in Kafka."""
        token = self._tokens().get(token_id)
        if token is None:
            return None
        credentials = self._made.get(token_id)
        if credentials is None:
            for gone in self._made.keys() - self._tokens().keys():
                del self._made[gone]
            credentials = self._made[token_id] = {}
        if mechanism not in credentials:
            credentials[mechanism] = _credential(mechanism, self._hmac_of(token_id))
        owner = token.owner.partition(":")[2]
        return TokenCredential(owner, token.expiration_timestamp, credentials[mechanism])


def _credential(mechanism: ScramMechanism, hmac: bytes) -> _Credential:
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = salted_password(mechanism, encode_base64(hmac), salt, MIN_ITERATIONS)
    return _Credential(salt, stored_key(mechanism, salted), server_key(mechanism, salted), MIN_ITERATIONS)
