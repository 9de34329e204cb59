"""Health check of a broker: ``python -m odradek.cli.health [HOST:PORT] [--command-config FILE]``.

A container's health check runs this every few seconds beside the broker, so it uses a plain socket and imports next to
nothing. It sends ApiVersions version 0, which every broker answers at any time, even before SASL, and reads the response:

    request   size int32 | api_key int16 = 18 | api_version int16 = 0 | correlation_id int32 | client_id nullable string
    response  size int32 | correlation_id int32 | error_code int16 | ...

If the connection breaks or the answer is wrong, the check repeats the request by TLS and accepts any certificate. A file in
the directory for temporary files remembers that TLS worked, because the broker logs each client that speaks no TLS. For a
broker that requires client certificates, use the file that Kafka's commands take.

The exit status is 0 if the error code is 0; otherwise it is 1, and stderr has a line.
"""

import contextlib
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

API_VERSIONS = 18
CORRELATION_ID = 1
CLIENT_ID = b"odradek-health"
DEFAULT_ADDRESS = "127.0.0.1:9092"
TIMEOUT_S = 3.0


class WrongAnswer(OSError):
    """The broker was reached, but gave no answer or a wrong one."""


def check(host: str, port: int, timeout_s: float = TIMEOUT_S, tls: "ssl.SSLContext | None" = None) -> None:
    """Make one ApiVersions round trip. Raises OSError if there is no response, or a wrong one."""
    body = struct.pack(">hhih", API_VERSIONS, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, port), timeout_s))
        try:
            if tls is not None:
                connection = stack.enter_context(tls.wrap_socket(connection, server_hostname=host))
            connection.sendall(struct.pack(">i", len(body)) + body)
            answer = stack.enter_context(connection.makefile("rb")).read(10)
        except TimeoutError:
            raise
        except OSError as error:
            raise WrongAnswer(error) from error
    if len(answer) < 10:
        raise WrongAnswer("the broker closed the connection without a complete response")
    _, correlation_id, error_code = struct.unpack(">iih", answer)
    if (correlation_id, error_code) != (CORRELATION_ID, 0):
        raise WrongAnswer(f"unexpected response: correlation id {correlation_id}, error code {error_code}")


def check_either(host: str, port: int) -> None:
    """Check with or without TLS. The way that worked last is tried first. Raises OSError."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    mark = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"odradek-health-{user}-{port}")  # noqa: PTH118, S108
    was_tls = os.path.lexists(mark)
    ways = (True, False) if was_tls else (False, True)
    failures = []
    for by_tls in ways:
        try:
            check(host, port, tls=_any_certificate() if by_tls else None)
        except WrongAnswer as failure:
            failures.append(failure)
        else:
            _remember(mark, by_tls=by_tls, was_tls=was_tls)
            return
    # The TLS failure says more, unless the broker does not speak TLS.
    raise failures[0] if was_tls else failures[-1]


def _any_certificate() -> "ssl.SSLContext":
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The request and its answer hold nothing secret.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _remember(mark: str, *, by_tls: bool, was_tls: bool) -> None:
    with contextlib.suppress(OSError):
        if by_tls and not was_tls:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        elif was_tls and not by_tls:
            os.unlink(mark)  # noqa: PTH108  pathlib is not imported for it


def _check_as_told(host: str, port: int, path: str) -> None:
    """Check with the TLS settings of a ``--command-config`` file. Raises OSError."""
    from pathlib import Path

    from odradek.cli.connection_settings import CannotSpeak, read_command_config

    try:
        tls = read_command_config(Path(path)).tls
    except CannotSpeak as error:
        raise OSError(error.message) from error
    check(host, port, tls=tls)


def main(arguments: list[str]) -> int:
    """Check the given address, or the default one. Return the exit status."""
    rest = list(arguments)
    path = None
    if "--command-config" in rest:
        at = rest.index("--command-config")
        if at + 1 == len(rest):
            print("unhealthy: --command-config needs a file", file=sys.stderr)
            return 1
        path = rest[at + 1]
        del rest[at : at + 2]
    try:
        host, _, port = (rest[0] if rest else DEFAULT_ADDRESS).rpartition(":")
        host = host.strip("[]")
        if path is None:
            check_either(host, int(port))
        else:
            _check_as_told(host, int(port), path)
    except (OSError, ValueError) as error:
        print(f"unhealthy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
