"""``odradek certs``: make an authority, a broker's certificate and clients' certificates in a directory, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from odradek.cli.options import CannotWork
from odradek.cli.secure import write_secret

if TYPE_CHECKING:
    from odradek.testing.certificates import Certificate, CertificateAuthority

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_HOST_HELP: Final = f"A host name or address of the broker; repeatable.  [default: {', '.join(_HOSTS)}]"
_BROKER: Final = "broker"
_RESERVED: Final = frozenset({"ca", _BROKER, "truststore"})


@click.command("certs")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--host", "hosts", multiple=True, help=_HOST_HELP)
@click.option("--client", "clients", metavar="NAME", multiple=True, help="A client: CN, or CN=NAME,OU=...; repeatable.")
@click.option("--days", type=click.IntRange(1), default=365, show_default=True, help="Days until the certificates expire.")
@click.option("--password", default="changeit", show_default=True, help="Password of the PKCS12 files.")
@click.option("--renew", is_flag=True, help="Replace existing certificates. The authority stays.")
def certs(*, directory: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, password: str, renew: bool) -> int:
    """Make certificates for tests: an authority, a broker's, and clients'.

    DIRECTORY gets ca.pem and ca.key, the authority; broker.pem, certificate and key in one; NAME.pem for each client; the same
    as .p12, and truststore.p12. Existing files stay. The lines for the broker's server.properties are printed.
    """
    try:
        from odradek.testing.certificates import CertificateAuthority  # the extra tls
    except ImportError as error:
        raise CannotWork(f"this needs cryptography: pip install 'odradek[tls]' ({error})") from error
    try:
        directory.mkdir(parents=True, exist_ok=True)
        authority = _authority(CertificateAuthority, directory, days, password)
        if renew or not (directory / f"{_BROKER}.pem").exists():
            _write(directory, _BROKER, authority.issue(_BROKER, hosts or _HOSTS, days), password)
        for client in clients:
            name = _file_name(client)
            if renew or not (directory / f"{name}.pem").exists():
                _write(directory, name, authority.issue(client, days=days), password)
    except (OSError, ValueError) as error:
        raise CannotWork(str(error)) from error
    for line in broker_lines(directory.absolute()):
        click.echo(line)
    return 0


def broker_lines(directory: Path) -> list[str]:
    """Return the lines of a ``server.properties`` that use the broker's certificate and trust the clients'."""
    return [
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={directory / 'broker.pem'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={directory / 'ca.pem'}",
    ]


def _authority(kind: type[CertificateAuthority], directory: Path, days: int, password: str) -> CertificateAuthority:
    certificate, key = directory / "ca.pem", directory / "ca.key"
    if certificate.exists() or key.exists():
        return kind.load(certificate.read_text(), key.read_text())
    authority = kind.make(days=days)
    write_secret(key, authority.own.key_pem.encode())
    certificate.write_text(authority.own.pem)
    (directory / "truststore.p12").write_bytes(authority.trust_store(password))
    return authority


def _write(directory: Path, name: str, made: Certificate, password: str) -> None:
    write_secret(directory / f"{name}.pem", (made.pem + made.key_pem).encode())
    write_secret(directory / f"{name}.p12", made.pkcs12(password))


def _file_name(client: str) -> str:
    """Return the name of a client's files: its common name."""
    name = next((part[3:] for part in client.split(",") if part.upper().startswith("CN=")), client).strip()
    if not name or "/" in name or "\\" in name or name.startswith(".") or name in _RESERVED:
        raise CannotWork(f"--client {client!r}: its common name cannot be a file's name; choose another one")
    return name
