"""One connection of a ``NodeClient``: joins a ``ClientConnection`` to an asyncio transport."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from odradek.client.api import Api, ClientError, Disconnected
from odradek.client.connection import ClientConnection, ConnectionState, ReceivedResponse, SentRequest
from odradek.client.login import OAUTHBEARER, Login


class Session(asyncio.BufferedProtocol):
    """A connection with its callbacks. Loop thread only.

    ``on_ready`` is called when the versions are negotiated and the client has authenticated, if it must; again after each
    renewal of the SASL session. ``on_response`` is called with each response. ``on_writable`` is called when ``can_send`` may
    be true again. ``on_end`` is called once, with the reason, when the connection is over, whether it was ever ready or not.
    No callback is called after ``on_end``.
    """

    __slots__ = ("_connection", "_is_paused", "_login_of", "_on_end", "_on_ready", "_on_response", "_on_writable", "_transport")

    def __init__(
        self,
        connection: ClientConnection,
        *,
        on_ready: Callable[[], None],
        on_response: Callable[[ReceivedResponse[Any]], None],
        on_writable: Callable[[], None],
        on_end: Callable[[ClientError], None],
    ) -> None:
        self._connection = connection
        self._on_ready = on_ready
        self._on_response = on_response
        self._on_writable = on_writable
        self._on_end: Callable[[ClientError], None] | None = on_end
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._login_of: Callable[[], Login] | None = None

    @property
    def is_ready(self) -> bool:
        """Return whether requests may be sent."""
        return self._connection.state is ConnectionState.READY

    @property
    def can_send(self) -> bool:
        """Return whether a request may be sent now: the connection is ready, and the limit of requests in flight not reached."""
        return self._connection.can_send and not self._is_paused

    def send(self, api: Api[Any, Any], request: object) -> SentRequest[Any]:
        """Encode a request and pass it to the socket. Raises the errors of ``ClientConnection.send``."""
        sent = self._connection.send(api, request)
        self._write()
        return sent

    @property
    def login(self) -> Login | None:
        """Return the login that authenticates the client."""
        return self._connection.login

    def log_in_as(self, login_of: Callable[[], Login]) -> None:
        """Authenticate before anything else is sent. Call it before the connection is made."""
        self._login_of = login_of
        self._connection.login = login_of()

    @property
    def lifetime_ms(self) -> int:
        """Return how long the SASL session lasts; 0 if it has no end."""
        return self._connection.session_lifetime_ms

    def log_in_again(self) -> None:
        """Authenticate for the next session; nothing can be sent before ``on_ready``.

        A connection keeps its user. With OAUTHBEARER each session gets a new token.
        """
        login = self._connection.login
        if self._login_of is not None and login is not None and login.mechanism == OAUTHBEARER:
            self._connection.login = self._login_of()
        self._connection.log_in_again()
        self._write()

    def end(self, reason: ClientError) -> None:
        """Close the connection at once. Unwritten data is dropped."""
        self._connection.close()
        if self._transport is not None:
            self._transport.abort()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(reason)

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the negotiation."""
        self._transport = cast("asyncio.Transport", transport)
        if self._on_end is None:
            self._transport.abort()
            return
        self._connection.negotiate()
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  the connection knows how much room it needs
        """Return room for incoming bytes."""
        return self._connection.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the responses that are complete now."""
        self._connection.filled(nbytes)
        was_ready = self.is_ready
        try:
            while (received := self._connection.next_response()) is not None:
                self._on_response(received)
        except ClientError as error:
            self.end(error)
            return
        if self._on_end is None:
            return
        if not was_ready:
            # The answer may have led to another request.
            self._write()
            if self.is_ready:
                self._on_ready()
        self._on_writable()

    def pause_writing(self) -> None:
        """Stop sending: the socket's buffer is full."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Send again: the socket's buffer has room."""
        self._is_paused = False
        self._on_writable()

    def eof_received(self) -> bool:
        """Return False to close: the peer sends no more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session: the transport is closed."""
        self.end(Disconnected("the node closed the connection" if exc is None else f"the connection was lost: {exc}"))

    def _write(self) -> None:
        if self._transport is not None:
            self._transport.writelines(self._connection.data_to_send())
