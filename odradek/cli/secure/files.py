"""The certificates and secrets of ``odradek serve --secure``, files beside the metadata log.

    secure-ca.pem               the authority's certificate, which clients trust; of these files the one that anybody may read
    secure-ca.key               its key
    secure-broker.pem           the broker's certificate and key
    secure-password             of the user odradek
    secure-metrics-token        what lets scrapers in, where metrics are served
    secure-client.properties    what Java clients and Kafka's tools need, rewritten at each start (``clients``)

They are files and no directory, since Apache Kafka takes every directory among its logs for a log. What is there stays. The
broker's certificate is made anew when it is about to expire, lacks one of the broker's hosts, or is of another authority; the
authority when it is about to expire, after ten years.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odradek.broker.logging import log
from odradek.cli.secret_files import write_secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from odradek.testing.certificates import CertificateAuthority

_AUTHORITY_DAYS: Final = 3650
_BROKER_DAYS: Final = 365
# A certificate that has less left is made anew.
_SPARE_DAYS: Final = 30
_SECRET_BYTES: Final = 24


class CannotSecure(OSError):
    """What certificates are made with is missing, or what was made before cannot be used."""


@dataclass(frozen=True, slots=True)
class SecureFiles:
    """Where the files are."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The authority's certificate."""
        return self.directory / "secure-ca.pem"

    @property
    def authority_key(self) -> Path:
        """The authority's key."""
        return self.directory / "secure-ca.key"

    @property
    def broker(self) -> Path:
        """The broker's certificate and key."""
        return self.directory / "secure-broker.pem"

    @property
    def password(self) -> Path:
        """The password of the user."""
        return self.directory / "secure-password"

    @property
    def metrics_token(self) -> Path:
        """What scrapers show."""
        return self.directory / "secure-metrics-token"

    @property
    def control_token(self) -> Path:
        """What steers the broker over its control interface."""
        return self.directory / "secure-control-token"

    @property
    def client_properties(self) -> Path:
        """What Java clients need."""
        return self.directory / "secure-client.properties"

    def make(self, hosts: Sequence[str]) -> None:
        """Make what is not there, or has had its time, for a broker of these hosts. Raises CannotSecure, OSError."""
        try:
            from odradek.testing.certificates import CertificateAuthority
        except ImportError as error:
            raise CannotSecure(f"--secure needs cryptography: pip install 'odradek[tls]' ({error})") from error
        authority = self._authority(CertificateAuthority)
        is_good = self.broker.exists() and authority.has_issued(self.broker.read_bytes(), hosts, _SPARE_DAYS)
        if not is_good:
            made = authority.issue("broker", hosts, _BROKER_DAYS)
            write_secret(self.broker, (made.pem + made.key_pem).encode())
        secret(self.password)

    def _authority(self, kind: type[CertificateAuthority]) -> CertificateAuthority:
        if self.authority.exists() and self.authority_key.exists():
            try:
                found = kind.load(self.authority.read_text(), self.authority_key.read_text())
            except ValueError as error:
                raise CannotSecure(f"{self.authority_key}: {error}") from error
            if found.lasts(_SPARE_DAYS):
                return found
            log.warn("a new authority: clients need its certificate", path=str(self.authority), cause="the old one expires")
        made = kind.make("odradek serve --secure", _AUTHORITY_DAYS)
        write_secret(self.authority_key, made.own.key_pem.encode())
        write_secret(self.authority, made.own.pem.encode())
        self.authority.chmod(0o644)
        return made


def secret(path: Path) -> str:
    """What the file says; it is made, of random letters, where there is none. Raises CannotSecure, OSError."""
    if not path.exists() or not path.stat().st_size:
        write_secret(path, secrets.token_urlsafe(_SECRET_BYTES).encode())
    text = path.read_bytes().strip()
    # In a JAAS line, and in a header of HTTP, all other letters stand for themselves.
    if not text.isascii() or not text.decode().isprintable() or set(text) & set(b'"\\'):
        raise CannotSecure(f"{path}: must be letters of ASCII, without quotes and backslashes")
    return text.decode()
