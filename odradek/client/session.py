"""One connection of a ``NodeClient`` while it lasts: joins a ``ClientConnection`` to an asyncio transport."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from odradek.client.api import Api, ClientError, Disconnected
from odradek.client.connection import ClientConnection, ConnectionState, Received, Sent
from odradek.client.login import OAUTHBEARER, Login


class Session(asyncio.BufferedProtocol):
    """Everything here happens on the loop thread.

    ``on_ready`` is called when the versions are negotiated and the client has authenticated, where it has to; again each time
    that its session goes on; ``on_response`` with each response; ``on_writable`` when
    something may be sent again that ``can_send`` has refused; ``on_end`` once, with the reason, when the connection is over,
    whether it was ready by then or not. None of them is called after ``on_end``.
    """

    __slots__ = ("_connection", "_is_paused", "_login_of", "_on_end", "_on_ready", "_on_response", "_on_writable", "_transport")

    def __init__(
        self,
        connection: ClientConnection,
        *,
        on_ready: Callable[[], None],
        on_response: Callable[[Received[Any]], None],
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

    def send(self, api: Api[Any, Any], request: object) -> Sent[Any]:
        """Encode a request and hand it to the socket. Raises what ``ClientConnection.send`` raises."""
        sent = self._connection.send(api, request)
        self._write()
        return sent

    @property
    def login(self) -> Login | None:
        """Who authenticates."""
        return self._connection.login

    def log_in_as(self, login_of: Callable[[], Login]) -> None:
        """Authenticate before anything else is asked. For a connection that is not made yet."""
        self._login_of = login_of
        self._connection.login = login_of()

    @property
    def lifetime_ms(self) -> int:
        """How long a session lasts that the client has authenticated for; 0: for ever."""
        return self._connection.session_lifetime_ms

    def log_in_again(self) -> None:
        """Authenticate for the next session; nothing can be sent before ``on_ready``.

        Who logs in stays the same for a connection, but a token is another one each time.
        """
        login = self._connection.login
        if self._login_of is not None and login is not None and login.mechanism == OAUTHBEARER:
            self._connection.login = self._login_of()
        self._connection.log_in_again()
        self._write()

    def end(self, reason: ClientError) -> None:
        """Close the connection at once: what is not written yet is dropped."""
        self._connection.close()
        if self._transport is not None:
            self._transport.abort()
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(reason)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the negotiation."""
        self._transport = cast("asyncio.Transport", transport)
        if self._on_end is None:
            self._transport.abort()
            return
        self._connection.negotiate()
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  the responses say how much they want
        """Room for what comes."""
        return self._connection.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the responses that are whole now."""
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
            # The answer may have led to another question.
            self._write()
            if self.is_ready:
                self._on_ready()
        self._on_writable()

    def pause_writing(self) -> None:
        """The socket does not take more for now."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self._is_paused = False
        self._on_writable()

    def eof_received(self) -> bool:
        """The peer sends no more: close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        self.end(Disconnected("the node closed the connection" if exc is None else f"the connection was lost: {exc}"))

    def _write(self) -> None:
        if self._transport is not None:
            self._transport.writelines(self._connection.data_to_send())
