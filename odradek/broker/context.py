"""What passes between a connection, dispatch and the handlers besides the messages themselves."""

from collections.abc import Callable
from typing import Any, Final

from odradek.protocol.api_keys import ApiKey


class RequestContext:
    """Where a request came from and how it is to be answered. ``peer`` is (host, port)."""

    __slots__ = ("api_key", "client_id", "correlation_id", "listener_name", "peer", "version")

    def __init__(
        self,
        api_key: ApiKey,
        version: int,
        correlation_id: int,
        client_id: str | None,
        listener_name: str,
        peer: tuple[str, int],
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.listener_name = listener_name
        self.peer = peer


class Reply:
    """A response that is not there yet. Completed once; who waits for it is called at that moment, on the loop thread."""

    __slots__ = ("_response", "_when_done", "done")

    def __init__(self) -> None:
        self.done = False
        self._response: Any = None
        self._when_done: Callable[[Any], None] | None = None

    def complete(self, response: Any) -> None:
        """Deliver the response; a second one is a mistake."""
        if self.done:
            raise RuntimeError("this reply was completed before")
        self.done = True
        self._response = response
        if self._when_done is not None:
            self._when_done(response)

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Call back with the response, at once if it is there."""
        if self.done:
            callback(self._response)
        else:
            self._when_done = callback


class _Signal:
    """A marker a handler returns instead of a response."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# Produce with acks=0 is not answered; where it went wrong the connection is closed, which is all its client can notice.
NO_RESPONSE: Final = _Signal("NO_RESPONSE")
CLOSE_CONNECTION: Final = _Signal("CLOSE_CONNECTION")
