"""Asks a broker whether it can answer: ``python -m odradek.cli.health [HOST:PORT]``.

A container's health check runs this every few seconds beside the broker, so it uses a plain socket and imports next to nothing.
It sends ApiVersions version 0, which every broker answers at any time, and reads the response:

    request   size int32 | api_key int16 = 18 | api_version int16 = 0 | correlation_id int32 | client_id nullable string
    response  size int32 | correlation_id int32 | error_code int16 | ...

The exit status is 0 if the error code is 0; otherwise it is 1, and stderr has a line.
"""

import socket
import struct
import sys

API_VERSIONS = 18
CORRELATION_ID = 1
CLIENT_ID = b"odradek-health"
DEFAULT_ADDRESS = "127.0.0.1:9092"
TIMEOUT_S = 3.0


def check(host: str, port: int, timeout_s: float = TIMEOUT_S) -> None:
    """Make one ApiVersions round trip. Raises OSError if there is no response, or a wrong one."""
    body = struct.pack(">hhih", API_VERSIONS, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body)
        with connection.makefile("rb") as answers:
            answer = answers.read(10)
    if len(answer) < 10:
        message = "the connection was closed before an answer came"
        raise OSError(message)
    _, correlation_id, error_code = struct.unpack(">iih", answer)
    if (correlation_id, error_code) != (CORRELATION_ID, 0):
        message = f"a wrong answer: correlation id {correlation_id}, error code {error_code}"
        raise OSError(message)


def main(arguments: list[str]) -> int:
    """Check the given address, or the default one; the exit status."""
    host, _, port = (arguments[0] if arguments else DEFAULT_ADDRESS).rpartition(":")
    try:
        check(host.strip("[]"), int(port))
    except (OSError, ValueError) as error:
        print(f"unhealthy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
