"""What tests of TLS share: certificates, made once a session, a broker's settings, and a raw client that speaks TLS."""

import contextlib
import ssl
from pathlib import Path

from odradek.testing.certificates import Certificate, CertificateAuthority
from tests.broker_process import BrokerProcess
from tests.java_key_stores import java_key_store, key_entry, trusted_entry
from tests.raw_client import RawClient

PASSWORD = "changeit"
# The principal of the client ``orders``.
ORDERS = "User:CN=orders,OU=Shop,O=Example"
HOSTS = ["localhost", "127.0.0.1", "::1"]


class Certificates:
    """Files of an authority, of a broker (``broker``), of a client (``orders``), and of strangers to them, in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = CertificateAuthority.make()
        self.broker = self.authority.issue("broker", HOSTS)
        self.orders = self.authority.issue("CN=orders,OU=Shop,O=Example")
        strangers = CertificateAuthority.make("strangers")
        self.stranger = strangers.issue("stranger")
        self.stray_broker = strangers.issue("stray", HOSTS)
        self.write("broker", self.broker)
        self.write("orders", self.orders)
        self.write("stranger", self.stranger)
        self.write("stray", self.stray_broker)
        for name, authority in (("ca", self.authority), ("strangers", strangers)):
            (directory / f"{name}.pem").write_text(authority.own.pem)
            (directory / f"{name}.p12").write_bytes(authority.trust_store(PASSWORD))
            (directory / f"{name}.jks").write_bytes(java_key_store([trusted_entry(authority.own)], PASSWORD))

    def write(self, name: str, made: Certificate) -> Path:
        """NAME.pem with certificate and key, NAME.key with the key alone, NAME.p12, NAME.jks."""
        (self.directory / f"{name}.p12").write_bytes(made.pkcs12(PASSWORD))
        (self.directory / f"{name}.jks").write_bytes(java_key_store([key_entry(made, PASSWORD)], PASSWORD))
        (self.directory / f"{name}.key").write_text(made.key_pem)
        path = self.directory / f"{name}.pem"
        path.write_text(made.pem + made.key_pem)
        return path

    def path(self, name: str) -> str:
        """Of a file."""
        return str(self.directory / name)

    def settings(self, **ssl_configs: str) -> dict[str, object]:
        """Of a broker with stores of PEM; ``client_auth="required"`` is ``ssl.client.auth=required``."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.path("broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.path("ca.pem"),
            **{f"ssl.{name.replace('_', '.')}": value for name, value in ssl_configs.items()},
        }

    def java_settings(self, **ssl_configs: str) -> dict[str, object]:
        """Of a broker with stores of JKS."""
        stores = {
            "keystore_type": "JKS",
            "keystore_location": self.path("broker.jks"),
            "keystore_password": PASSWORD,
            "truststore_type": "JKS",
            "truststore_location": self.path("ca.jks"),
            "truststore_password": PASSWORD,
        }
        return self.settings(**(stores | ssl_configs))

    def client_context(self, name: str | None = None, trusted: str = "ca") -> ssl.SSLContext:
        """Of a client that shows the certificate ``name``, if any."""
        context = ssl.create_default_context(cafile=self.path(f"{trusted}.pem"))
        if name is not None:
            context.load_cert_chain(self.path(f"{name}.pem"))
        return context


class TlsClient(RawClient):
    """A raw client of an SSL listener, its handshake done."""

    def __init__(self, broker: BrokerProcess, context: ssl.SSLContext) -> None:
        super().__init__(broker.host, broker.port)
        plain = self.socket
        try:
            self.socket = context.wrap_socket(plain, server_hostname=broker.host)
        except BaseException:
            plain.close()
            raise


def hello_of(context: ssl.SSLContext) -> bytes:
    """The first record of a client."""
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()
