"""The commands' connection to any broker that speaks Kafka's protocol, with its errors in plain words.

Requests and responses are the canonical messages (``protocol.messages``), in the versions of ``cli.apis``.
"""

from typing import Any

from odradek.cli.command_config import command_config
from odradek.cli.refusals import Refused, Unreachable
from odradek.client.api import Api, RequestT, ResponseT
from odradek.client.blocking import BlockingClient
from odradek.client.errors import (
    ClientError,
    ConnectFailed,
    InvalidFrame,
    InvalidRequest,
    LoginFailed,
    NegotiationFailed,
    ProtocolViolation,
    UnsupportedVersion,
)

_CLIENT_ID = "odradek-cli"
_TIMEOUT_S = 10.0


class Connection:
    """One broker. Raises Unreachable where a request has no response, Refused where the broker refuses to tell its versions."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        try:
            self._client = BlockingClient(host, port, _CLIENT_ID, _TIMEOUT_S, *command_config())
        except ConnectFailed as failure:
            raise Unreachable(f"no broker answers at {self._address}: {failure.reason}") from failure
        except LoginFailed as failure:
            raise Unreachable(f"the broker at {self._address} does not let you in: {failure.reason}") from failure
        except NegotiationFailed as failure:
            raise Refused(self._address, failure.code) from failure
        except ClientError as failure:
            raise self._unreachable("API_VERSIONS", failure) from failure

    def close(self) -> None:
        """Close it."""
        self._client.close()

    def serves(self, api: Api[Any, Any]) -> bool:
        """Whether the broker has the API in a version of its range."""
        return self._client.serves(api)

    def call(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """One request, one response."""
        try:
            return self._client.call(api, request)
        except UnsupportedVersion as failure:
            lowest, highest = api.versions
            raise Unreachable(
                f"the broker at {self._address} has no {api.key.name} in versions {lowest} to {highest}"
            ) from failure
        except ClientError as failure:
            raise self._unreachable(api.key.name, failure) from failure

    def _unreachable(self, name: str, failure: ClientError) -> Unreachable:
        match failure:
            case InvalidFrame():
                reason = f"what answers at {self._address} is not a Kafka broker"
            case ProtocolViolation():
                reason = f"the answer of {self._address} to {name} cannot be read: {failure.reason}"
            case InvalidRequest():
                reason = f"{name} cannot say that: {failure.reason}"
            case _:
                reason = f"the broker at {self._address} did not answer {name}: {failure.reason}"
        return Unreachable(reason)
