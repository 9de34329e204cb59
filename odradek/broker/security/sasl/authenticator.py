"""The SASL state machine of one connection: from its first frame to a session with a principal, and reauthentication (KIP-368).

    authenticator.receive(frame, wall_ms, monotonic_ms) -> the Outcome: respond, refuse, or close

No sockets and no clock: a test feeds frames and compares the outcomes. The refusals are those of Kafka's
SaslServerAuthenticator: a failed authentication gets an answer after a delay; a frame that is no valid request closes the
connection at once.

A connection may send ApiVersions first, then names a mechanism (SaslHandshake), then exchanges the mechanism's tokens. After a
handshake of version 1 the tokens come in SaslAuthenticate requests; after version 0 they are frames of their own. A session with
a lifetime must reauthenticate with the same mechanism before it expires (KIP-368).

The states are those of Kafka's SaslServerAuthenticator. Left out: the GSSAPI token without a handshake, from 0.9 clients.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from odradek.broker.security.sasl.mechanism import AuthenticationFailed
from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.broker_codecs import request_decoder, response_encoder
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.frames import read_request_header
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateResponse
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeResponse
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.security.sasl.mechanism import Mechanism, SaslServer


class SaslState(Enum):
    """The next message that a connection may send."""

    # The first frame: SaslHandshake or ApiVersions. Any other frame is taken for a Kerberos token, which is not supported.
    INITIAL_REQUEST = auto()
    # ApiVersions was refused for its version; the client may send it once more.
    HANDSHAKE_OR_VERSIONS_REQUEST = auto()
    # The client has got the versions, and sends SaslHandshake.
    HANDSHAKE_REQUEST = auto()
    # The mechanism is chosen; its tokens follow.
    AUTHENTICATE = auto()
    # All other requests.
    COMPLETE = auto()
    # The session has a lifetime, and the client reauthenticates.
    REAUTH_PROCESS_HANDSHAKE = auto()
    # The client chose another mechanism than the session's. The handshake succeeds, and the next frame fails.
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
    """A bug in the broker: no client can cause it."""


def step(state: SaslState, wanted: SaslState) -> SaslState:
    """Return ``wanted`` if it may follow ``state``. Raises IllegalTransition."""
    if wanted not in TRANSITIONS[state]:
        raise IllegalTransition(f"{state.name} is not followed by {wanted.name}")
    return wanted


# A client that reauthenticates more often than this is refused: each time costs the broker CPU.
_MIN_REAUTH_INTERVAL_MS: Final = 1_000
# From this version of SaslHandshake on, tokens come in SaslAuthenticate requests.
_WITH_AUTHENTICATE: Final = 1
_LENGTH_BYTES: Final = 4
_HINT: Final = "the listener needs SASL: check the client's security.protocol"
# Sent in place of a token, these get ILLEGAL_SASL_STATE. Kafka answers every API whose response has an error code.
_ANSWERED: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.METADATA})


@dataclass(frozen=True, slots=True)
class Respond:
    """Send ``chunks``, and go on. ``refusal`` is for the log: set if ``chunks`` tell the client that its token is refused."""

    chunks: list[Any] = field(repr=False)
    refusal: AuthenticationFailed | None = None


@dataclass(frozen=True, slots=True)
class AnswerApiVersions:
    """Answer ApiVersions as to any client, then call ``api_versions_answered`` with the result."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Send ``chunks``; from now on the connection acts as ``user``. ``by_token``: the client used a delegation token."""

    chunks: list[Any] = field(repr=False)
    user: str
    by_token: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Authentication failed: after the delay send ``chunks``, and close. ``cause`` and ``user`` are for the log.

    ``is_logged``: the failure is already in the log. ``at_once``: close without the delay. It is set for bare tokens (frames of
    their own) that Kafka does not count as failed authentications.
    """

    chunks: list[Any] = field(repr=False)
    cause: str
    user: str | None = None
    mechanism: str | None = None
    is_logged: bool = False
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close at once: the client broke the protocol."""

    cause: str


Outcome: TypeAlias = Respond | AnswerApiVersions | Authenticated | Refuse | Disconnect


