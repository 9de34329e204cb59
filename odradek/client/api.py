"""An API for callers: its key, its versions, and the classes of its messages.

This module also has the errors between a client and a node. An error code within a response is not among them: the caller
reads it, and may raise it as ``RequestRefused``.
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
    """An API in the versions from ``lowest`` to ``highest``; by default in all known versions.

    Requests use the newest version that the node serves, too. A caller narrows the range if versions differ in meaning: a
    field that it needs, or topics named by id.
    """

    __slots__ = ("key", "versions")

    def __init__(self, key: ApiKey, lowest: int = 0, highest: int | None = None) -> None:
        self.key = key
        self.versions = VersionRange(max(lowest, OLDEST_VERSION.get(key, 0)), NEWEST_VERSION[key] if highest is None else highest)

    def __repr__(self) -> str:
        return f"{self.key.name} v{self.versions.lowest}-{self.versions.highest}"

    def common_version(self, served: VersionRange) -> int | None:
        """Return the newest version within both ranges; None if there is none."""
        version = min(self.versions.highest, served.highest)
        return version if version >= max(self.versions.lowest, served.lowest) else None


class ClientError(Exception):
    """A request that has no response; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestRefused(ClientError):
    """A response with the error ``code`` for ``subject``, and the node's ``message``, if it has any."""

    def __init__(self, subject: str, code: int, message: str | None = None) -> None:
        super().__init__(f"{subject}: {message or f'error code {code}'}")
        self.subject = subject
        self.code = code
        self.message = message


class ConnectFailed(ClientError):
    """No connection could be made."""


class Disconnected(ClientError):
    """The connection ended while the request was open. The node may have carried it out."""


class RequestTimedOut(ClientError):
    """No response came in time. The node may have carried the request out."""


class TooManyRequests(ClientError):
    """Too many requests are open, or wait to be sent."""


class UnsupportedVersion(ClientError):
    """The node and the caller have no common version of the API, or the version cannot express the request.

    ``served`` is None if the node does not have the API.
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
    """SASL failed: the node refuses the client, with its error ``code``, or cannot prove that it knows the password."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.code = code


class ProtocolViolation(ClientError):
    """The peer broke the protocol; the connection cannot go on."""


class InvalidFrame(ProtocolViolation):
    """A length that no response can have: most likely the peer is no Kafka node."""


class UnexpectedResponse(ProtocolViolation):
    """A response without a request, or out of order."""


class UnreadableResponse(ProtocolViolation):
    """A response that is not in the form of its API and version."""
