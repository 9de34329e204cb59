"""What passes between a connection, dispatch and the handlers besides the messages themselves."""

from typing import Final

from odradek.protocol.api_keys import ApiKey
from odradek.timing.reply import Reply

__all__ = ["CLOSE_CONNECTION", "NO_RESPONSE", "Reply", "RequestContext"]


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
