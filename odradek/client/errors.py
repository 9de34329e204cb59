"""What can go wrong between a client and a node. An error code within a response is none of these: the caller reads it."""

from odradek.client.api import VersionRange
from odradek.protocol.api_keys import ApiKey


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
    """As many requests are open, or wait to be sent, as are allowed."""


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
