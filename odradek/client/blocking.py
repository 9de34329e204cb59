"""A client over a blocking socket, one request at a time: for the command line."""

import socket
from typing import TYPE_CHECKING, Any

from odradek.client.api import Api, ConnectFailed, Disconnected, RequestT, ResponseT
from odradek.client.connection import ClientConnection, ConnectionState
from odradek.client.login import Login

if TYPE_CHECKING:
    import ssl


class BlockingClient:
    """A connection to one node. Its versions are negotiated when it is made. ``timeout_s`` limits each wait on the socket.

    With a ``tls`` context it uses TLS, with a ``login`` it authenticates. Raises ConnectFailed, LoginFailed, and the errors of
    ``call``.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        timeout_s: float,
        tls: "ssl.SSLContext | None" = None,
        login: Login | None = None,
    ) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except OSError as failure:
            raise ConnectFailed(_reason(failure)) from failure
        self._connection = ClientConnection(client_id, login=login)
        try:
            self._make_ready()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        self._connection.close()
        self._socket.close()

    def serves(self, api: Api[Any, Any]) -> bool:
        """Return whether the node serves the API in a version of its range."""
        served = self._connection.served.get(api.key)
        return served is not None and api.common_version(served) is not None

    def call(self, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Send a request and wait for its response. Do not use it for a Produce with acks 0, which has no response.

        Raises UnsupportedVersion and InvalidRequest, after which the client can go on; Disconnected and ProtocolViolation,
        after which it cannot.
        """
        self._connection.send(api, request)
        self._write()
        while (received := self._connection.next_response()) is None:
            self._read()
        response: ResponseT = received.response
        return response

    def _make_ready(self) -> None:
        self._connection.negotiate()
        while self._connection.state is not ConnectionState.READY:
            self._write()
            self._read()
            self._connection.next_response()

    def _write(self) -> None:
        try:
            self._socket.sendall(b"".join(self._connection.data_to_send()))
        except OSError as failure:
            raise Disconnected(_reason(failure)) from failure

    def _read(self) -> None:
        try:
            count = self._socket.recv_into(self._connection.writable())
        except OSError as failure:
            raise Disconnected(_reason(failure)) from failure
        if not count:
            raise Disconnected("the node closed the connection")
        self._connection.filled(count)


def _reason(failure: OSError) -> str:
    return failure.strerror or str(failure) or type(failure).__name__