def _state_refusal(api_key: ApiKey, version: int, correlation_id: int, frame: bytes, position: int) -> list[Any]:
    """Return the ILLEGAL_SASL_STATE response to a request sent in place of a token; empty for APIs outside ``_ANSWERED``."""
    if api_key not in _ANSWERED or not 0 <= version <= NEWEST_VERSION[api_key]:
        return []
    response = messages(api_key).response(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if api_key is ApiKey.METADATA:
        with suppress(MalformedMessage):
            named = request_decoder(api_key, version)(frame, position).topics or ()
            topic = messages(api_key).MetadataResponseTopic
            topics = [topic(name=each.name, topic_id=each.topic_id, error_code=ErrorCode.ILLEGAL_SASL_STATE) for each in named]
            response = response._replace(topics=topics)
    return response_encoder(api_key, version)(correlation_id, response)


class Authenticator:
    """The SASL state of one connection. ``mechanisms`` are the enabled ones by name, in the order clients see them."""

    __slots__ = (
        "_is_by_token",
        "_is_refusal_logged",
        "_mechanisms",
        "_reauthentication_began_ms",
        "_server",
        "_state",
        "_wants_requests",
        "expires_at_ms",
        "mechanism",
        "user",
    )

    def __init__(self, mechanisms: Mapping[str, Mechanism]) -> None:
        self._mechanisms = mechanisms
        self._state = SaslState.INITIAL_REQUEST
        # The running exchange, and whether its tokens come in SaslAuthenticate requests.
        self._server: SaslServer | None = None
        self._wants_requests = False
        # True if the failure of the exchange is in the log already.
        self._is_refusal_logged = False
        # The session's, once it exists.
        self.mechanism: str | None = None
        self.user: str | None = None
        self._is_by_token = False
        # The session's expiry (monotonic); None: never.
        self.expires_at_ms: float | None = None
        # The start of the last reauthentication (monotonic).
        self._reauthentication_began_ms: float | None = None

    @property
    def state(self) -> SaslState:
        """The next message that the client may send."""
        return self._state

    @property
    def is_reauthentication(self) -> bool:
        """Return whether this is a reauthentication: the session exists already."""
        return self.user is not None

    def receive(self, frame: bytes, wall_ms: int, monotonic_ms: float) -> Outcome:
        """Return the outcome of a received frame, in any state but COMPLETE."""
        outcome = self._received(frame, wall_ms, monotonic_ms)
        if isinstance(outcome, Refuse | Disconnect):
            self._go(SaslState.FAILED)
        return outcome

    def api_versions_answered(self, *, accepted: bool) -> None:
        """Move on after ApiVersions was answered. If its version was refused, the client may send it in another version."""
        if accepted:
            self._go(SaslState.HANDSHAKE_REQUEST)

    def begin_reauthentication(self, monotonic_ms: float) -> bool:
        """Start a reauthentication (KIP-368); False if the session has no lifetime, or the last one was less than a second ago.

        After True, pass the SaslHandshake to ``receive``.
        """
        last_ms = self._reauthentication_began_ms
        if self.expires_at_ms is None or (last_ms is not None and monotonic_ms - last_ms < _MIN_REAUTH_INTERVAL_MS):
            return False
        self._reauthentication_began_ms = monotonic_ms
        self._wants_requests = False
        self._go(SaslState.REAUTH_PROCESS_HANDSHAKE)
        return True

    def _received(self, frame: bytes, wall_ms: int, monotonic_ms: float) -> Outcome:
        state = self._state
        if state is SaslState.REAUTH_BAD_MECHANISM:
            return Refuse([], f"the session began with {self.mechanism} and cannot change its mechanism", self.user)
        if state is SaslState.AUTHENTICATE and not self._wants_requests:
            return self._take_bare_token(frame, wall_ms, monotonic_ms)
        try:
            key, version, correlation_id, _, position = read_request_header(frame)
            api_key = ApiKey(key)
        except (MalformedMessage, ValueError):
            if state is SaslState.INITIAL_REQUEST:
                return Disconnect("the first frame is not a Kafka request, and GSSAPI is not supported")
            return Disconnect("a frame during authentication is not a Kafka request")
        if state is SaslState.INITIAL_REQUEST:
            self._go(SaslState.HANDSHAKE_OR_VERSIONS_REQUEST)
        if api_key not in EXPECTED[state]:
            if api_key is ApiKey.API_VERSIONS and state is SaslState.HANDSHAKE_REQUEST:
                return Disconnect("the client sent API_VERSIONS twice before it authenticated")
            cause = f"{api_key.name} came before the client authenticated: {_HINT}"
            if state is not SaslState.AUTHENTICATE:
                return Disconnect(cause)
            chunks = _state_refusal(api_key, version, correlation_id, frame, position)
            return Refuse(chunks, cause, self.user, self.mechanism, self._is_refusal_logged)
        if api_key is ApiKey.API_VERSIONS:
            return AnswerApiVersions()
        return self._answer(api_key, version, correlation_id, frame, position, wall_ms, monotonic_ms)

    def _answer(
        self, api_key: ApiKey, version: int, correlation_id: int, frame: bytes, position: int, wall_ms: int, monotonic_ms: float
    ) -> Outcome:
        """Decode and answer a SaslHandshake or SaslAuthenticate that is allowed in this state."""
        if not 0 <= version <= NEWEST_VERSION[api_key]:
            return Disconnect(f"{api_key.name} version {version} is not served")
        try:
            request = request_decoder(api_key, version)(frame, position)
        except MalformedMessage as error:
            return Disconnect(error.reason)
        if api_key is ApiKey.SASL_HANDSHAKE:
            return self._shake_hands(request.mechanism, version, correlation_id)
        return self._take_token(request.auth_bytes, version, correlation_id, wall_ms, monotonic_ms)

    def _shake_hands(self, mechanism: str, version: int, correlation_id: int) -> Outcome:
        if version >= _WITH_AUTHENTICATE:
            self._wants_requests = True
        encode = response_encoder(ApiKey.SASL_HANDSHAKE, version)
        enabled = list(self._mechanisms)
        if mechanism not in self._mechanisms and self.is_reauthentication:
            return Disconnect(f"the session began with {self.mechanism} and cannot change its mechanism")
        if mechanism not in self._mechanisms:
            refusal = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled)
            return Refuse(encode(correlation_id, refusal), "the mechanism is not enabled", self.user, mechanism)
        if self.is_reauthentication and mechanism != self.mechanism:
            self._go(SaslState.REAUTH_BAD_MECHANISM)
        else:
            self.mechanism = mechanism
            self._server = self._mechanisms[mechanism].begin()
            self._go(SaslState.AUTHENTICATE)
        return Respond(encode(correlation_id, SaslHandshakeResponse(mechanisms=enabled)))

    def _take_token(self, token: bytes, version: int, correlation_id: int, wall_ms: int, monotonic_ms: float) -> Outcome:
        encode = response_encoder(ApiKey.SASL_AUTHENTICATE, version)
        try:
            answer, user = self._evaluate(token)
        except AuthenticationFailed as failure:
            message = failure.told or (
                f"Authentication failed during {'re-authentication' if self.is_reauthentication else 'authentication'}"
                f" due to invalid credentials with SASL mechanism {self.mechanism}"
            )
            refusal = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message)
            chunks = encode(correlation_id, refusal)
            return Refuse(chunks, failure.cause, failure.user or self.user, self.mechanism, self._is_refusal_logged)
        if user is None:
            return self._go_on(encode(correlation_id, SaslAuthenticateResponse(error_message="", auth_bytes=answer)))
        lifetime_ms = self._complete(user, wall_ms, monotonic_ms)
        response = SaslAuthenticateResponse(error_message="", auth_bytes=answer, session_lifetime_ms=lifetime_ms)
        return Authenticated(encode(correlation_id, response), user, self._is_by_token)

    def _take_bare_token(self, token: bytes, wall_ms: int, monotonic_ms: float) -> Outcome:
        try:
            answer, user = self._evaluate(token)
        except AuthenticationFailed as failure:
            user = failure.user or self.user
            return Refuse([], failure.cause, user, self.mechanism, self._is_refusal_logged, at_once=failure.told is None)
        chunks = [len(answer).to_bytes(_LENGTH_BYTES, "big") + answer]
        if user is None:
            return self._go_on(chunks)
        self._complete(user, wall_ms, monotonic_ms)
        return Authenticated(chunks, user, self._is_by_token)

    def _go_on(self, chunks: list[Any]) -> Respond:
        refusal = None if self._server is None else self._server.refusal
        self._is_refusal_logged = refusal is not None
        return Respond(chunks, refusal)

    def _evaluate(self, token: bytes) -> tuple[bytes, str | None]:
        """Return the answer to a token, and the user if the exchange is complete. Raises AuthenticationFailed."""
        server = self._server
        assert server is not None  # noqa: S101  set with the AUTHENTICATE state
        answer = server.evaluate(token)
        if not server.is_complete:
            return answer, None
        if self.user is not None and server.user != self.user:
            told = f"Cannot change principals during re-authentication from User.{self.user}: User.{server.user}"
            raise AuthenticationFailed("the new principal differs from the session's", told=told, user=server.user)
        return answer, server.user

    def _complete(self, user: str, wall_ms: int, monotonic_ms: float) -> int:
        """Begin or renew the session. Return its lifetime in milliseconds, 0 if it has none."""
        server, self._server = self._server, None
        assert server is not None and self.mechanism is not None  # noqa: S101, PT018  set with the AUTHENTICATE state
        self.user = user
        self._is_by_token = server.by_token
        limits = [max_ms] if (max_ms := self._mechanisms[self.mechanism].max_reauth_ms) > 0 else []
        if server.expires_ms is not None:
            limits.append(server.expires_ms - wall_ms)
        lifetime_ms = max(0, min(limits, default=0))
        self.expires_at_ms = monotonic_ms + lifetime_ms if limits else None
        self._go(SaslState.COMPLETE)
        return lifetime_ms

    def _go(self, state: SaslState) -> None:
        self._state = step(self._state, state)
