"""The protocol between ``odradek cluster status``, ``kill`` and ``start`` and the command that supervises the cluster.

A Unix socket in the cluster's directory: one line of JSON each way.

    {"do": "status"}            {"nodes": [{"node": 1, "role": "broker", "address": ..., "pid": ..., "state": ...}, ...]}
    {"do": "kill", "node": 2}   {"done": "broker 2 ..."} or {"refused": "..."}
    {"do": "start", "node": 2}  the same, when the broker is ready

The path of a socket is limited to about a hundred bytes. So both ends change into the directory and use a relative path.
"""

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET_NAME = "cluster.sock"
MAX_LINE_BYTES = 4_096
# A starting broker may have much to recover.
_TIMEOUT_S = 300.0


class NoCluster(OSError):
    """No cluster runs on the directory."""


def listen(directory: Path) -> socket.socket:
    """Return a listening socket in the directory. Raises FileExistsError if a cluster runs there."""
    if is_served(directory):
        raise FileExistsError(f"a cluster is already running on {directory}")
    listening = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(directory):
        Path(SOCKET_NAME).unlink(missing_ok=True)
        listening.bind(SOCKET_NAME)
    listening.listen()
    listening.setblocking(False)
    return listening


def is_served(directory: Path) -> bool:
    """Return whether a cluster runs on the directory."""
    try:
        _connect(directory).close()
    except NoCluster:
        return False
    return True


def ask(directory: Path, request: Mapping[str, object]) -> dict[str, Any]:
    """Return the answer of the cluster that runs on the directory. Raises NoCluster, also if it ends meanwhile."""
    with _connect(directory) as connection, connection.makefile("rb") as answers:
        try:
            connection.sendall(encode(request))
            line = answers.readline()
        except OSError as error:
            reason = f"in {_TIMEOUT_S:g} s: see its logs" if isinstance(error, TimeoutError) else f"({error})"
            raise NoCluster(f"the cluster on {directory} did not answer {reason}") from error
    answer = decode(line)
    if answer is None:
        raise NoCluster(f"the cluster on {directory} ended before it answered")
    return answer


def encode(message: Mapping[str, object]) -> bytes:
    """Return the message as a line."""
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line; None if it is malformed."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _connect(directory: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_TIMEOUT_S)
    try:
        with contextlib.chdir(directory):
            connection.connect(SOCKET_NAME)
    except OSError as error:
        connection.close()
        raise NoCluster(f"no cluster is running on {directory}") from error
    return connection
