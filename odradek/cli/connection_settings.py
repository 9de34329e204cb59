"""The settings for connections to brokers with TLS or SASL, from the file of ``--command-config`` or from a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from odradek.broker.security.sasl.listeners import JaasError, parse_jaas
from odradek.broker.security.tls.key_stores import load_key_store
from odradek.broker.security.tls.tls_context import client_context
from odradek.cli.profiles import CommandConfig
from odradek.client.login import PLAIN, Login
from odradek.common.config.broker_config import load, parse_properties
from odradek.common.config.definitions import HIDDEN, InvalidConfig
from odradek.protocol.scram import MECHANISMS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from pathlib import Path

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class CannotSpeak(click.ClickException):
    """The file's settings cannot be used."""

    exit_code = 2


def read_command_config(path: Path) -> CommandConfig:
    """Read a file. Raises CannotSpeak."""
    try:
        return connection_settings(parse_properties(path.read_text(encoding="utf-8")))
    except UnicodeDecodeError:
        raise CannotSpeak(f"{path} is not UTF-8 text") from None
    except (InvalidConfig, OSError) as error:
        raise CannotSpeak(str(error)) from error


def connection_settings(properties: Mapping[str, str]) -> CommandConfig:
    """Return the TLS context and the login of some configs. Raises CannotSpeak."""
    if not properties:
        return CommandConfig()
    try:
        protocol = _protocol(properties)
        tls = _tls(properties) if protocol.endswith("SSL") else None
        return CommandConfig(tls, _login(properties) if protocol.startswith("SASL_") else None)
    except (InvalidConfig, OSError) as error:
        raise CannotSpeak(str(error)) from error


def _protocol(properties: Mapping[str, str]) -> str:
    """Return the security protocol. Raises InvalidConfig."""
    protocol = properties.get("security.protocol", _PROTOCOLS[0]).strip().upper()
    if protocol not in _PROTOCOLS:
        raise InvalidConfig("security.protocol", protocol, f"one of {', '.join(_PROTOCOLS)}")
    return protocol


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS context. Raises InvalidConfig."""
    chosen = {name: value for name, value in properties.items() if name.startswith("ssl.")}
    config = load(None, chosen).listener_config("SSL")
    return client_context(config, load_key_store(config))


def _login(properties: Mapping[str, str]) -> Login:
    """Return the login. Raises InvalidConfig."""
    mechanisms = (PLAIN, *MECHANISMS)
    mechanism = properties.get("sasl.mechanism", "").strip()
    if mechanism not in mechanisms:
        raise InvalidConfig("sasl.mechanism", mechanism, f"one of {', '.join(mechanisms)}")
    try:
        options = parse_jaas(properties.get("sasl.jaas.config", "")).options
        by_token = mechanism != PLAIN and options.get("tokenauth", "").lower() == "true"
        return Login(mechanism, options["username"], options["password"], by_token)
    except JaasError as error:
        raise InvalidConfig("sasl.jaas.config", HIDDEN, f"a JAAS line: {error}") from error
    except KeyError as error:
        raise InvalidConfig("sasl.jaas.config", HIDDEN, f"a JAAS line with username and password: no {error.args[0]}") from error
