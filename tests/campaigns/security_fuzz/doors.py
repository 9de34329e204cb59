"""A broker with a listener of each security protocol, and clients at work on two of them while others are fuzzed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from benchmarks.ports import free_ports
from odradek.protocol.api_keys import ApiKey
from tests.broker.security.sasl.odd_frames import LINES, MECHANISMS, PASSWORD
from tests.broker_process import BrokerProcess
from tests.campaigns.fuzz.socket_fuzz import WorkingClient
from tests.raw_client import RawClient
from tests.tls import Certificates

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Doors:
    """A running broker, the port of each protocol's listener, and the certificates that it trusts."""

    def __init__(self, broker: BrokerProcess, ports: dict[str, int], certificates: Certificates) -> None:
        self.broker = broker
        self.ports = ports
        self.certificates = certificates
        self.host = broker.host

    def secrets(self) -> list[str]:
        """What may be nowhere but in its files: passwords, and lines of the private key."""
        key = Path(self.certificates.path("broker.key")).read_text().splitlines()
        return [PASSWORD, *(line for line in key if not line.startswith("-"))]


@contextmanager
def doors(directory: Path) -> Iterator[Doors]:
    """The broker, started."""
    certificates = Certificates(directory)
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    settings = {
        **certificates.settings(),
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "num.partitions": 1,
        "socket.listen.backlog.size": 4096,
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        for mechanism, line in LINES.items():
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = line
    broker = BrokerProcess(directory / "broker", settings=settings, arguments=("--http-port", "0"))
    broker.port = ports["PLAINTEXT"]
    with broker:
        yield Doors(broker, ports, certificates)


class SecureClient(RawClient):
    """Alice, by SASL_SSL."""

    def __init__(self, at: Doors) -> None:
        super().__init__(at.host, at.ports["SASL_SSL"])
        self.socket = at.certificates.client_context().wrap_socket(self.socket, server_hostname=at.host)
        assert self.call(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == 0
        token = b"\0alice\0" + PASSWORD.encode()
        assert self.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token).error_code == 0


class AtWork:
    """A client of the plain listener and one by SASL_SSL, who produce and fetch until they are to stop."""

    def __init__(self, at: Doors) -> None:
        self._clients = {
            "PLAINTEXT": WorkingClient(RawClient(at.host, at.ports["PLAINTEXT"]), "plain"),
            "SASL_SSL": WorkingClient(SecureClient(at), "secure"),
        }

    def __enter__(self) -> Self:
        for client in self._clients.values():
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.stop()
            client.close()

    def wait_for_more(self) -> None:
        """Until each has done something more. AssertionError where one has failed or waits for too long."""
        before = {name: client.operations for name, client in self._clients.items()}
        ends_s = time.monotonic() + 20
        while any(client.operations <= before[name] for name, client in self._clients.items()):
            assert not self.errors, self.errors
            assert time.monotonic() < ends_s, "a client waits for its answer"
            time.sleep(0.01)

    @property
    def errors(self) -> list[str]:
        """Of both."""
        return [f"{name}: {error}" for name, client in self._clients.items() for error in client.errors]

    def check(self) -> str:
        """End the work. AssertionError where a client was harmed or has lost a record; else what they have done."""
        for client in self._clients.values():
            client.stop()
        assert not self.errors, self.errors
        for client in self._clients.values():
            client.check_every_record()
        done = {name: (client.operations, client.acknowledged) for name, client in self._clients.items()}
        return "; ".join(f"{name}: {operations} operations, {records} records" for name, (operations, records) in done.items())
