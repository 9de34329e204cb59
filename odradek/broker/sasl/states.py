"""The states of a connection that authenticates, and what moves it from one to the next.

A connection may ask for the versions first, then names a mechanism (SaslHandshake), then exchanges the mechanism's tokens: in
SaslAuthenticate requests after a handshake of version 1, as frames of their own after one of version 0. A session that has a
lifetime authenticates again with the same mechanism before it is over (KIP-368).

The states are those of Kafka's SaslServerAuthenticator. Left out: its GSSAPI token without a handshake, from clients of 0.9.
"""

from enum import Enum, auto
from typing import Final

from odradek.protocol.api_keys import ApiKey


class SaslState(Enum):
    """What a connection may send next."""

    # The first frame: SaslHandshake or ApiVersions. What is no request is taken for a token of Kerberos, which is not there.
    INITIAL_REQUEST = auto()
    # ApiVersions was refused for its version; it may be asked once more.
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    # The versions are told.
    HANDSHAKE_REQUEST = auto()
    # The mechanism is agreed upon, and its tokens follow.
    AUTHENTICATE = auto()
    # All other requests.
    COMPLETE = auto()
    # The session has a lifetime, and the client begins anew.
    REAUTH_PROCESS_HANDSHAKE = auto()
    # It asked for another mechanism than that of the session. It was told that this is fine, and the next frame fails.
    REAUTH_BAD_MECHANISM = auto()
    # Nothing: the connection is closed.
    FAILED = auto()


TRANSITIONS: Final[dict[SaslState, frozenset[SaslState]]] = {
    SaslState.INITIAL_REQUEST: frozenset({SaslState.HANDSHAKE_OR_VERSIONS_REQUEST, SaslState.FAILED}),
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({SaslState.HANDSHAKE_REQUEST, SaslState.AUTHENTICATE, SaslState.FAILED}),
    SaslState.HANDSHAKE_REQUEST: frozenset({SaslState.AUTHENTICATE, SaslState.FAILED}),
    SaslState.AUTHENTICATE: frozenset({SaslState.COMPLETE, SaslState.FAILED}),
    SaslState.COMPLETE: frozenset({SaslState.REAUTH_PROCESS_HANDSHAKE}),
    SaslState.REAUTH_PROCESS_HANDSHAKE: frozenset({SaslState.AUTHENTICATE, SaslState.REAUTH_BAD_MECHANISM, SaslState.FAILED}),
    SaslState.REAUTH_BAD_MECHANISM: frozenset({SaslState.FAILED}),
    SaslState.FAILED: frozenset(),
}

# The requests of a state. With tokens as frames of their own, AUTHENTICATE has none. COMPLETE has all, and is not listed.
EXPECTED: Final[dict[SaslState, frozenset[ApiKey]]] = {
    SaslState.INITIAL_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    SaslState.HANDSHAKE_REQUEST: frozenset({ApiKey.SASL_HANDSHAKE}),
    SaslState.AUTHENTICATE: frozenset({ApiKey.SASL_AUTHENTICATE}),
    SaslState.REAUTH_PROCESS_HANDSHAKE: frozenset({ApiKey.SASL_HANDSHAKE}),
    SaslState.REAUTH_BAD_MECHANISM: frozenset(),
    SaslState.FAILED: frozenset(),
}


class IllegalTransition(Exception):
    """A fault of the broker's: no client can cause it."""


def step(state: SaslState, wanted: SaslState) -> SaslState:
    """``wanted``, if it may follow ``state``. Raises IllegalTransition."""
    if wanted not in TRANSITIONS[state]:
        raise IllegalTransition(f"{state.name} is not followed by {wanted.name}")
    return wanted
