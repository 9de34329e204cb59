"""The certificates of brokers that are measured by TLS: of the curve P-256, as PEM, which both brokers read."""

from collections.abc import Mapping
from pathlib import Path

from odradek.testing.certificates import CertificateAuthority


def certificates(directory: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Make them; the settings of a broker, and the load generator's flags."""
    directory.mkdir(parents=True)
    authority = CertificateAuthority.make()
    broker = authority.issue("broker", ["localhost", "127.0.0.1"])
    trusted, own = directory / "ca.pem", directory / "broker.pem"
    trusted.write_text(authority.own.pem, encoding="ascii")
    own.write_text(broker.pem + broker.key_pem, encoding="ascii")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    return settings, (f"-ca={trusted}",)
