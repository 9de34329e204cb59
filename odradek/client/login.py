"""How a client authenticates by SASL once the versions are negotiated: PLAIN and SCRAM, over a client that sends and waits.

Left out: OAUTHBEARER, sessions with an end (KIP-368): a command's connection is over by then.
"""

import secrets
from collections.abc import Generator
from typing import Final, NamedTuple, Protocol

from odradek.client.api import Api, RequestT, ResponseT
from odradek.client.errors import LoginFailed
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.scram import (
    MECHANISMS,
    ScramMechanism,
    client_proof,
    decode_base64,
    encode_base64,
    salted_password,
    server_key,
    server_signature,
)

PLAIN: Final = "PLAIN"
_HANDSHAKE: Final[Api[SaslHandshakeRequest, SaslHandshakeResponse]] = Api(ApiKey.SASL_HANDSHAKE, 1)
_AUTHENTICATE: Final[Api[SaslAuthenticateRequest, SaslAuthenticateResponse]] = Api(ApiKey.SASL_AUTHENTICATE)
_NONCE_BYTES: Final = 24


class Login(NamedTuple):
    """Who logs in, and how."""

    mechanism: str
    user: str
    password: str
    # The user is the id of a delegation token, the password its HMAC.
    by_token: bool = False

    def __repr__(self) -> str:
        return f"Login({self.mechanism!r}, {self.user!r}, [hidden])"


class Asks(Protocol):
    """A client that sends a request and waits for its response."""

    def call(self, api: Api[RequestT, ResponseT], request: RequestT, /) -> ResponseT:
        """Raises ClientError."""


def log_in(client: Asks, login: Login) -> None:
    """Raises LoginFailed, and what ``call`` raises."""
    shaken = client.call(_HANDSHAKE, SaslHandshakeRequest(mechanism=login.mechanism))
    if shaken.error_code:
        raise LoginFailed(f"it has no {login.mechanism}, but {', '.join(shaken.mechanisms) or 'nothing'}", shaken.error_code)
    tokens = exchange(login, secrets.token_urlsafe(_NONCE_BYTES))
    token = next(tokens)
    while True:
        answer = client.call(_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code:
            raise LoginFailed(answer.error_message or "it does not say why", answer.error_code)
        try:
            token = tokens.send(answer.auth_bytes)
        except StopIteration:
            return


def exchange(login: Login, nonce: str) -> Generator[bytes, bytes, None]:
    """The client's tokens; it is sent the broker's. Raises LoginFailed where the broker does not know the password."""
    if login.mechanism == PLAIN:
        yield f"\0{login.user}\0{login.password}".encode()
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
        raise LoginFailed("it does not know the password itself")


def _salted(mechanism: ScramMechanism, password: str, first: str, nonce: str) -> tuple[bytes, str]:
    """The salted password and both nonces, by the broker's first message."""
    values = dict(part.split("=", 1) for part in first.split(",") if "=" in part)
    try:
        salt, iterations, server_nonce = decode_base64(values["s"]), int(values["i"]), values["r"]
    except (KeyError, ValueError) as error:
        raise LoginFailed("its answer is not one of SCRAM") from error
    if not server_nonce.startswith(nonce) or not 0 < iterations < 10**6:
        raise LoginFailed("its answer is not one of SCRAM")
    return salted_password(mechanism, password, salt, iterations), server_nonce
