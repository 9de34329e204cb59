"""The certificates and secrets of ``odradek serve --secure``, files beside the metadata log.

    secure-ca.pem               the authority's certificate, which clients trust; the only file here that anybody may read
    secure-ca.key               its key
    secure-broker.pem           the broker's certificate and key
    secure-password             the password of the user odradek
    secure-metrics-token        the token of scrapers, if metrics are served
    secure-control-token        the token of the control interface, if it is served
    secure-client.properties    settings for Java clients and Kafka's tools, rewritten at each start (``door``)

They are not in a directory of their own, because Apache Kafka takes every directory among its logs for a log. Existing files
stay. A new broker's certificate is made when the old one is about to expire, lacks one of the broker's hosts, or has another
authority. A new authority is made when the old one is about to expire, after ten years.

``secure`` makes a broker use the files.
"""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.broker.start.storage_start import log_dirs
from odradek.cli.secret_files import write_secret
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import HIDDEN, InvalidConfig, parse_list
from odradek.common.config.endpoints import SASL_SSL, Endpoint, parse_endpoints, security_protocols
from odradek.common.config.listener_config import PREFIX, listener_key
from odradek.common.config.table import BROKER_CONFIGS
from odradek.common.logging import log
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.filesystem import RealFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.testing.certificates import CertificateAuthority

_AUTHORITY_DAYS: Final = 3650
_BROKER_DAYS: Final = 365
# A certificate with less time left is replaced.
_SPARE_DAYS: Final = 30
_SECRET_BYTES: Final = 24


class CannotSecure(OSError):
    """The package for making certificates is missing, or an existing file cannot be used."""


@dataclass(frozen=True, slots=True)
class SecureFiles:
    """The paths of the files."""

    directory: Path

    @property
    def authority(self) -> Path:
        """Return the path of the authority's certificate."""
        return self.directory / "secure-ca.pem"

    @property
    def authority_key(self) -> Path:
        """Return the path of the authority's key."""
        return self.directory / "secure-ca.key"

    @property
    def broker(self) -> Path:
        """Return the path of the broker's certificate and key."""
        return self.directory / "secure-broker.pem"

    @property
    def password(self) -> Path:
        """Return the path of the user's password."""
        return self.directory / "secure-password"

    @property
    def metrics_token(self) -> Path:
        """Return the path of the scrapers' token."""
        return self.directory / "secure-metrics-token"

    @property
    def control_token(self) -> Path:
        """Return the path of the control interface's token."""
        return self.directory / "secure-control-token"

    @property
    def client_properties(self) -> Path:
        """Return the path of the settings for Java clients."""
        return self.directory / "secure-client.properties"

    def make(self, hosts: Sequence[str]) -> None:
        """Make missing and expiring files, for a broker with these hosts. Raises CannotSecure, OSError."""
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
            log.warn(
                "new certificate authority: give its certificate to all clients",
                path=str(self.authority),
                cause="the old one expires",
            )
        made = kind.make("odradek serve --secure", _AUTHORITY_DAYS)
        write_secret(self.authority_key, made.own.key_pem.encode())
        write_secret(self.authority, made.own.pem.encode())
        self.authority.chmod(0o644)
        return made


def secret(path: Path) -> str:
    """Return the secret in a file; write a random one if there is none. Raises CannotSecure, OSError."""
    if not path.exists() or not path.stat().st_size:
        write_secret(path, secrets.token_urlsafe(_SECRET_BYTES).encode())
    text = path.read_bytes().strip()
    # All other characters need no escaping in a JAAS line or an HTTP header.
    if not text.isascii() or not text.decode().isprintable() or set(text) & set(b'"\\'):
        raise CannotSecure(f"{path}: the secret must be printable ASCII, without quotes and backslashes")
    return text.decode()


USER: Final = "odradek"
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
# Users that ``odradek users`` adds authenticate by SCRAM.
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_OWN_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104  compared, not bound


