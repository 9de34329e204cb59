"""The context of a request: it passes from a connection through dispatch to the handler.

``Served`` is a row of the table of handlers, as dispatch reads it.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from odradek.protocol.api_keys import ApiKey
from odradek.timing.reply import Reply

__all__ = [
    "ANONYMOUS",
    "CLOSE_CONNECTION",
    "NO_RESPONSE",
    "ForwardedSession",
    "OwnSession",
    "Reply",
    "RequestContext",
    "Session",
    "Signal",
]

# The principal of a client that has not authenticated, in the form that Kafka's ACLs name it.
ANONYMOUS: Final = "User:ANONYMOUS"


class Mutable(Protocol):
    """The connection of a session."""

    def mute(self, for_ms: float) -> None:
        """Begin no request for so long."""


class Releasable(Protocol):
    """Memory that a large response has (``large.response_memory``)."""

    def release(self) -> None:
        """The client has taken it, or is gone."""


class RequestCost:
    """What a request takes of its client's quotas: noted only where there are any (``broker.quotas``).

    ``worked_ms`` is how long the handler has worked when its answer had to wait, and None before.
    """

    __slots__ = ("began_ms", "is_counted", "is_exempt", "worked_ms")

    def __init__(self, began_ms: float, *, is_exempt: bool) -> None:
        self.began_ms = began_ms
        # Whether its time is nobody's: brokers' requests among themselves, and what is not answered.
        self.is_exempt = is_exempt
        self.worked_ms: float | None = None
        # Whether its time has been recorded.
        self.is_counted = False

    def waits(self, now_ms: float) -> None:
        """The handler is done; its answer is to come."""
        if self.worked_ms is None:
            self.worked_ms = now_ms - self.began_ms


class Session:
    """The client at the other end: one for each connection, or for each caller in process.

    ``peer`` is (host, port). The client's software is None until its ApiVersions request has named it (KIP-511).
    ``connection`` is None for callers in process, and when the connection is lost.
    """

    # Whether this process asks itself.
    is_own: ClassVar[bool] = False
    # Whether a broker asks for its client.
    is_forwarded: ClassVar[bool] = False

    __slots__ = (
        "client_software_name",
        "client_software_version",
        "connection",
        "held_response",
        "listener_name",
        "peer",
        "principal",
        "token_authenticated",
    )

    def __init__(self, listener_name: str, peer: tuple[str, int], principal: str = ANONYMOUS) -> None:
        self.listener_name = listener_name
        self.peer = peer
        self.principal = principal
        # Whether the client has shown a delegation token.
        self.token_authenticated = False
        self.client_software_name: str | None = None
        self.client_software_version: str | None = None
        self.connection: Mutable | None = None
        # A large response that the connection's client has not taken.
        self.held_response: Releasable | None = None


class OwnSession(Session):
    """Stands for this process where it asks itself: no authorizer is asked."""

    __slots__ = ()

    is_own: ClassVar[bool] = True


class ForwardedSession(Session):
    """Stands for the client of a broker that has forwarded a request."""

    __slots__ = ()

    is_forwarded: ClassVar[bool] = True


class RequestContext:
    """Where a request came from and how it is to be answered.

    ``size_bytes``, the request with its header, is set for gates only.
    """

    __slots__ = ("api_key", "client_id", "correlation_id", "cost", "session", "size_bytes", "version")

    size_bytes: int

    def __init__(
        self,
        api_key: ApiKey,
        version: int,
        correlation_id: int,
        client_id: str | None,
        session: Session,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.session = session
        self.cost: RequestCost | None = None

    @property
    def listener_name(self) -> str:
        """The listener that the client connected to."""
        return self.session.listener_name

    @property
    def peer(self) -> tuple[str, int]:
        """(host, port) of the client."""
        return self.session.peer


class Signal:
    """A marker a handler returns instead of a response."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# Produce with acks=0 is not answered; where it went wrong the connection is closed, which is all its client can notice.
NO_RESPONSE: Final = Signal("NO_RESPONSE")
CLOSE_CONNECTION: Final = Signal("CLOSE_CONNECTION")


# ``handle(services, context, request)``: the response, a Reply of it, NO_RESPONSE or CLOSE_CONNECTION (``common.context``).
Handler = Callable[[Any, Any, Any], Any]


class Served(NamedTuple):
    """An API in the versions served, both ends included.

    ``advertised_min`` is what ApiVersions says where that is lower than what is really served.

    ``pipeline_depth`` is how many requests of a connection may be unanswered once one of this API has begun, itself included.
    With 1 it begins when all before it are answered. With more it may begin behind requests whose Reply ``is_decided``.
    """

    min_version: int
    max_version: int
    advertised_min: int
    pipeline_depth: int = 1
