"""An API as a caller speaks it: its key, its versions, and the classes of its messages.

And what can go wrong between a client and a node. An error code within a response is none of that: the caller reads it.
"""

from typing import Generic, NamedTuple, TypeVar

from odradek.protocol.api_keys import NEWEST_VERSION, OLDEST_VERSION, ApiKey

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class VersionRange(NamedTuple):
    """Versions from ``lowest`` to ``highest``, both included."""

    lowest: int
    highest: int


class Api(Generic[RequestT, ResponseT]):
    """An API in the versions from ``lowest`` to ``highest``; by default in all that are known.

    The newest version that the peer serves too is sent. A caller narrows the range where versions differ in what they mean:
    a field that it needs, topics named by id.
    """

    __slots__ = ("key", "versions")

    def __init__(self, key: ApiKey, lowest: int = 0, highest: int | None = None) -> None:
        self.key = key
        self.versions = VersionRange(max(lowest, OLDEST_VERSION.get(key, 0)), NEWEST_VERSION[key] if highest is None else highest)

    def __repr__(self) -> str:
        return f"{self.key.name} v{self.versions.lowest}-{self.versions.highest}"

    def common_version(self, served: VersionRange) -> int | None:
        """The newest version within both ranges; None where there is none."""
        version = min(self.versions.highest, served.highest)
        return version if version >= max(self.versions.lowest, served.lowest) else None


class ClientError(Exception):
    """A request that has no response; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ConnectFailed(ClientError):
    """No connection could be made."""


class Disconnected(ClientError):
    """The connection ended while the request was open. Whether the node has carried it out is unknown."""


class RequestTimedOut(ClientError):
    """No response came in time. Whether the node has carried the request out is unknown."""


class TooManyRequests(ClientError):
    """Too many requests are open, or wait to be sent."""


class UnsupportedVersion(ClientError):
    """The node serves no version of the API that the caller speaks, or the version cannot say what the request says.

    ``served`` is None where the node does not have the API.
    """

    def __init__(self, reason: str, api_key: ApiKey, served: VersionRange | None) -> None:
        super().__init__(reason)
        self.api_key = api_key
        self.served = served


class InvalidRequest(ClientError):
    """A value does not fit into its field; nothing was sent."""


class NegotiationFailed(ClientError):
    """The node answered ApiVersions with the error ``code``."""

    def __init__(self, code: int) -> None:
        super().__init__(f"ApiVersions was answered with error code {code}")
        self.code = code


class LoginFailed(ClientError):
    """SASL failed: the node does not let the client in, with its error ``code``, or does not know the password itself."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class ProtocolViolation(ClientError):
    """The peer sent what no node of Kafka sends; the connection cannot go on."""


class InvalidFrame(ProtocolViolation):
    """A length that no response has: most likely the peer is no Kafka node."""


class UnexpectedResponse(ProtocolViolation):
    """A response to nothing that was asked, or out of order."""


class UnreadableResponse(ProtocolViolation):
    """A response that is not in the form of its API and version."""
