"""The SASL listeners of a server: the guards of new connections, and the counts of authentications.

A connection passes its requests to its dispatcher. On a SASL listener that is at first a guard, which stays as long as the
session can expire. Once a client has authenticated without an expiry, its dispatcher is dispatch itself, at no extra cost. The
guard's decisions are made by the ``Authenticator``. This module has the delay of a refusal, the expiry of a session, and the log
lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.broker.network.dispatch import CloseConnection
from odradek.broker.security.sasl.authenticator import Authenticated, Authenticator, Disconnect, Refuse, Respond, SaslState
from odradek.broker.security.sasl.listeners import SaslListener
from odradek.common.config.definitions import InvalidConfig
from odradek.common.config.listener_config import SaslConfig
from odradek.common.logging import log
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import MIN_FRAME_BYTES
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from odradek.broker.network.connection import Connection
    from odradek.broker.network.connection_registry import ConnectionRegistry, SaslCounts
    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.network.large_requests import Outcome, RequestTaker
    from odradek.broker.security.sasl.listeners import SaslServices
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.context import Session
    from odradek.common.logging import LineLimit
    from odradek.timing.clock import Clock
    from odradek.timing.timer import Timer

_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE).to_bytes(2, "big")
# A log line shows at most this much of a client's name.
_MOST_CHARACTERS: Final = 100


class SaslGuard:
    """The guard of one connection. Loop thread only."""

    __slots__ = (
        "_authenticator",
        "_clock",
        "_connection",
        "_counts",
        "_dispatcher",
        "_line_limit",
        "_listener",
        "_max_frame_bytes",
        "_timer",
    )

    def __init__(
        self,
        connection: Connection,
        dispatcher: RequestTaker,
        listener: SaslListener,
        counts: SaslCounts,
        *,
        max_frame_bytes: int,
        clock: Clock,
        timer: Timer,
        line_limit: LineLimit,
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._listener = listener
        self._counts = counts
        self._max_frame_bytes = max_frame_bytes
        self._clock = clock
        self._timer = timer
        self._line_limit = line_limit
        self._authenticator = Authenticator(listener.mechanisms)
        self._shut()

    def pipeline_depth(self, frame: bytes | memoryview) -> int:
        """Return how many requests may be unanswered, including ``frame``; 1 during authentication."""
        return self._dispatcher.pipeline_depth(frame) if self._is_open else 1

    def ensure_allowed(self, key: int, size_bytes: int) -> None:
        """Raise MalformedMessage if an authenticated client's frame is too large. Before that, the frame size limit applies."""
        if self._is_open:
            self._dispatcher.ensure_allowed(key, size_bytes)

    def dispatch(self, frame: bytes | memoryview, session: Session, arrived_ms: float) -> list[Any] | Reply[Outcome]:
        """Handle an authentication request, or pass on a request once the client is authenticated."""
        authenticator = self._authenticator
        if self._is_open:
            now_ms = self._clock.monotonic_ms()
            if frame[:2] != _HANDSHAKE or not authenticator.begin_reauthentication(now_ms):
                if authenticator.expires_at_ms is not None and now_ms > authenticator.expires_at_ms:
                    self._counts.expired += 1
                    raise MalformedMessage(f"the session of User:{_shown(authenticator.user)} has expired and was not renewed")
                return self._dispatcher.dispatch(frame, session, arrived_ms)
            self._shut()
        is_reauthentication = authenticator.is_reauthentication
        match authenticator.receive(bytes(frame), self._clock.now_ms(), self._clock.monotonic_ms()):
            case Respond(chunks, failure):
                if failure is not None:
                    self._log_refusal(Refuse([], failure.cause, failure.user, authenticator.mechanism), session)
                return chunks
            case Authenticated(chunks, user, by_token):
                self._start_session(session, user, by_token=by_token, is_reauthentication=is_reauthentication)
                return chunks
            case Refuse() as refusal:
                return self._refuse(refusal, session)
            case Disconnect(cause):
                raise MalformedMessage(cause)
        answer = self._dispatcher.dispatch(frame, session, arrived_ms)
        authenticator.api_versions_answered(accepted=_is_accepted(answer))
        return answer

    @property
    def _is_open(self) -> bool:
        return self._authenticator.state is SaslState.COMPLETE

    def _shut(self) -> None:
        """Accept authentication frames only. A token may be a frame of its own, so there is no minimum size."""
        self._connection.dispatch_by(self, 0, self._listener.max_receive_bytes, "sasl.server.max.receive.size")

    def _start_session(self, session: Session, user: str, *, by_token: bool, is_reauthentication: bool) -> None:
        """Start or renew the session. Requests then go to dispatch itself, unless the session can expire."""
        session.principal = f"User:{user}"
        session.token_authenticated = by_token
        if is_reauthentication:
            self._counts.succeeded_again += 1
        else:
            self._counts.succeeded += 1
        taker = self._dispatcher if self._authenticator.expires_at_ms is None else self
        self._connection.dispatch_by(taker, MIN_FRAME_BYTES, self._max_frame_bytes, "socket.request.max.bytes")

    def _refuse(self, refusal: Refuse, session: Session) -> Reply[Outcome]:
        """Return a Reply of the refusal, completed after the delay. The connection closes after it."""
        if not refusal.is_logged:
            self._log_refusal(refusal, session)
        if refusal.at_once:
            raise CloseConnection
        reply: Reply[Outcome] = Reply()

        def finish() -> None:
            reply.complete(refusal.chunks)
            self._connection.close()

        self._timer.call_after(self._listener.failed_delay_ms, finish)
        return reply

    def _log_refusal(self, refusal: Refuse, session: Session) -> None:
        is_reauthentication = self._authenticator.is_reauthentication
        if is_reauthentication:
            self._counts.failed_again += 1
        else:
            self._counts.failed += 1
        host, port = session.peer
        extra_fields = self._line_limit.admit((refusal.cause, host))
        if extra_fields is None:
            return
        log.warn(
            "re-authentication failed" if is_reauthentication else "authentication failed",
            peer=f"{host}:{port}",
            listener=session.listener_name,
            mechanism=_shown(refusal.mechanism),
            user=_shown(refusal.user),
            cause=refusal.cause,
            **extra_fields,
        )


