"""SASL authentication of a client after the versions are negotiated: PLAIN, SCRAM, OAUTHBEARER.

``Authentication`` makes the requests and reads their answers; a connection sends them. The caller provides tokens.
"""

import secrets
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from odradek.client.api import Api, LoginFailed
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.scram import (
    MECHANISMS,
    ScramMechanism,
    client_proof,
    salted_password,
    server_key,
    server_signature,
)
from odradek.protocol.texts import decode_base64, encode_base64

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
_HANDSHAKE: Final[Api[SaslHandshakeRequest, SaslHandshakeResponse]] = Api(ApiKey.SASL_HANDSHAKE, 1)
_AUTHENTICATE: Final[Api[SaslAuthenticateRequest, SaslAuthenticateResponse]] = Api(ApiKey.SASL_AUTHENTICATE)
_NONCE_BYTES: Final = 24


class Login(NamedTuple):
    """A user with a mechanism and a password. For OAUTHBEARER the password is the token, which names the user."""

    mechanism: str
    user: str
    password: str
    # True if the user is the id of a delegation token, and the password its HMAC.
    by_token: bool = False

    def __repr__(self) -> str:
        return f"Login({self.mechanism!r}, {self.user!r}, [hidden])"


class LoginRequest(NamedTuple):
    """The next request for a connection to send."""

    api: Api[Any, Any]
    request: SaslHandshakeRequest | SaslAuthenticateRequest


class Authentication:
    """One exchange: call ``begin``, then ``answered`` with each answer until it returns None."""

    __slots__ = ("_login", "_tokens", "lifetime_ms")

    def __init__(self, login: Login, nonce: str | None = None) -> None:
        self._login = login
        self._tokens = exchange(login, nonce or secrets.token_urlsafe(_NONCE_BYTES))
        # The lifetime of the new session (KIP-368); 0 if it has no end.
        self.lifetime_ms = 0

    def begin(self) -> LoginRequest:
        """Return the first request, which names the mechanism."""
        return LoginRequest(_HANDSHAKE, SaslHandshakeRequest(mechanism=self._login.mechanism))

    def answered(self, answer: SaslHandshakeResponse | SaslAuthenticateResponse) -> LoginRequest | None:
        """Return the next request; None once the node has accepted the client. Raises LoginFailed."""
        if isinstance(answer, SaslHandshakeResponse):
            if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
                raise LoginFailed("its listener has no SASL", answer.error_code)
            if answer.error_code:
                there = ", ".join(answer.mechanisms) or "nothing"
                raise LoginFailed(f"it does not enable {self._login.mechanism}; enabled: {there}", answer.error_code)
            return _with_token(next(self._tokens))
        if answer.error_code:
            raise LoginFailed(answer.error_message or "no reason given", answer.error_code)
        try:
            return _with_token(self._tokens.send(answer.auth_bytes))
        except StopIteration:
            self.lifetime_ms = answer.session_lifetime_ms
            return None


def _with_token(token: bytes) -> LoginRequest:
    return LoginRequest(_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token))


def exchange(login: Login, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield the client's tokens, and receive the broker's. Raises LoginFailed if the broker does not know the password."""
    if login.mechanism == PLAIN:
        yield f"\0{login.user}\0{login.password}".encode()
        return
    if login.mechanism == OAUTHBEARER:
        refusal = yield f"n,,\1auth=Bearer {login.password}\1\1".encode()
        if refusal:
            # The answer to this reports the failure (RFC 7628, section 3.2.3).
            yield b"\1"
            raise LoginFailed(refusal.decode(errors="replace"))
        return
    name = login.user.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={nonce}{',tokenauth=true' if login.by_token else ''}"
    first = (yield f"n,,{bare}".encode()).decode(errors="replace")
    mechanism = MECHANISMS[login.mechanism]
    salted, server_nonce = _salted(mechanism, login.password, first, nonce)
    without_proof = f"c=biws,r={server_nonce}"
    said = f"{bare},{first},{without_proof}".encode()
    final = yield f"{without_proof},p={encode_base64(client_proof(mechanism, salted, said))}".encode()
    if final.decode(errors="replace") != f"v={encode_base64(server_signature(mechanism, server_key(mechanism, salted), said))}":
        raise LoginFailed("the node could not prove that it knows the password")


def _salted(mechanism: ScramMechanism, password: str, first: str, nonce: str) -> tuple[bytes, str]:
    """Return the salted password and the combined nonce, from the broker's first message."""
    values = dict(part.split("=", 1) for part in first.split(",") if "=" in part)
    try:
        salt, iterations, server_nonce = decode_base64(values["s"]), int(values["i"]), values["r"]
    except (KeyError, ValueError) as error:
        raise LoginFailed("its answer is not a SCRAM message") from error
    if not server_nonce.startswith(nonce) or not 0 < iterations < 10**6:
        raise LoginFailed("its answer is not a SCRAM message")
    return salted_password(mechanism, password, salt, iterations), server_nonce
