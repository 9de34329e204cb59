"""``odradek serve --secure``: a broker with TLS and passwords for its clients, set up by one flag.

Clients connect by SASL_SSL only, as the user ``odradek``. ``secure`` makes the certificates and secrets, and adds them to the
broker's settings. They are files beside the metadata log:

    secure-ca.pem               the authority's certificate, which clients trust; the only file here that anybody may read
    secure-ca.key               its key
    secure-broker.pem           the broker's certificate and key
    secure-password             the password of the user odradek
    secure-http-token           the token of the control API, if there is an HTTP port
    secure-metrics-token        the token of the metrics there
    secure-client.properties    settings for Java clients and Kafka's tools, rewritten at each start

If the data is in memory, they are in a directory that is removed in the end.

They are not in a directory of their own, because Apache Kafka takes every directory among its logs for a log. Existing files
stay. A new broker's certificate is made when the old one is about to expire, lacks one of the broker's hosts, or has another
authority. A new authority is made when the old one is about to expire, after ten years.

After the start, ``SecuredBroker`` prints instructions for clients, with the option names of each client library. They end up in
logs, so they have no secrets: they name the files with the secrets. One file has all settings, for Java.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.start.storage_start import log_dirs
from odradek.common.config.broker_config import load
from odradek.common.config.definitions import HIDDEN, InvalidConfig, parse_list
from odradek.common.config.listener_config import PREFIX, SASL_SSL, Endpoint, listener_key, parse_endpoints, security_protocols
from odradek.common.config.table import BROKER_CONFIGS
from odradek.common.logging import log
from odradek.properties import property_line
from odradek.storage.directories.data_directory import DataDirectory
from odradek.storage.filesystem import RealFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.cli.serve_options import Http
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.testing.certificates import CertificateAuthority

_MODE = 0o600


def write_secret(path: Path, data: bytes) -> None:
    """Write ``data`` to a file that only its owner may read. The file is replaced atomically. Raises OSError."""
    written = path.with_name(f".{path.name}.new")
    written.unlink(missing_ok=True)
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)


_AUTHORITY_DAYS: Final = 3650
_BROKER_DAYS: Final = 365
# A certificate with less time left is replaced.
_SPARE_DAYS: Final = 30
_SECRET_BYTES: Final = 24


class CannotSecure(OSError):
    """The package for making certificates is missing, or an existing file cannot be used."""


class SecureFiles:
    """The paths of the files. ``client_properties`` are the settings for Java clients."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = directory / "secure-ca.pem"
        self.authority_key = directory / "secure-ca.key"
        self.broker = directory / "secure-broker.pem"
        self.password = directory / "secure-password"
        self.http_token = directory / "secure-http-token"
        self.metrics_token = directory / "secure-metrics-token"
        self.client_properties = directory / "secure-client.properties"

    def make(self, hosts: Sequence[str]) -> None:
        """Make missing and expiring files, for a broker with these hosts. Raises CannotSecure, OSError."""
        try:
            from odradek.testing.certificates import CertificateAuthority  # the extra tls
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


_TEMPLATE: Final = """
Clients must use TLS, and log in as the user {user}. The secrets are in files that only their owner can read.

# kafka-python
from pathlib import Path
kafka = dict(
    bootstrap_servers={address},
    security_protocol="SASL_SSL",
    ssl_cafile={authority},
    sasl_mechanism="PLAIN",
    sasl_plain_username={name},
    sasl_plain_password=Path({password}).read_text().strip(),
)

# aiokafka
from pathlib import Path
from aiokafka.helpers import create_ssl_context
kafka = dict(
    bootstrap_servers={address},
    security_protocol="SASL_SSL",
    ssl_context=create_ssl_context(cafile={authority}),
    sasl_mechanism="PLAIN",
    sasl_plain_username={name},
    sasl_plain_password=Path({password}).read_text().strip(),
)

# librdkafka: confluent-kafka
from pathlib import Path
kafka = {{
    "bootstrap.servers": {address},
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": {authority},
    "sasl.mechanism": "PLAIN",
    "sasl.username": {name},
    "sasl.password": Path({password}).read_text().strip(),
}}

# Spark
from pathlib import Path
login = 'username={name} password="' + Path({password}).read_text().strip() + '"'
kafka = {{
    "kafka.bootstrap.servers": {address},
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.certificates": Path({authority}).read_text(),
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": "{module} required " + login + ";",
}}

{more}# Java, as Properties; Kafka's tools and odradek's commands, as --command-config
{properties}
"""
_METRICS: Final = """\
# Prometheus, beside job_name and static_configs
scheme: https
authorization:
  credentials_file: {token}
tls_config:
  ca_file: {authority}

"""
_CONTROL: Final = """\
# the control API
curl --cacert {authority} \\
    --header "Authorization: Bearer $(cat {token})" {url}/v1/topics

"""


