"""One broker for all workers of pytest-xdist. The controller runs it; each worker has views of it with names of its own.

A view sends its caller's request, pickled, over a connection of ``multiprocessing`` (a socket of 127.0.0.1, and a key that only
the workers get). Each thread has its own connection:

    (namespace, path, arguments, keyword arguments)     arguments are None to look at an attribute
    (kind, value)                                       kind is one of _VALUE, _METHOD, _PART, _ERROR

Calls that would end or reset the broker for other workers are refused.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from operator import attrgetter
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from odradek.testing.broker_thread import ThreadedClock
from odradek.testing.in_process import LogLine

if TYPE_CHECKING:
    from odradek.testing.threaded import ThreadedBroker

__tracebackhide__ = True

_VALUE, _METHOD, _PART, _ERROR = range(4)
_REFUSED = frozenset({"start", "stop", "kill", "close", "restore", "snapshot", "faults", "timeline", "another_timeline"})


class SharedBroker:
    """A view of a broker in another process. It has what ``ThreadedBroker`` has, except for calls that would disturb others."""

    def __init__(self, address: tuple[str, int], key: bytes, namespace: str, path: str = "") -> None:
        self._place = address, key
        self._namespace = namespace
        self._path = path
        self._local = threading.local()

    def topic(self, name: str, new: object = None) -> str:
        """See ``ThreadedBroker``."""
        found: str = self._ask("topic", (name, new), {})[1]
        return found

    def group(self, name: str) -> str:
        """See ``ThreadedBroker``."""
        return name + self._namespace

    def transactional_id(self, name: str) -> str:
        """See ``ThreadedBroker``."""
        return name + self._namespace

    def in_namespace(self, namespace: str) -> SharedBroker:
        """Return another view of the same broker."""
        return SharedBroker(*self._place, namespace)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        path = f"{self._path}.{name}" if self._path else name
        kind, value = self._ask(path, None, {})
        if kind == _PART:
            return SharedBroker(*self._place, self._namespace, path)
        if kind == _METHOD:
            return lambda *arguments, **named: self._ask(path, arguments, named)[1]
        return value

    def _ask(self, path: str, arguments: tuple[object, ...] | None, named: dict[str, object]) -> tuple[int, Any]:
        if path in _REFUSED:
            raise RuntimeError(f"all workers share this broker, so {path} cannot be used: make a broker for this test")
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            address, key = self._place
            connection = self._local.connection = Client(address, authkey=key)
        try:
            connection.send((self._namespace, path, arguments, named))
            kind, value = connection.recv()
        except BaseException:
            # The answer to an interrupted request must not be taken for the next one's.
            self._local.connection = None
            connection.close()
            raise
        if kind == _ERROR:
            raise value
        return kind, value


class BrokerSharing:
    """Serves views of ``broker`` until ``close``. ``worker_input`` has the connection data for a worker."""

    def __init__(self, broker: ThreadedBroker) -> None:
        self._broker = broker
        self._key = token_bytes(32)
        self._listener = Listener(("127.0.0.1", 0), authkey=self._key)
        self._is_closed = False
        self._thread = threading.Thread(target=self._accept, name="odradek shared broker", daemon=True)
        self._thread.start()

    @property
    def worker_input(self) -> tuple[tuple[str, int], str]:
        """Return address and key, the key in hex."""
        host, port = self._listener.address
        return (str(host), int(port)), self._key.hex()

    def close(self) -> None:
        """Take no more connections."""
        self._is_closed = True
        # The thread may be waiting for a connection.
        socket.create_connection(self.worker_input[0]).close()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            # The peer has no key, or it is ``close``.
            with suppress(AuthenticationError, EOFError, ConnectionError):
                connection = self._listener.accept()
                threading.Thread(target=partial(self._serve, connection), name="odradek worker", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                namespace, path, arguments, named = connection.recv()
                try:
                    answer = self._answer(namespace, path, arguments, named)
                except Exception as error:  # noqa: BLE001  raised in the worker
                    answer = _ERROR, error
                _send(connection, answer)

    def _answer(
        self, namespace: str, path: str, arguments: tuple[object, ...] | None, named: dict[str, object]
    ) -> tuple[int, object]:
        found = attrgetter(path)(self._broker.in_namespace(namespace))
        if path == "log":
            # An exception may not be picklable.
            return _VALUE, [LogLine(line.level, str(line), {}, line.at_ms) for line in found]
        if arguments is not None:
            return _VALUE, found(*arguments, **named)
        if isinstance(found, ThreadedClock):
            return _PART, None
        return (_METHOD, None) if callable(found) else (_VALUE, found)


def _send(connection: Connection, answer: tuple[int, object]) -> None:
    try:
        connection.send(answer)
    except Exception as error:  # noqa: BLE001  the worker gets an error instead
        connection.send((_ERROR, RuntimeError(f"{answer[1]!r} cannot be sent to a worker: {error}")))
