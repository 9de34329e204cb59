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

# The principal of an unauthenticated client, as Kafka's ACLs name it.
ANONYMOUS: Final = "User:ANONYMOUS"


class Mutable(Protocol):
    """The connection of a session."""

    def mute(self, for_ms: float) -> None:
        """Begin no request for this time."""


class Releasable(Protocol):
    """The memory of a large response (``broker.large``)."""

    def release(self) -> None:
        """Release the memory: the client has taken the response, or is gone."""


class RequestCost:
    """The cost of a request, charged to its client's quotas. None exists where there are no quotas (``broker.quotas``).

    ``worked_ms`` is the time that the handler worked before its answer had to wait; None until then.
    """

    __slots__ = ("began_ms", "is_counted", "is_exempt", "worked_ms")

    def __init__(self, began_ms: float, *, is_exempt: bool) -> None:
        self.began_ms = began_ms
        # True if its time is charged to nobody: requests between brokers, and requests that are not answered.
        self.is_exempt = is_exempt
        self.worked_ms: float | None = None
        # True if its time has been recorded.
        self.is_counted = False

    def waits(self, now_ms: float) -> None:
        """Note that the handler is done, and its answer has to wait."""
        if self.worked_ms is None:
            self.worked_ms = now_ms - self.began_ms


class Session:
    """A client's session: one for each connection, or for each caller in process.

    ``peer`` is (host, port). ``client_id`` is that of the first request. The client's software is None until its ApiVersions
    request has named it (KIP-511).
    ``connection`` is None for callers in process, and when the connection is lost.
    """

    # True if the client is this process.
    is_own: ClassVar[bool] = False
    # True if a broker forwards requests of its client.
    is_forwarded: ClassVar[bool] = False

    __slots__ = (
        "client_id",
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
        # True if the client has authenticated by a delegation token.
        self.token_authenticated = False
        self.client_id: str | None = None
        self.client_software_name: str | None = None
        self.client_software_version: str | None = None
        self.connection: Mutable | None = None
        # A large response that the client has not taken yet.
        self.held_response: Releasable | None = None


class OwnSession(Session):
    """The session of this process's own requests. The authorizer is not asked."""

    __slots__ = ()

    is_own: ClassVar[bool] = True


class ForwardedSession(Session):
    """The session of a client whose request was forwarded by a broker."""

    __slots__ = ()

    is_forwarded: ClassVar[bool] = True


class RequestContext:
    """The origin of a request, and how to answer it.

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
        """Return the listener that the client connected to."""
        return self.session.listener_name

    @property
    def peer(self) -> tuple[str, int]:
        """Return (host, port) of the client."""
        return self.session.peer


class Signal:
    """A marker that a handler returns instead of a response."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# Produce with acks=0 is not answered. If it fails, the connection is closed: its client can notice nothing else.
NO_RESPONSE: Final = Signal("NO_RESPONSE")
CLOSE_CONNECTION: Final = Signal("CLOSE_CONNECTION")


# ``handle(services, context, request)`` returns the response, a Reply of it, NO_RESPONSE or CLOSE_CONNECTION.
Handler = Callable[[Any, Any, Any], Any]


class Served(NamedTuple):
    """An API in the versions served, both ends included.

    ``advertised_min`` is the minimum in ApiVersions, if it is lower than the served one. ``pipeline_depth`` is how many
    requests of a connection may be unanswered once one of this API has begun, itself included. With 1, a request begins when
    all before it are answered. With more, it may begin behind requests whose Reply ``is_decided``.
    """

    min_version: int
    max_version: int
    advertised_min: int
    pipeline_depth: int = 1