def client_lines(address: str, files: SecureFiles, http_url: str | None = None) -> str:
    """Return the instructions for clients that connect to ``address``; with a URL, also for clients of the HTTP port."""
    more = ""
    if http_url is not None:
        more = _METRICS.format(token=_quoted(files.metrics_token), authority=_quoted(files.authority))
        authority, token = quote(str(files.authority)), quote(str(files.http_token))
        more += _CONTROL.format(authority=authority, token=token, url=http_url)
    return _TEMPLATE.format(
        user=USER,
        name=_quoted(USER),
        address=_quoted(address),
        authority=_quoted(files.authority),
        password=_quoted(files.password),
        module=_PLAIN_MODULE,
        properties=files.client_properties,
        more=more,
    )


def write_client_properties(address: str, files: SecureFiles) -> None:
    """Write all settings for Java clients into one file, which can be copied to their machines. Raises OSError."""
    password = secret(files.password)
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": files.authority.read_text(encoding="ascii"),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{_PLAIN_MODULE} required username="{USER}" password="{password}";',
    }
    lines = [property_line(key, value) + "\n" for key, value in settings.items()]
    write_secret(files.client_properties, "".join(lines).encode())


def _quoted(text: str | Path) -> str:
    return json.dumps(str(text), ensure_ascii=False)


class SecuredBroker(NamedTuple):
    """A secured broker. ``files`` has the secrets of clients; with ``has_http_tokens``, also those of the HTTP port."""

    files: SecureFiles
    has_http_tokens: bool

    def secure_http(self, http: Http) -> Http:
        """Return the HTTP port with TLS and tokens. Raises OSError."""
        token = http.token or secret(self.files.http_token)
        metrics_token = http.metrics_token or secret(self.files.metrics_token)
        return http._replace(token=token, metrics_token=metrics_token, certificate=http.certificate or self.files.broker)

    def instructions(self, advertised: Mapping[str, Endpoint], http_url: str | None = None) -> str:
        """Return the instructions for the broker's first listener, and write the file for Java."""
        endpoint = next(iter(advertised.values()))
        address = f"{f'[{endpoint.host}]' if ':' in endpoint.host else endpoint.host}:{endpoint.port}"
        try:
            write_client_properties(address, self.files)
        except OSError as error:
            log.warn("cannot write the file with client configs", path=str(self.files.client_properties), reason=str(error))
        return client_lines(address, self.files, http_url if self.has_http_tokens else None)


def secure_broker(settings: dict[str, str], http: Http | None, directory: str | None = None) -> SecuredBroker:
    """Change ``settings`` to admit clients by SASL_SSL only.

    The certificate is valid for the host of the HTTP port, too. The files are in ``directory``, or beside the metadata log.
    Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError.
    """
    placed = dict(settings) if directory is None else {**settings, "log.dirs": directory}
    files = secure(placed, () if http is None else (http.host,))
    settings.update({key: value for key, value in placed.items() if key != "log.dirs"})
    return SecuredBroker(files, http is not None and (http.token, http.metrics_token, http.certificate) == (None, None, None))
