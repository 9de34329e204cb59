"""Has a broker use the files of ``--secure``: its settings, and those that do not go with them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.broker.config.broker_config import load
from odradek.broker.config.definitions import HIDDEN, InvalidConfig, parse_list
from odradek.broker.config.endpoints import SASL_SSL, Endpoint, parse_endpoints, security_protocols
from odradek.broker.config.listener_config import PREFIX, listener_key
from odradek.broker.config.table import BROKER_CONFIGS
from odradek.broker.logging import log
from odradek.broker.storage_start import log_dirs
from odradek.cli.secure.files import SecureFiles, secret
from odradek.storage.data_directory import DataDirectory
from odradek.storage.filesystem import RealFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.broker.config.broker_config import BrokerConfig

USER: Final = "odradek"
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
# Other users, whom ``odradek users`` adds, come in by SCRAM.
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_OWN_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_ANY_ADDRESS: Final = ("", "0.0.0.0", "::")  # noqa: S104  compared, not bound


def secure(settings: dict[str, str], more_hosts: Sequence[str] = ()) -> SecureFiles:
    """Add what shuts the door to ``settings``, whose ``listeners`` and ``log.dirs`` are set; the files are made.

    The certificate is for ``more_hosts``, too. Raises InvalidConfig, DataDirectoryLocked, InconsistentDataDirectory, OSError.
    """
    _check_settings(settings)
    config = load(None, settings)
    endpoints = _secured_endpoints(config)
    directory = Path(config["metadata.log.dir"] or log_dirs(config)[0]).absolute()
    files = SecureFiles(directory)
    # Nobody else is to make the same files, nor in the data of another node.
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
    """Raise InvalidConfig for what ``--secure`` sets itself."""
    for key, value in settings.items():
        name = key.removeprefix(PREFIX).partition(".")[2] if key.startswith(PREFIX) else key
        if name.startswith("ssl.key") or name == "sasl.enabled.mechanisms" or name.endswith("sasl.jaas.config"):
            definition = BROKER_CONFIGS.get(name)
            is_secret = definition is None or definition.sensitive
            raise InvalidConfig(key, HIDDEN if is_secret else value, "left out: --secure has a value of its own")
    roles = settings.get("process.roles", "")
    if roles and "broker" not in parse_list(roles):
        raise InvalidConfig("process.roles", roles, "left out, or broker,controller: --secure is for a broker")
    if roles and "controller" not in parse_list(roles):
        raise InvalidConfig("process.roles", roles, "left out, or broker,controller: a broker of --secure is alone")


def _secured_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """All listeners, which must be of SASL_SSL, a controller's as well. Raises InvalidConfig."""
    protocols = security_protocols(config)
    endpoints = [*parse_endpoints("listeners", config["listeners"]), *config.controller_endpoints]
    for endpoint in endpoints:
        if protocols.get(endpoint.name) != SASL_SSL:
            place = f"{endpoint.name}://{endpoint.host}:{endpoint.port}"
            allowed = f"listeners of {SASL_SSL} alone, or left out: with --secure clients come in by no other"
            raise InvalidConfig("listeners", place, allowed)
    return endpoints


def _hosts(config: BrokerConfig, endpoints: Iterable[Endpoint], more_hosts: Iterable[str]) -> list[str]:
    """What the certificate is for: this machine, where it listens, and what clients are told."""
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
    """The user may do everything: nobody else could give rights to others."""
    principal = f"User:{USER}"
    named = [name.strip() for name in settings.get("super.users", "").split(";") if name.strip()]
    if principal not in named:
        settings["super.users"] = ";".join([*named, principal])
