"""SCRAM-SHA-256 and SCRAM-SHA-512: the client and the broker prove to each other that they know a password (RFC 5802).

    client    n,[a=authorization id],[m=...,]n=user,r=nonce[,extensions]
    broker    r=nonce and the broker's own,s=salt,i=iterations
    client    c=channel binding,r=nonces[,extensions],p=proof
    broker    v=signature

Channel binding and extensions are ignored, as in Kafka's ScramSaslServer, except ``tokenauth=true``. With it, the name is a
delegation token's id, the password is its HMAC in base64, and the client acts as the token's owner. As in Kafka, an unknown user
or token is refused at the first message, so a client can find out which ones exist.

The credentials of delegation tokens are in no record. A token's credential is derived at its first use, which takes a few
milliseconds, and is kept as long as the token exists. Kafka derives it when it reads the token's record (DelegationTokenManager).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.broker.security.sasl.mechanism import AuthenticationFailed
from odradek.protocol.scram import (
    MIN_ITERATIONS,
    ScramMechanism,
    is_proof,
    salted_password,
    server_key,
    server_signature,
    stored_key,
)
from odradek.protocol.texts import decode_base64, encode_base64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.metadata_records.security import DelegationTokenRecord

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))",
    re.DOTALL,
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})", re.DOTALL
)
_BY_TOKEN: Final = re.compile(r",tokenauth=([^,]*)")


class ScramCredential(Protocol):
    """The stored credential of a user; in the metadata log, a UserScramCredentialRecord."""

    @property
    def salt(self) -> bytes:
        """The salt of the password."""

    @property
    def stored_key(self) -> bytes:
        """The key that verifies the client's proof."""

    @property
    def server_key(self) -> bytes:
        """The key that makes the broker's signature."""

    @property
    def iterations(self) -> int:
        """The number of times the password was hashed."""


def new_nonce() -> str:
    """Return the broker's part of a nonce: 192 bits from the system's random source, independent of any seed."""
    return secrets.token_urlsafe(24)


class TokenCredential(NamedTuple):
    """A delegation token's owner, its expiry in wall time, and the credential that verifies it."""

    owner: str
    expires_ms: int
    credential: ScramCredential


FindCredential = Callable[[str], ScramCredential | None]
FindToken = Callable[[str], TokenCredential | None]


def no_token(*_token: object) -> None:
    """Find no token: the ``FindToken`` of a node without delegation tokens."""


class _FirstMessages(NamedTuple):
    """The state after the first messages, when the client must prove its password."""

    credential: ScramCredential
    nonce: str
    said: str


class ScramServer:
    """The server's side of SCRAM (RFC 5802).

    ``find`` gives the credential of a user, ``find_token`` that of a token id, ``new_nonce`` the broker's nonce.
    """

    __slots__ = (
        "_find",
        "_find_token",
        "_first",
        "_mechanism",
        "_new_nonce",
        "by_token",
        "expires_ms",
        "is_complete",
        "user",
    )

    refusal = None

    def __init__(
        self, mechanism: ScramMechanism, find: FindCredential, new_nonce: Callable[[], str], find_token: FindToken = no_token
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._new_nonce = new_nonce
        self._first: _FirstMessages | None = None
        self.is_complete = False
        self.user = ""
        self.by_token = False
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Answer the client's first message, then its final one."""
        message = token.decode(errors="replace")
        if self._first is None:
            return self._answer_first(message).encode()
        return self._answer_final(message, self._first).encode()

    def _answer_first(self, message: str) -> str:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("the client's first message is not a SCRAM message")
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        credential = self._credential(name, match["extensions"])
        if match["authorization_id"] not in (None, name):
            told = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationFailed(told, told=told, user=name)
        if credential.iterations < MIN_ITERATIONS:
            raise AuthenticationFailed(f"the credential has too few iterations, {credential.iterations}", user=name)
        nonce = match["nonce"] + self._new_nonce()
        answer = f"r={nonce},s={encode_base64(credential.salt)},i={credential.iterations}"
        self._first = _FirstMessages(credential, nonce, f"{match['bare']},{answer}")
        return answer

    def _credential(self, name: str, extensions: str) -> ScramCredential:
        """Return the credential of a user or a delegation token, and set ``user``. Raises AuthenticationFailed."""
        values = _BY_TOKEN.findall(extensions)
        self.by_token = bool(values) and values[-1].lower() == "true"
        if self.by_token:
            token = self._find_token(name)
            if token is None:
                raise AuthenticationFailed("no such delegation token", user=name)
            self.user, self.expires_ms, credential = token
            return credential
        self.user = name
        found = self._find(name)
        if found is None:
            raise AuthenticationFailed(f"no such user with a credential for {self._mechanism.text}", user=name)
        return found

    def _answer_final(self, message: str, first: _FirstMessages) -> str:
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("the client's final message is not a SCRAM message", user=self.user)
        if match["nonce"] != first.nonce:
            raise AuthenticationFailed("the nonce differs from the server's", user=self.user)
        said = f"{first.said},{match['without_proof']}".encode()
        credential = first.credential
        if not is_proof(self._mechanism, credential.stored_key, said, decode_base64(match["proof"])):
            raise AuthenticationFailed("the password is wrong", user=self.user)
        self.is_complete = True
        return f"v={encode_base64(server_signature(self._mechanism, credential.server_key, said))}"


_SALT_BYTES: Final = 24


class _Credential(NamedTuple):
    """A ``scram.ScramCredential``."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"_Credential({self.iterations} iterations)"


class TokenCredentials:
    """The token credentials of one broker. ``tokens`` are by id; ``hmac_of`` returns a token's HMAC. Loop thread only."""

    def __init__(self, tokens: Callable[[], Mapping[str, DelegationTokenRecord]], hmac_of: Callable[[str], bytes]) -> None:
        self._tokens = tokens
        self._hmac_of = hmac_of
        self._made: dict[str, dict[ScramMechanism, _Credential]] = {}

    def find(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """Return the credential of a token; None if it is unknown. As in Kafka, an expired token counts until it is removed."""
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