def secure(settings: dict[str, str], more_hosts: Sequence[str] = ()) -> SecureFiles:
    """Add the settings of ``--secure``, and make the files. ``settings`` must have ``listeners`` and ``log.dirs``.

    The certificate is valid for ``more_hosts``, too. Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory,
    OSError.
    """
    _check_settings(settings)
    config = load(None, settings)
    endpoints = _secured_endpoints(config)
    directory = Path(config["metadata.log.dir"] or log_dirs(config)[0]).absolute()
    files = SecureFiles(directory)
    # The lock keeps another process from making the same files; ``take`` also refuses another node's data.
    held = DataDirectory(RealFileSystem(), str(directory), log.warn)
    try:
        held.take(config["node.id"])
        files.make(_hosts(config, endpoints, more_hosts))
        password = secret(files.password)
    finally:
        held.release()
    for endpoint in endpoints:
        settings.update(_of_listener(endpoint.name, files, password))
    if config["authorizer.class.name"]:
        _make_super_user(settings)
    return files


def _check_settings(settings: dict[str, str]) -> None:
    """Raise InvalidConfig for configs that ``--secure`` sets itself."""
    for key, value in settings.items():
        name = key.removeprefix(PREFIX).partition(".")[2] if key.startswith(PREFIX) else key
        if name.startswith("ssl.key") or name == "sasl.enabled.mechanisms" or name.endswith("sasl.jaas.config"):
            definition = BROKER_CONFIGS.get(name)
            is_secret = definition is None or definition.sensitive
            raise InvalidConfig(key, HIDDEN if is_secret else value, "left out: --secure sets it")
    roles = settings.get("process.roles", "")
    if roles and "broker" not in parse_list(roles):
        raise InvalidConfig("process.roles", roles, "left out, or broker,controller: --secure is for a broker")
    if roles and "controller" not in parse_list(roles):
        raise InvalidConfig("process.roles", roles, "left out, or broker,controller: --secure is for a single broker")


def _secured_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """Return all listeners, controllers' too. Raises InvalidConfig unless all use SASL_SSL."""
    protocols = security_protocols(config)
    endpoints = [*parse_endpoints("listeners", config["listeners"]), *config.controller_endpoints]
    for endpoint in endpoints:
        if protocols.get(endpoint.name) != SASL_SSL:
            place = f"{endpoint.name}://{endpoint.host}:{endpoint.port}"
            allowed = f"listeners of {SASL_SSL} only, or left out: --secure allows no other listeners"
            raise InvalidConfig("listeners", place, allowed)
    return endpoints


def _hosts(config: BrokerConfig, endpoints: Iterable[Endpoint], more_hosts: Iterable[str]) -> list[str]:
    """Return the hosts of the certificate: this machine, its listeners, and the advertised ones."""
    told = parse_endpoints("advertised.listeners", config["advertised.listeners"] or ())
    found = [*_OWN_HOSTS, socket.gethostname(), *(endpoint.host for endpoint in (*endpoints, *told)), *more_hosts]
    return [host for host in dict.fromkeys(found) if host not in _ANY_ADDRESS and host.isascii()]


def _of_listener(name: str, files: SecureFiles, password: str) -> dict[str, str]:
    scram = {f"{mechanism.lower()}.sasl.jaas.config": f"{_SCRAM_MODULE} required;" for mechanism in _SCRAM}
    configs = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.broker),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *_SCRAM)),
        "plain.sasl.jaas.config": f'{_PLAIN_MODULE} required user_{USER}="{password}";',
        **scram,
    }
    return {listener_key(name, config): value for config, value in configs.items()}


def _make_super_user(settings: dict[str, str]) -> None:
    """Make the user a super user: nobody else could grant rights to others."""
    principal = f"User:{USER}"
    named = [name.strip() for name in settings.get("super.users", "").split(";") if name.strip()]
    if principal not in named:
        settings["super.users"] = ";".join([*named, principal])
