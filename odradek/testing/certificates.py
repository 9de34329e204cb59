"""Certificates for tests: an authority, brokers' certificates and clients', as PEM and PKCS12.

    authority = CertificateAuthority.make()
    broker = authority.issue("broker", hosts=["localhost", "127.0.0.1"])
    orders = authority.issue("CN=orders,OU=Shop,O=Example")

Keys use the curve P-256: they are made at once, and every client of Kafka accepts them. Use it for tests only: nothing protects
the authority's key. Needs the package cryptography (``pip install 'odradek[tls]'``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from odradek.timing.system_clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

__tracebackhide__ = True

# The largest difference of clocks.
_BEFORE = timedelta(hours=1)
DEFAULT_DAYS = 365


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key. ``authority`` is the issuer's certificate, None for an authority itself."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate | None

    @property
    def pem(self) -> str:
        """Return the certificate alone."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """Return the private key, PKCS#8 without a password: the one form that Java takes."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def encrypted_key_pem(self, password: str) -> str:
        """Return the private key, encrypted with a password."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())).decode()

    def pkcs12(self, password: str) -> bytes:
        """Return key, certificate and the authority's certificate as one store."""
        authorities = None if self.authority is None else [self.authority]
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"odradek", self.key, self.certificate, authorities, encryption)


class CertificateAuthority:
    """Issues certificates for ``days``, valid from an hour ago."""

    def __init__(self, own: Certificate) -> None:
        self.own = own

    @classmethod
    def make(cls, name: str = "odradek test authority", days: int = DEFAULT_DAYS) -> Self:
        """Make a new authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        usage = _key_usage(signs_certificates=True)
        builder = _builder(subject, subject, key, key, days).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        return cls(Certificate(builder.add_extension(usage, True).sign(key, SHA256()), key, None))

    @classmethod
    def load(cls, certificate_pem: str, key_pem: str) -> Self:
        """Return an authority that was made before. Raises ValueError for anything that is no authority."""
        key = load_pem_private_key(key_pem.encode(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key has the wrong type")  # noqa: TRY004  a file's content
        return cls(Certificate(x509.load_pem_x509_certificate(certificate_pem.encode()), key, None))

    def issue(self, subject: str, hosts: Sequence[str] = (), days: int = DEFAULT_DAYS) -> Certificate:
        """Issue a certificate for ``subject``, a name or a whole distinguished name; with ``hosts``, a server's certificate.

        Raises ValueError, and TypeError if ``hosts`` is a string.
        """
        if isinstance(hosts, str):
            raise TypeError(f"hosts must be a list of names and addresses: hosts=[{hosts!r}]")
        key = ec.generate_private_key(ec.SECP256R1())
        authority = self.own.certificate
        usages = [ExtendedKeyUsageOID.SERVER_AUTH] if hosts else []
        builder = (
            _builder(_name(subject), authority.subject, key, self.own.key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_key_usage(signs_certificates=False), True)
            .add_extension(x509.ExtendedKeyUsage([*usages, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), False)
        return Certificate(builder.sign(self.own.key, SHA256()), key, authority)

    def lasts(self, days: int) -> bool:
        """Return whether the authority's own certificate is still valid for ``days``."""
        return self.own.certificate.not_valid_after_utc >= _now() + timedelta(days=days)

    def has_issued(self, pem: bytes, hosts: Sequence[str], days: int) -> bool:
        """Return whether ``pem`` begins with our certificate for a server of all ``hosts``, valid for ``days`` more."""
        try:
            found = x509.load_pem_x509_certificate(pem)
            found.verify_directly_issued_by(self.own.certificate)
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            return False
        return set(map(_host, hosts)) <= set(names) and found.not_valid_after_utc >= _now() + timedelta(days=days)

    def trust_store(self, password: str) -> bytes:
        """Return the authority's certificate as a PKCS12 trust store, marked as Java wants it."""
        trusted = pkcs12.PKCS12Certificate(self.own.certificate, b"ca")
        return pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode()))


def _now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now_ms() // 1000, UTC)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, signing: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = _now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(subject: str) -> x509.Name:
    if "=" in subject:
        return x509.Name.from_rfc4514_string(subject)
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