def _is_accepted(answer: list[Any] | Reply[Outcome]) -> bool:
    """Return whether an ApiVersions answer has no error. Its code follows the size and the correlation id."""
    return not isinstance(answer, Reply) and b"".join(answer)[8:10] == bytes(2)


def _shown(name: str | None) -> str | None:
    """Return a client's name for the log: one line of limited length."""
    if name is None:
        return None
    shown = name[:_MOST_CHARACTERS]
    return shown if shown.isprintable() else ascii(shown)


class SaslListeners:
    """The SASL listeners ``names``, in upper case. Loop thread only."""

    def __init__(
        self,
        config: BrokerConfig,
        timer: Timer,
        connections: ConnectionRegistry,
        names: Iterable[str],
        services: SaslServices,
    ) -> None:
        """Build the listeners and load their keys. Raises InvalidConfig."""
        self._config = config
        self._timer = timer
        self._connections = connections
        self._services = services
        self._listeners: dict[str, SaslListener] = {}
        # The settings of each listener. It is built again only if they change.
        self._settings: dict[str, dict[str, str]] = {}
        for name in names:
            sasl_config = config.sasl_config(name)
            self._listeners[name] = listener = SaslListener(sasl_config, services)
            if listener.signing_keys is not None:
                from odradek.broker.security.sasl.bearer_configs import load_keys  # 12 ms

                load_keys(sasl_config, listener.signing_keys)
            self._settings[name] = sasl_config.settings()
            for key in sasl_config.without_effect(listener.mechanisms):
                log.warn(
                    "config without effect", reason=f"{key} has no effect: the mechanism is not among sasl.enabled.mechanisms"
                )

    def check(self, _values: Mapping[str, Any], texts: Mapping[str, str], _altered: Collection[str]) -> None:
        """Raise InvalidConfig if a listener could not be served with these configs."""
        for name, settings in self._settings.items():
            config = SaslConfig(name, texts)
            if config.settings() != settings:
                SaslListener(config, self._services)

    def reload(self) -> None:
        """Apply the current configs to new connections. Open sessions continue."""
        for name, settings in self._settings.items():
            config = self._config.sasl_config(name)
            if config.settings() == settings:
                continue
            try:
                self._listeners[name] = listener = SaslListener(config, self._services)
            except InvalidConfig as error:
                log.warn("cannot change SASL mechanisms: the old ones stay in use", listener=name, reason=str(error))
            else:
                self._settings[name] = config.settings()
                if listener.signing_keys is not None:
                    listener.signing_keys.refresh()
                log.info("SASL mechanisms changed", listener=name)

    def guard(self, connection: Connection, dispatcher: Dispatcher, listener_name: str) -> None:
        """Put a guard in front of a new connection if its listener uses SASL."""
        listener = self._listeners.get(listener_name)
        if listener is not None:
            SaslGuard(
                connection,
                dispatcher,
                listener,
                self._connections.sasl,
                max_frame_bytes=self._config["socket.request.max.bytes"],
                clock=self._timer.clock,
                timer=self._timer,
                line_limit=self._connections.line_limit,
            )
